"""`oip-conformance fleet` as a user runs it: the example of the page, usage errors, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.commands.main import main
from conformance.fleet import fleet_file
from tests.support.programs import find_children, is_running
from tests.support.servers import run_bundled, run_command
from tests.support.small_fleets import BRIEF, make_fleet_text, read_index, write_fleet

PAGE = (Path(__file__).parents[2] / "docs/fleet.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
PROGRAM = "import sys; from conformance.commands.main import main; sys.exit(main())"


@pytest.mark.usefixtures("few_rows")
def test_the_example_of_the_page_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first target, for the second is the same."""
    from conformance.commands.main import main

    assert [target.name for target in fleet_file.load(write_fleet(tmp_path, EXAMPLES[0])).targets] == [
        "stable",
        "canary",
    ]
    write_fleet(tmp_path, EXAMPLES[0].partition("[targets.canary]")[0])
    assert "oip-conformance fleet fleet.toml -o fleet\n" in PAGE
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", "fleet.toml", "-o", "fleet"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["index: fleet/index.html", "1 target: 1 partial"]
    (found,) = json.loads((tmp_path / "fleet" / "index.json").read_text())["targets"]
    assert (tmp_path / "fleet" / found["folder"] / "report.html").is_file()


def test_the_long_example_of_the_page_is_a_fleet_file(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "bert.toml").write_text('url = "http://bert"\n')
    (tmp_path / "endpoints.txt").write_text("http://a\n")
    found = fleet_file.load(write_fleet(tmp_path, EXAMPLES[1]))
    assert [target.name for target in found.targets] == ["resnet-eu", "bert", "10.0.0.7-8000", "a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.toml", "-o", "out"], "gone.toml: No such file or directory"),
        (["fleet.toml"], "the following arguments are required: -o/--output"),
        (["fleet.toml", "-o", "out", "--bogus"], "unknown option --bogus"),
        (["fleet.toml", "-o", "out", "--workers", "0"], "--workers 0: give a number of targets, 1 or more"),
        (["fleet.toml", "-o", "out", "--update-baselines"], "no target has a baseline: set `baselines`"),
        (
            ["fleet.toml", "-o", "out", "--workers", "2", "--scheduler", "x"],
            "--workers cannot be combined with --scheduler",
        ),
        (["fleet.toml", "-o", "fleet.toml"], "cannot write fleet.toml: "),
    ],
)
def test_usage_errors_are_one_line_and_status_4(
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_fleet(tmp_path, make_fleet_text("a"))
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["fleet", *arguments])
    except SystemExit as ended:
        status = int(str(ended.code))
    said = capsys.readouterr().err
    assert (status, "Traceback" in said) == (4, False)
    assert message in said.splitlines()[-1]


def test_other_commands_keep_their_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["roles", "--bogus"])
    assert ended.value.code == 2
    assert "unknown option --bogus" in capsys.readouterr().err


@pytest.fixture
def half_silent(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a fleet with a target that is judged at once, and one that never answers."""
    with run_bundled("--model=identity_int32") as url, socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        port = silent.getsockname()[1]
        write_fleet(
            tmp_path,
            f'{BRIEF}timeout = 600\n[targets.quick]\nurl = "{url}"\n[targets.silent]\nurl = "http://127.0.0.1:{port}"\n',
        )
        yield tmp_path


def start_fleet(folder: Path) -> subprocess.Popen[bytes]:
    """Start the fleet; return once a target is done and the other one is under way."""
    # A shell that runs the tests in the background has them ignore SIGINT, and all that they start.
    heeding = ("env", "--default-signal=INT,TERM", sys.executable)
    fleet = subprocess.Popen([*heeding, "-c", PROGRAM, "fleet", "fleet.toml", "-o", "out"], cwd=folder)
    while not list((folder / "out").glob("runs/*/quick/done.json")):
        assert fleet.poll() is None
        time.sleep(0.01)
    return fleet


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_fleet_with_all_its_children_and_an_index(half_silent: Path, number: int) -> None:
    fleet = start_fleet(half_silent)
    left = find_children(fleet.pid)
    os.kill(fleet.pid, number)
    assert fleet.wait(timeout=60) == 2
    assert left
    assert not any(map(is_running, left))
    counts = read_index(half_silent)["counts"]
    assert (counts["incomplete"], counts["not_run"]) == (1, 1)


def test_a_fleet_that_was_killed_goes_on_where_it_was(half_silent: Path) -> None:
    fleet = start_fleet(half_silent)
    left = find_children(fleet.pid)
    fleet.kill()
    fleet.wait()
    while any(map(is_running, left)):  # they end by themselves
        time.sleep(0.01)
    (before,) = (half_silent / "out").glob("runs/*/quick/done.json")
    stamp = before.stat().st_mtime_ns
    text = (half_silent / "fleet.toml").read_text()
    with run_bundled("--model=identity_int32") as url:
        head, _, _ = text.partition("[targets.silent]")
        (half_silent / "fleet.toml").write_text(f'{head}[targets.silent]\nurl = "{url}"\n')
        done = run_command(half_silent, "fleet", "fleet.toml", "-o", "out")
    assert done.returncode == 6, done.stdout + done.stderr
    assert "resuming the run of " in done.stdout
    assert "1 of 2 targets are done" in done.stdout
    assert before.stat().st_mtime_ns == stamp
    assert len(list((half_silent / "out" / "runs").glob("*.json"))) == 1
