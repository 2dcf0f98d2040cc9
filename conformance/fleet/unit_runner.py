"""One unit of work, done: a run of the suite as pytest makes it, in a process of its own. Here, or on any machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from conformance.fleet import child_process
from conformance.fleet.child_process import LOG, ProcessExit
from conformance.fleet.unit import Outcome, RunFailure, Unit
from conformance.report.json_report import compute_suite_digest
from conformance.report.report_file import ReportError, read
from conformance.spec.text import escape_text
from conformance.spec.verdict import EXIT_STATUS, Verdict, describe_verdict

REPORT: Final = "report.json"
PAGE: Final = "report.html"
EVIDENCE: Final = "evidence"
TARGET: Final = "target.toml"
BASELINE: Final = "baseline.toml"
_INI: Final = "pytest.ini"  # empty: nothing of the user's own shapes the run
_OWN_STATUS: Final = tuple(EXIT_STATUS.values())
_USAGE: Final = 4
_LOGGED: Final = 64 * 1024  # bytes at the end of a log that are looked at


def is_always_wanted() -> bool:
    """Say that a unit is wanted: where nobody can end the fleet."""
    return True


def judge_unit(unit: Unit, is_wanted: Callable[[], bool] = is_always_wanted) -> Outcome:
    """Judge the target of a unit; whatever goes wrong is part of the outcome.

    Args:
        unit: of work.
        is_wanted: asked all the time; when it says no, all that runs here for the unit is ended.
    """
    if unit.suite != compute_suite_digest():
        return Outcome(
            unit.name,
            EXIT_STATUS["incomplete"],
            trouble=RunFailure.OTHER_SUITE,
            said="another suite is installed there",
        )
    started = time.monotonic()
    try:
        with _folder(unit) as folder:
            ended = child_process.run(_arguments(unit, folder), folder, unit.seconds, is_wanted)
            (folder / _INI).unlink(missing_ok=True)
            return _outcome(unit, folder, ended, time.monotonic() - started)
    except OSError as error:
        said = f"cannot work there: {error.strerror or type(error).__name__}"
        return Outcome(unit.name, EXIT_STATUS["incomplete"], trouble=RunFailure.WORKER, said=said)


@contextmanager
def _folder(unit: Unit) -> Iterator[Path]:
    """Yield the folder of the unit, or one that is taken away."""
    if unit.folder:
        yield Path(unit.folder)
        return
    with tempfile.TemporaryDirectory(prefix="oip-fleet-") as folder:
        yield Path(folder)


def _arguments(unit: Unit, folder: Path) -> list[str]:
    """Write what the run reads, and return pytest's arguments."""
    (folder / _INI).write_text("[pytest]\n", encoding="utf-8")
    (folder / TARGET).write_text(unit.target, encoding="utf-8")
    given = [f"--target-config={TARGET}", f"--conformance-profile={unit.profile}"]
    if unit.gate is not None:
        given.append(f"--conformance-gate={unit.gate}")
    if unit.baseline is not None:
        given.append(f"--conformance-baseline={BASELINE}")
        if unit.baseline or not unit.updates_baseline:
            (folder / BASELINE).write_text(unit.baseline, encoding="utf-8")
    options: Mapping[str, Any] = {
        "--conformance-update-baseline": unit.updates_baseline,
        "--conformance-strict": unit.strict,
    }
    return [
        *("-q", "-c", _INI, "--rootdir=.", "-p", "no:cacheprovider", "-p", "conformance.plugin", "--color=no"),
        *given,
        *(name for name, is_given in options.items() if is_given),
        *([f"--target-url={unit.url}"] if unit.url else []),
        *(f"--target-header={header}" for header in unit.headers),
        *(f"--target-model={model}" for model in unit.models),
        *([f"--conformance-concurrency={unit.connections}"] if unit.connections else []),
        *([f"--conformance-evidence={EVIDENCE}"] if unit.evidence else []),
        *(f"--conformance-report={name}" for name in (REPORT, PAGE)),
    ]


def _outcome(unit: Unit, folder: Path, ended: ProcessExit, seconds: float) -> Outcome:
    report = _report(folder)
    trouble, said = _trouble(unit, folder, ended, report)
    is_reached = report is None or not report["target"].get("unreachable", False)
    kept = {} if unit.folder or trouble is RunFailure.STOPPED else _files(folder)
    status = _status(unit, ended, report)
    verdict = describe_verdict(report["verdict"], report["interoperable"]) if report else ""
    return Outcome(unit.name, status, is_reached, round(seconds, 1), trouble, said, verdict, unit.folder, kept)


def _trouble(
    unit: Unit, folder: Path, ended: ProcessExit, report: Mapping[str, Any] | None
) -> tuple[RunFailure | None, str]:
    if ended.was_unwanted:
        return RunFailure.STOPPED, "ended"
    if ended.was_late:
        return RunFailure.TIME, f"took longer than {unit.seconds:g} s"
    if ended.status == _USAGE:
        return RunFailure.USAGE, _last_error(folder)
    if report is None:
        return RunFailure.CRASHED, f"left no report (status {ended.status}): see {LOG}"
    return None, ""


def _status(unit: Unit, ended: ProcessExit, report: Mapping[str, Any] | None) -> int:
    """Return the status of a run: its own, or what the rules of one run make of a report that is cut short."""
    if report is None:
        return EXIT_STATUS["incomplete"]
    if ended.status in _OWN_STATUS and not ended.was_late:
        return ended.status
    gate = report.get("gate")
    verdict = Verdict(report["verdict"], interoperable=report["interoperable"])
    is_worse = verdict.exit_status(unit.gate) == EXIT_STATUS["nonconformant"] if gate is None else not gate["passed"]
    return EXIT_STATUS["nonconformant" if is_worse else "incomplete"]


def _report(folder: Path) -> dict[str, Any] | None:
    try:
        return read(folder / REPORT)
    except ReportError:
        return None


def _last_error(folder: Path) -> str:
    """Return what pytest said about the options of a run."""
    with (folder / LOG).open("rb") as log:
        log.seek(max(0, (folder / LOG).stat().st_size - _LOGGED))
        lines = log.read().decode("utf-8", "replace").splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return escape_text(errors[-1], 600) if errors else f"cannot be judged so: see {LOG}"


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
