"""Runs one unit of work, on this or another machine: a pytest run of the suite in a separate process.

The process is ended when its time is over, or when the unit is cancelled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.fleet.units import Outcome, RunFailure, Unit
from conformance.report.json_report import compute_suite_digest
from conformance.report.report_file import ReportError, read
from conformance.report.scope import describe_report_verdict
from conformance.spec.options import CHILD_INI, build_child_environment, format_arguments, list_isolation_arguments
from conformance.spec.report import Report
from conformance.spec.text import escape_text
from conformance.spec.verdict import EXIT_STATUS, Verdict

REPORT: Final = "report.json"
PAGE: Final = "report.html"
EVIDENCE: Final = "evidence"
TARGET: Final = "target.toml"
BASELINE: Final = "baseline.toml"
_OWN_STATUS: Final = tuple(EXIT_STATUS.values())
_USAGE: Final = 4
_MAX_LOG_BYTES: Final = 64 * 1024  # bytes at the end of a log that are searched for errors
# Time between two polls of the process, and time for a run to write its reports after its time limit.
POLL_INTERVAL_S: Final = 0.1
GRACE_PERIOD_S: Final = 60.0
LOG: Final = "run.log"  # pytest's output
# Environment variables with which a run writes CI summaries, which only a single run should write.
_NOT_PASSED_ON: Final = frozenset({"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"})


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The exit status of a process, and whether the fleet ended the process.

    Attributes:
        status: the exit status of the process; negative if a signal ended the process.
        was_late: whether the process exceeded its time limit.
        was_cancelled: whether the process was ended because the unit was cancelled.
    """

    status: int
    was_late: bool = False
    was_cancelled: bool = False


def always_continue() -> bool:
    """Return True, for units that cannot be cancelled."""
    return True


def judge_unit(unit: Unit, should_continue: Callable[[], bool] = always_continue) -> Outcome:
    """Judge the target of a unit; failures become part of the outcome.

    `should_continue`: polled during the run; when it returns False, the run is killed.
    """
    if unit.suite != compute_suite_digest():
        return Outcome(
            unit.name,
            EXIT_STATUS["incomplete"],
            trouble=RunFailure.OTHER_SUITE,
            said="another version of the suite is installed on the worker",
        )
    started = time.monotonic()
    try:
        with _open_folder(unit) as folder:
            ended = run_process(_prepare_arguments(unit, folder), folder, unit.seconds, should_continue)
            (folder / CHILD_INI).unlink(missing_ok=True)
            return _build_outcome(unit, folder, ended, time.monotonic() - started)
    except OSError as error:
        said = f"cannot use the folder: {error.strerror or type(error).__name__}"
        return Outcome(unit.name, EXIT_STATUS["incomplete"], trouble=RunFailure.WORKER, said=said)


@contextmanager
def _open_folder(unit: Unit) -> Iterator[Path]:
    """Yield the folder of the unit, or a temporary one."""
    if unit.folder:
        yield Path(unit.folder)
        return
    with tempfile.TemporaryDirectory(prefix="oip-fleet-") as folder:
        yield Path(folder)


def _prepare_arguments(unit: Unit, folder: Path) -> list[str]:
    """Write the input files of the run, and return pytest's arguments."""
    (folder / CHILD_INI).write_text("[pytest]\n", encoding="utf-8")
    (folder / TARGET).write_text(unit.target, encoding="utf-8")
    if unit.baseline is not None and (unit.baseline or not unit.options.get("--conformance-update-baseline")):
        (folder / BASELINE).write_text(unit.baseline, encoding="utf-8")
    of_files = {
        "--target-config": TARGET,
        "--conformance-baseline": None if unit.baseline is None else BASELINE,
        "--conformance-evidence": EVIDENCE if unit.evidence else None,
        "--conformance-report": (REPORT, PAGE),
    }
    return [*list_isolation_arguments("."), "--color=no", *format_arguments({**unit.options, **of_files})]


def _build_outcome(unit: Unit, folder: Path, ended: ProcessExit, seconds: float) -> Outcome:
    report = _read_report(folder)
    trouble, said = _find_failure(unit, folder, ended, report)
    is_reached = report is None or not report["target"].get("unreachable", False)
    kept = {} if unit.folder or trouble is RunFailure.STOPPED else _read_files(folder)
    status = _find_exit_status(unit, ended, report)
    verdict = describe_report_verdict(report) if report else ""
    return Outcome(unit.name, status, is_reached, round(seconds, 1), trouble, said, verdict, unit.folder, kept)


def _find_failure(unit: Unit, folder: Path, ended: ProcessExit, report: Report | None) -> tuple[RunFailure | None, str]:
    if ended.was_cancelled:
        return RunFailure.STOPPED, "ended"
    if ended.was_late:
        return RunFailure.TIME, f"took longer than {unit.seconds:g} s"
    if ended.status == _USAGE:
        return RunFailure.USAGE, _read_last_error(folder)
    if report is None:
        return RunFailure.CRASHED, f"left no report (status {ended.status}): see {LOG}"
    return None, ""


def _find_exit_status(unit: Unit, ended: ProcessExit, report: Report | None) -> int:
    """Return the exit status of a run; derive the status of a run that was cut short from the partial report."""
    if report is None:
        return EXIT_STATUS["incomplete"]
    if ended.status in _OWN_STATUS and not ended.was_late:
        return ended.status
    gate, required = report.get("gate"), unit.options.get("--conformance-gate")
    verdict = Verdict(report["verdict"], interoperable=report["interoperable"])
    is_worse = verdict.exit_status(required) == EXIT_STATUS["nonconformant"] if gate is None else not gate["passed"]
    return EXIT_STATUS["nonconformant" if is_worse else "incomplete"]


def _read_report(folder: Path) -> Report | None:
    try:
        return read(folder / REPORT)
    except ReportError:
        return None


def _read_last_error(folder: Path) -> str:
    """Return pytest's last error message about the options of a run."""
    with (folder / LOG).open("rb") as log:
        log.seek(max(0, (folder / LOG).stat().st_size - _MAX_LOG_BYTES))
        lines = log.read().decode("utf-8", "replace").splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return escape_text(errors[-1], 600) if errors else f"cannot be judged with these options: see {LOG}"


def _read_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the process ------------------------------------------------------------------------------------------------------


def run_process(
    arguments: Sequence[str],
    folder: Path,
    seconds: float,
    should_continue: Callable[[], bool],
    *,
    grace: float = GRACE_PERIOD_S,
) -> ProcessExit:
    """Run pytest in a folder; afterwards kill all processes that pytest started.

    Args:
        arguments: pytest's arguments; they may hold secrets.
        folder: working folder; pytest's output goes to `LOG` there.
        seconds: time limit, after which pytest is asked to stop and write its reports.
        should_continue: polled during the run; when it returns False, the process is killed.
        grace: seconds between the request to stop and the kill.

    Raises OSError: the process cannot be started.
    """
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "conformance.fleet.child"],
            cwd=folder,
            env={name: text for name, text in build_child_environment().items() if name not in _NOT_PASSED_ON},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches only the fleet, and the process group can be killed as one
        )
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(list(arguments)).encode() + b"\n")
            process.stdin.flush()
        return _wait_for_exit(process, seconds, should_continue, grace)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with suppress(BrokenPipeError):
            process.stdin and process.stdin.close()


def _wait_for_exit(
    process: subprocess.Popen[bytes], seconds: float, should_continue: Callable[[], bool], grace: float
) -> ProcessExit:
    end, was_late = time.monotonic() + seconds, False
    while True:
        with suppress(subprocess.TimeoutExpired):
            return ProcessExit(process.wait(POLL_INTERVAL_S), was_late)
        if not should_continue():
            return ProcessExit(-signal.SIGKILL, was_cancelled=True)
        if time.monotonic() >= end:
            if was_late:
                return ProcessExit(-signal.SIGKILL, was_late=True)
            process.terminate()
            end, was_late = time.monotonic() + grace, True
