"""A run that is interrupted while it asks what the target offers: incomplete, with its reports, and nothing left."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.hostile.bounds import RunResult, expect_within, run
from tests.hostile.proxy import Wire, run_hostile_proxy

INTERRUPTED = 2  # the exit status of pytest for such runs


def interrupted(folder: Path, number: signal.Signals, *arguments: str) -> RunResult:
    """Send a run a signal once it has asked its first question, which is never answered."""
    is_asked = threading.Event()

    def silence(wire: Wire) -> None:
        is_asked.set()
        wire.await_end()

    def send(pid: int) -> None:
        assert is_asked.wait(60)
        os.kill(pid, number)

    with run_hostile_proxy(None, silence) as peer:
        return run(folder, f"--target-url={peer.url}", *arguments, beside=send)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["sigint", "sigterm"])
def test_a_signal_in_the_survey_leaves_the_reports_that_were_wanted(tmp_path: Path, number: signal.Signals) -> None:
    wanted = ("--conformance-report=r.html", "--conformance-report=r.md", "--junitxml=j.xml")
    ended = interrupted(tmp_path, number, *wanted)
    expect_within(ended)
    assert (ended.status, ended.verdict) == (INTERRUPTED, "incomplete"), ended.output
    assert ended.why.startswith("interrupted during the discovery of http://127.0.0.1:")
    assert ended.output.splitlines()[-1].startswith("incomplete: interrupted during")
    assert ended.report["rows"] == []
    assert all("incomplete" in (tmp_path / name).read_text() for name in ("r.html", "r.md"))
    assert ElementTree.parse(tmp_path / "j.xml").getroot().tag == "testsuites"  # noqa: S314 - written by ourselves


def test_workers_are_not_even_started(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, signal.SIGINT, "-n", "2")
    expect_within(ended)
    assert (ended.status, ended.verdict) == (INTERRUPTED, "incomplete"), ended.output
