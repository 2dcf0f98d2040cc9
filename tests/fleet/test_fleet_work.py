"""A unit of work, done for real: by a run of the suite in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.fleet import unit_runner, units
from conformance.fleet.fleet_file import load
from conformance.fleet.units import RunFailure, Unit
from conformance.report.json_report import compute_suite_digest
from tests.support.programs import find_children, is_running
from tests.support.servers import run_bundled
from tests.support.small_fleets import BRIEF, PLAIN, SMALL, write_fleet
from tests.support.valid_reports import read_valid_report

pytestmark = pytest.mark.usefixtures("few_rows")
HIDDEN = "s3cret-token-of-a-fleet"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with run_bundled("--model=identity_int32") as found:
        yield found


def unit(folder: Path, url: str, more: str = "", head: str = BRIEF) -> Unit:
    fleet = load(write_fleet(folder, f'{head}[targets.a]\nurl = "{url}"\n{more}'))
    (folder / "a").mkdir()
    return replace(units.make_units(fleet, here=True)[0], folder=str(folder / "a"))


def log(folder: Path) -> str:
    return (folder / "a" / "run.log").read_text()


def test_a_run_leaves_what_a_run_leaves_and_no_secret(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OIP_TARGET_TIMEOUT", "0.001")  # of the user's own runs
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("TOKEN", HIDDEN)
    headers = f'headers = {{ X-Plain = "{HIDDEN}", Authorization = "Bearer ${{TOKEN}}" }}'
    asked = unit(tmp_path, url, headers, PLAIN)
    outcome = unit_runner.judge_unit(asked)
    assert (outcome.status, outcome.verdict, outcome.trouble, outcome.is_reached) == (0, "partial", None, True), log(
        tmp_path
    )
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        *("evidence", "report.html", "report.json", "run.log", "target.toml")
    ]
    found = read_valid_report(tmp_path / "a" / "report.json")
    assert (found["verdict"], found["options"]["headers"]) == ("partial", ["Authorization", "X-Plain"])
    assert [
        path for path in (tmp_path / "a").rglob("*") if path.is_file() and HIDDEN.encode() in path.read_bytes()
    ] == []
    assert not (tmp_path / "summary").exists()


@pytest.mark.parametrize(("limits", "connections"), [("", None), ("limits.connections = 2", 2)])
def test_runs_of_a_fleet_share_the_cores(tmp_path: Path, url: str, limits: str, connections: int | None) -> None:
    unit_runner.judge_unit(unit(tmp_path, url, limits, PLAIN))
    found = read_valid_report(tmp_path / "a" / "report.json")
    assert found["options"].get("connections") == connections


def test_without_a_folder_the_files_come_back(tmp_path: Path, url: str) -> None:
    outcome = unit_runner.judge_unit(replace(unit(tmp_path, url), folder="", evidence=False))
    assert sorted(outcome.files) == ["report.html", "report.json", "run.log", "target.toml"]
    assert json.loads(outcome.files["report.json"])["verdict"] == "incomplete"


def test_a_target_that_is_not_there_was_not_reached(tmp_path: Path) -> None:
    outcome = unit_runner.judge_unit(unit(tmp_path, "http://127.0.0.1:9", "timeout = 0.2"))
    assert (outcome.status, outcome.is_reached, outcome.trouble) == (6, False, None)
    assert read_valid_report(tmp_path / "a" / "report.json")["target"]["unreachable"] is True


def test_a_baseline_is_the_gate_and_can_be_written_anew(tmp_path: Path) -> None:
    with run_bundled("--model=identity_int32", "--fault=size-counts-elements") as url:
        whole = replace(unit(tmp_path, url, head=SMALL), evidence=False)
        assert unit_runner.judge_unit(whole).status == 1, log(tmp_path)
        anew = replace(whole, baseline="", options={**whole.options, "--conformance-update-baseline": True})
        assert unit_runner.judge_unit(anew).status == 0, log(tmp_path)
        baseline = (tmp_path / "a" / "baseline.toml").read_text()
        assert "[[known]]" in baseline
        assert unit_runner.judge_unit(replace(whole, baseline=baseline)).status == 0, log(tmp_path)


def test_what_cannot_be_used_where_it_runs_is_said(tmp_path: Path, url: str) -> None:
    asked = unit(tmp_path, url)
    outcome = unit_runner.judge_unit(replace(asked, target=asked.target + '[headers]\nX = "${NO_SUCH_VARIABLE}"\n'))
    assert (outcome.status, outcome.trouble) == (6, RunFailure.USAGE)
    assert outcome.said.endswith("headers.X: the environment has no variable NO_SUCH_VARIABLE")


def test_another_suite_judges_nothing() -> None:
    assert unit_runner.judge_unit(Unit("a", "", "another")).trouble is RunFailure.OTHER_SUITE


def test_a_folder_that_is_gone_is_trouble_of_the_worker(tmp_path: Path) -> None:
    outcome = unit_runner.judge_unit(Unit("a", "", compute_suite_digest(), folder=str(tmp_path / "gone")))
    assert (outcome.trouble, outcome.said) == (RunFailure.WORKER, "cannot use the folder: No such file or directory")


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path, silent: str) -> None:
    asked = unit(tmp_path, silent, "timeout = 600\nlimits.time = 5")
    outcome = unit_runner.judge_unit(asked)
    assert (outcome.status, outcome.trouble, outcome.said) == (6, RunFailure.TIME, "took longer than 5 s")


def test_nobody_has_to_want_it(tmp_path: Path, silent: str) -> None:
    asked = unit(tmp_path, silent, "timeout = 600")
    outcome = unit_runner.judge_unit(asked, lambda: False)
    assert outcome.trouble is RunFailure.STOPPED


def test_a_child_that_does_not_heed_is_ended_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(deaf))
    ended = unit_runner.run_process([], tmp_path, 0.2, unit_runner.always_continue, grace=0.2)
    assert (ended.was_late, ended.status) == (True, -signal.SIGKILL)


def test_a_child_ends_with_whoever_started_it(tmp_path: Path, silent: str) -> None:
    """However that comes to its end: with SIGKILL, nobody has time to tell anybody."""
    program = (
        "import sys; from pathlib import Path; from conformance.fleet import unit_runner;"
        f"unit_runner.run_process(['--target-url={silent}', '--target-timeout=600'], Path('.'), 600, lambda: True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) as parent:
        while not (found := find_children(parent.pid)):
            assert parent.poll() is None
            time.sleep(0.01)
        parent.kill()
    while any(map(is_running, found)):
        time.sleep(0.01)


def test_arguments_stand_on_no_command_line(tmp_path: Path, silent: str) -> None:
    seen: list[bytes] = []

    def should_continue() -> bool:
        seen.extend(Path(f"/proc/{child}/cmdline").read_bytes() for child in find_children(os.getpid()))
        return False

    unit_runner.judge_unit(unit(tmp_path, silent, f'headers = {{ X-Plain = "{HIDDEN}" }}'), should_continue)
    assert any(b"conformance.fleet.child" in line for line in seen)
    assert not any(HIDDEN.encode() in line for line in seen)


@pytest.mark.parametrize(("gate", "status"), [("", 0), ('gate = "conformant"\n', 6), ('gate = "interoperable"\n', 6)])
def test_the_gate_decides_the_status_and_not_the_verdict(tmp_path: Path, url: str, gate: str, status: int) -> None:
    outcome = unit_runner.judge_unit(unit(tmp_path, url, head=f"{gate}{PLAIN}"))
    assert (outcome.status, outcome.verdict) == (status, "partial"), log(tmp_path)
