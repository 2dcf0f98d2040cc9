"""Shell scripts of workflows and pages, run as they stand: in a folder of their own, with what is installed here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.servers import FEW_MODELS

ROOT = Path(__file__).parents[2]  # for plugins of the tests
# What the tests have of their own, and no runner has.
FOREIGN_PREFIXES = ("PYTEST", "OIP_", "GITHUB", "INPUT_", "CONFORMANCE_")


def run(folder: Path, script: str, *, background: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the commands of this installation, where `pip` installs nothing.

    Args:
        folder: where it runs; `./serve` there starts a reference server with few models on `$PORT`, and leaves its
            arguments in `serve.arguments`.
        script: of bash, which ends at the first command that fails.
        background: the script leaves processes behind, which are ended.
        environment: on top of that of the tests.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    write_program(folder / "bin/pip", "exit 0")
    server = f'"{sys.executable}" -m reference_server --port $PORT {" ".join(FEW_MODELS)}'
    write_program(folder / "serve", f'echo "$*" > serve.arguments\nexec {server}')
    with (
        (folder / "out").open("w") as out,
        subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env={**kept, "PATH": path, "PYTHONPATH": str(ROOT), **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        status = process.wait(timeout=300)
        if background:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
    return subprocess.CompletedProcess([], status, (folder / "out").read_text(), "")


def write_program(path: Path, text: str) -> None:
    """Write a program for the shell, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def find_free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])
