"""The commands of the documentation do what it says: docs/ci.md and its workflow, certification, and tutorials."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support import programs
from tests.support.doc_blocks import read_blocks
from tests.support.few_rows import FEW_ROWS
from tests.support.scripts import find_free_port, run, write_program
from tests.support.servers import ONE_MODEL
from tests.support.site import pictures

ROOT = Path(__file__).parents[2]
QUICKLY = f"pytest --conformance-profile=quick {' '.join(FEW_ROWS)} "


def test_the_commands_of_the_gate(tmp_path: Path, lone: str) -> None:
    start, gate, compare, *_ = read_blocks("ci.md", "sh")
    for script in (start, gate):
        done = run(tmp_path, script.replace("pytest ", QUICKLY), URL=lone)
        assert done.returncode == 0, done.stdout
    (tmp_path / "conformance.json").rename(tmp_path / "old.json")
    (tmp_path / "new.json").write_bytes((tmp_path / "old.json").read_bytes())
    done = run(tmp_path, compare)
    assert (done.returncode, done.stdout.splitlines()[0].split()) == (0, ["new", "failures", "0"])


def test_the_entries_of_a_baseline_are_read(tmp_path: Path, lone: str) -> None:
    one, others = read_blocks("ci.md", "toml")
    (tmp_path / "baseline.toml").write_text(others + one)
    gate = read_blocks("ci.md", "sh")[1].replace("pytest ", QUICKLY)
    done = run(tmp_path, gate, URL=lone)
    assert done.returncode == 1, done.stdout
    assert done.stdout.splitlines()[-1].endswith("; gate not passed: 1 fixed, 2 stale")


def test_the_steps_of_the_workflow(tmp_path: Path) -> None:
    workflow = yaml.safe_load(read_blocks("ci.md", "yaml")[-1])
    steps = [step["run"] for step in workflow["jobs"]["conformance"]["steps"] if "run" in step]
    port = find_free_port()
    (tmp_path / "baseline.toml").write_text("")
    script = "\n".join(steps).replace("8000", port).replace("pytest ", QUICKLY)
    done = run(tmp_path, script, background=True, PORT=port)
    assert done.returncode == 0, done.stdout
    assert json.loads((tmp_path / "conformance.json").read_text())["gate"]["passed"]
    assert (tmp_path / "conformance.html").is_file()


def run_quickly(folder: Path, script: str) -> str:
    """Run commands of certification with few rows; return what they print."""
    certify = f'exec "{sys.executable}" -m tests.support.certify_few_rows "$@"'
    write_program(folder / "bin" / "oip-conformance", certify)
    done = run(folder, script)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_commands_of_certification(tmp_path: Path, reference: str) -> None:
    certify, verify = read_blocks("certification.md", "sh")[:2]
    script = certify.replace("http://host:8000", reference).replace("full", "classification")
    script = script.replace("-o example", "--self-test -o example") + verify
    assert "verified: Example Server 3.2 by Example Inc. is conformant" in run_quickly(tmp_path, script)


def test_the_commands_of_a_client_s_certification(tmp_path: Path) -> None:
    (script,) = read_blocks("clients.md", "sh")
    adapter = f"env PYTHONPATH={ROOT} {sys.executable} -m tests.clients.honest"
    script = script.replace("python adapter.py", adapter)
    script = script.replace('--product "Example Client" --product-version 3.2', "--product honest --product-version 1")
    said = "verified: honest 1 by Example Inc. is conformant under the profile full"
    assert said in run_quickly(tmp_path, script)


# --- tutorials -------------------------------------------------------------------------------------------------------


@contextmanager
def started(command: str, port: str) -> Iterator[None]:
    """Start the server of a tutorial, with few models, on a port of its own."""
    words = shlex.split(command.replace("8000", port))
    assert words[:2] == ["oip-conformance", "serve"]
    program = [sys.executable, "-m", "reference_server", *words[2:], ONE_MODEL]
    with programs.start_program(program) as process:
        programs.read_line(process)
        yield


def test_the_tutorial_of_servers(tmp_path: Path) -> None:
    _, wrong, doctor, judge, explain, right, replay = read_blocks("tutorials/server.md", "sh")
    port = find_free_port()
    doctor, judge, replay = (text.replace("8000", port) for text in (doctor, judge, replay))
    with started(wrong, port):
        assert run(tmp_path, doctor).returncode == 0
        judged = run(tmp_path, judge.replace("pytest ", QUICKLY))
        assert judged.returncode == 1
        assert "1. BIN-ORDER-O" in judged.stdout
        assert (tmp_path / "report.html").is_file()
        assert run(tmp_path, explain).stdout.startswith("BIN-ORDER-O\n")
        assert run(tmp_path, replay).returncode == 1
    with started(right, port):
        done = run(tmp_path, replay)
    assert done.returncode == 0, done.stdout


def test_the_pictures_show_what_a_run_prints(tmp_path: Path) -> None:
    printed, page = pictures.judge(tmp_path)
    terminal = pictures.TERMINAL.read_text(encoding="utf-8"), pictures.draw_terminal(printed)
    report = pictures.REPORT_TEXT.read_text(encoding="utf-8").splitlines(), pictures.read_report(page)
    for kept, new in (map(pictures.read_terminal, terminal), report):
        assert pictures.outline(kept) == pictures.outline(new), "make them anew: python -m tests.support.site.pictures"


def test_the_tutorial_of_the_gate(tmp_path: Path) -> None:
    serve, write, look, gate, history = read_blocks("tutorials/ci.md", "sh")
    port = find_free_port()
    write, gate = (text.replace("8000", port).replace("pytest ", QUICKLY) for text in (write, gate))
    with started(serve, port):
        assert run(tmp_path, write).returncode == 0
        looked = run(tmp_path, look)
        assert (looked.returncode, "give a reason" in looked.stdout) == (1, True)
        (tmp_path / "reports").mkdir()
        assert run(tmp_path, f"{gate.rstrip()} --conformance-report=reports/a.json").returncode == 0
    assert run(tmp_path, history).returncode == 0
    with started(serve.replace("binary-outputs-in-reverse", "inputs-read-big-endian"), port):
        assert run(tmp_path, gate).returncode == 1
    (entry,) = read_blocks("tutorials/ci.md", "toml")
    (tmp_path / "baseline.toml").write_text(entry)
    assert run(tmp_path, look).stdout == "1 baseline is valid\n"


def test_the_tutorial_of_clients(tmp_path: Path) -> None:
    watch = read_blocks("tutorials/client.md", "sh")[0].replace("client watch", "client watch --port 0 --grpc-port 0")
    (program,) = read_blocks("tutorials/client.md", "python")
    (tmp_path / "my_client.py").write_text(program)
    done = run(tmp_path, watch)
    assert done.returncode == 0, done.stdout
    assert "[1 2 3]" in done.stdout
    assert (tmp_path / "client.html").is_file()
