"""Builds targets/clients/go: the adapter, and the stubs that protoc makes for it.

Debian 12 has what is needed: golang-go, golang-google-grpc-dev, protobuf-compiler and protoc-gen-go-1-3, which is the
generator that fits its grpc-go.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PROTOS: Final = ("grpc_service.proto", "model_config.proto")
DEBIAN: Final = "/usr/share/gocode"  # where Debian's packages for Go put their sources


def build(sources: Path, home: Path) -> list[str]:
    """Return the command that starts the program that is built of the sources, below the folder `home`.

    Raises:
        OSError: a program is not there.
        subprocess.CalledProcessError: one of them failed.
    """
    adapter, stubs = home / "src" / "adapter", home / "src" / "triton" / "inference"
    shutil.rmtree(home, ignore_errors=True)
    stubs.mkdir(parents=True)
    shutil.copytree(sources, adapter)
    described, program = home / "protos.bin", home / "adapter"
    run(home, sys.executable, str(sources / "stubs.py"), str(described))
    made = f"--go_out=plugins=grpc,import_path=inference:{stubs}"
    run(home, "protoc", f"--descriptor_set_in={described}", made, *PROTOS)
    run(home, "go", "build", "-o", str(program), "adapter")
    return [str(program)]


def run(home: Path, *command: str) -> None:
    """Run a command that has to succeed, with Go's packages in `home` and those of Debian."""
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": f"{home}:{DEBIAN}"}
    subprocess.run(command, cwd=home, env=environment, stdin=subprocess.DEVNULL, check=True)
