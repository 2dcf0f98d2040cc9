"""The end that a signal makes of a run: nothing is left running, and what was judged is in the reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.programs import find_children, is_running

LIMIT = 60.0


def await_that(condition: object, what: str) -> None:
    """Wait until a condition holds."""
    assert callable(condition)
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@contextmanager
def start_judging(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the suite against the bundled server, and yield once rows are judged."""
    # A shell that runs the tests in the background has them ignore SIGINT, and all that they start.
    heeding = ("env", "--default-signal=INT,TERM", sys.executable)
    options = ("--target-url=reference", "-v", "--conformance-profile=quick", "--conformance-report=r.json", *arguments)
    output = (folder / "out").open("w")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [*heeding, "-m", "pytest", *options]
    with output, subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output) as run:
        try:
            await_that(lambda: "PASS" in (folder / "out").read_text(), "a row that is judged")
            yield run
        finally:
            run.kill()


@pytest.mark.parametrize(
    ("number", "workers", "times"),
    [(signal.SIGINT, (), 1), (signal.SIGTERM, (), 2), (signal.SIGTERM, ("-n", "2"), 1)],
    ids=["sigint-one-process", "sigterm-twice", "sigterm-two-workers"],
)
def test_a_signal_ends_the_run_and_all_that_it_started(
    tmp_path: Path, number: signal.Signals, workers: tuple[str, ...], times: int
) -> None:
    with start_judging(tmp_path, *workers) as run:
        started = find_children(run.pid)
        assert started
        for _ in range(times):
            run.send_signal(number)
            time.sleep(0.05)  # or the system makes one signal of several
        status = run.wait(LIMIT)
    text = (tmp_path / "out").read_text()
    report = json.loads((tmp_path / "r.json").read_text())
    assert status == 2, text
    assert (report["verdict"], report["footer"]["complete"]) == ("incomplete", False)
    assert report["rows"]
    assert "is incomplete" in text.splitlines()[-1]
    assert "Traceback" not in text
    await_that(lambda: not any(map(is_running, started)), f"the end of {started}")


def test_the_bundled_server_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    with start_judging(tmp_path) as run:
        started = find_children(run.pid)
        assert started
        run.kill()
        run.wait(LIMIT)
        await_that(lambda: not any(map(is_running, started)), f"the end of {started}")
