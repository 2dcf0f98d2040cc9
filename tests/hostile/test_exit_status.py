"""Exit status 1 means nonconformant and nothing else: a wrong option is 4 and one sentence, a full disk is 6."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.servers import judge, reserve_closed_port

A_FEW = ("-k", "BIN-LISTED or BIN-ORDER-O")


def judge_on_full_disk(folder: Path, *arguments: str, kilobytes: int) -> subprocess.CompletedProcess[str]:
    """Run the suite in a folder; no file may have more than so many kilobytes there."""
    command = ["bash", "-c", f'ulimit -f {kilobytes}; exec "$@"', "bash", sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def left_by_another_run(path: Path) -> None:
    path.mkdir()
    (path / "run.har").mkdir()


def a_file(path: Path) -> None:
    path.write_text("")


@pytest.mark.parametrize(("make", "said"), [(a_file, "file exists"), (left_by_another_run, "files of another run")])
def test_unusable_folder_is_one_line_usage_error(
    tmp_path: Path, reference: str, make: Callable[[Path], None], said: str
) -> None:
    """Files that cannot be used: tests/judging/test_run_options.py."""
    make(tmp_path / "given")
    run = judge(tmp_path, f"--target-url={reference}", *A_FEW, "--conformance-evidence=given")
    (line,) = [line for line in run.stderr.splitlines() if line]
    assert run.returncode == 4
    assert line.startswith("ERROR: --conformance-evidence")
    assert said in line


def test_the_recording_of_a_run_that_judged_nothing_is_replaced(tmp_path: Path, reference: str) -> None:
    with reserve_closed_port() as port:
        assert judge(tmp_path, f"--target-url=http://127.0.0.1:{port}", "--conformance-evidence=e").returncode == 6
    nothing = (tmp_path / "e/run.har.xz").read_bytes()
    runs = [judge(tmp_path, f"--target-url={reference}", *A_FEW, "--conformance-evidence=e") for _ in range(2)]
    assert (tmp_path / "e/run.har.xz").read_bytes() != nothing
    assert runs[0].returncode != 4
    assert "contains files of another run" in runs[1].stderr


@pytest.mark.parametrize(("connections", "kilobytes"), [(1, 60), (2, 200)])  # each process may write so much
def test_a_recording_that_does_not_fit_the_disk_is_incomplete(
    tmp_path: Path, reference: str, connections: int, kilobytes: int
) -> None:
    own = ("--conformance-evidence=e", f"--conformance-concurrency={connections}", *(A_FEW if connections == 1 else ()))
    run = judge_on_full_disk(tmp_path, f"--target-url={reference}", *own, kilobytes=kilobytes)
    assert run.returncode == 6
    assert "\ncannot write the recording in e: File too large\n" in f"\n{run.stderr}"
    assert "Traceback" not in run.stdout + run.stderr
    assert list((tmp_path / "e").iterdir()) == []


def test_a_recording_that_does_not_fit_the_disk_during_discovery_leaves_no_file(tmp_path: Path, reference: str) -> None:
    run = judge_on_full_disk(tmp_path, f"--target-url={reference}", *A_FEW, "--conformance-evidence=e", kilobytes=1)
    assert run.returncode == 4
    assert "ERROR: --conformance-evidence: File too large" in run.stderr
    assert list((tmp_path / "e").iterdir()) == []


def test_a_report_that_does_not_fit_the_disk_is_incomplete(tmp_path: Path, reference: str) -> None:
    run = judge_on_full_disk(tmp_path, f"--target-url={reference}", *A_FEW, "--conformance-report=r.html", kilobytes=20)
    assert run.returncode == 6
    assert "cannot write the report r.html: File too large" in run.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("r.")] == []
