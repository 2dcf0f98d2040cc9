"""The bounds of a run are measured: what a hostile peer's row rests on."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from tests.hostile.bounds import expect_within, measure_resources, run_command


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_a_command_is_measured_from_its_start_to_its_end(tmp_path: Path) -> None:
    holds = "import time; a = b'x' * 150_000_000; print('told'); time.sleep(0.5)"
    ended = run_command(tmp_path, python(holds))
    assert (ended.status, ended.output) == (0, "told\n")
    assert ended.most_memory > 140
    with pytest.raises(AssertionError, match="MB"):
        expect_within(ended, megabytes=100)
    expect_within(ended)


def test_a_command_that_never_ends_is_ended(tmp_path: Path) -> None:
    ended = run_command(tmp_path, python("import time; time.sleep(600)"), seconds=0.2)
    assert ended.status == -9
    with pytest.raises(AssertionError, match=" s\n"):
        expect_within(ended, seconds=0.1)


def test_processes_and_files_that_are_left_are_named_and_ended(tmp_path: Path) -> None:
    file = "import os, pathlib; pathlib.Path(os.environ['TMPDIR'], 'x').touch()"
    leave = f"{file}; import subprocess; subprocess.Popen(['sleep', '600'])"
    ended = run_command(tmp_path, python(leave))
    assert ended.left_behind == ("sleep", "x")
    with pytest.raises(AssertionError, match="sleep"):
        expect_within(ended)


def test_what_this_process_holds_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    before = measure_resources()
    with (tmp_path / "x").open("w"):
        assert measure_resources().descriptors == before.descriptors + 1
    assert measure_resources() == before
    (own / "y").touch()
    assert measure_resources().files == before.files + 1
