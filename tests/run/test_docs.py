"""The commands of the documentation do what it says: docs/ci.md, workflows and all, and docs/certification.md."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.servers import FEW_MODELS

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    parts = (DOCS / page).read_text(encoding="utf-8").split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.partition("\n")[0].strip() == language]


def run(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script, with the commands of this installation, and end what it leaves in the background."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OIP_", "GITHUB"))}
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in {
        "bin/pip": "exit 0",
        "serve": f'exec "{sys.executable}" -m reference_server --port $PORT {" ".join(FEW_MODELS)}',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    with (
        (folder / "out").open("w") as out,
        subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env={**kept, "PATH": path, **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        status = process.wait(timeout=300)
        if "serve &" in script:
            os.killpg(process.pid, signal.SIGTERM)
    return subprocess.CompletedProcess([], status, (folder / "out").read_text(), "")


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


QUICKLY = "pytest --target-model=multi "


def test_the_commands_of_the_gate(tmp_path: Path, small: str) -> None:
    start, gate, compare, *_ = blocks("ci.md", "sh")
    for script in (start, gate):
        done = run(tmp_path, script.replace("pytest ", QUICKLY), URL=small)
        assert done.returncode == 0, done.stdout
    (tmp_path / "conformance.json").rename(tmp_path / "old.json")
    (tmp_path / "new.json").write_bytes((tmp_path / "old.json").read_bytes())
    done = run(tmp_path, compare)
    assert (done.returncode, done.stdout.splitlines()[0].split()) == (0, ["new", "failures", "0"])


@pytest.mark.parametrize("index", [0, 1])
def test_the_entries_of_a_baseline_are_read(tmp_path: Path, small: str, index: int) -> None:
    (tmp_path / "baseline.toml").write_text(blocks("ci.md", "toml")[index])
    gate = blocks("ci.md", "sh")[1].replace("pytest ", QUICKLY)
    done = run(tmp_path, gate, URL=small)
    assert done.returncode == 1, done.stdout
    assert f"{index + 1} stale" in done.stdout


def steps_of(name: str) -> list[str]:
    """Return the commands of a workflow."""
    github, gitlab = (yaml.safe_load(block) for block in blocks("ci.md", "yaml"))
    if name == "gitlab":
        return list(gitlab["conformance"]["script"])
    return [step["run"] for step in github["jobs"]["conformance"]["steps"] if "run" in step]


@pytest.mark.parametrize("name", ["github", "gitlab"])
def test_the_steps_of_a_workflow(tmp_path: Path, name: str) -> None:
    port = free_port()
    (tmp_path / "baseline.toml").write_text("")
    script = "\n".join(steps_of(name)).replace("8000", port).replace("pytest ", QUICKLY)
    done = run(tmp_path, script, PORT=port)
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "conformance.json").read_text())["gate"]["passed"]
    assert (tmp_path / "conformance.html").is_file()


def test_the_commands_of_certification(tmp_path: Path, reference: str) -> None:
    certify, verify = blocks("certification.md", "sh")[:2]
    script = certify.replace("http://host:8000", reference).replace("full", "classification") + verify
    done = run(tmp_path, script)
    assert done.returncode == 0, done.stdout
    assert "verified: Example Server 3.2 by Example Inc. is conformant" in done.stdout
