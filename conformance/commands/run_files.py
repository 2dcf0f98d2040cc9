"""The files of a run outside pytest: reports, evidence and baseline, with the same option names as in pytest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from conformance.judging import baseline_file
from conformance.judging.baseline import Baseline, revert_baseline
from conformance.judging.baseline_file import BaselineError
from conformance.report import formats, output_files
from conformance.report.output_files import OutputWriter, claim_folder
from conformance.spec.result import CheckResult
from conformance.spec.user_error import UserError
from conformance.transport import journal


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The output files of a run, and its baseline of known failures.

    Attributes:
        baseline: None without a baseline file.
        updates_baseline: whether to rewrite the baseline file.
        writer: writes the files, and records the files that could not be written.
    """

    reports: tuple[Path, ...] = ()
    evidence: Path | None = None
    baseline: Baseline | None = None
    baseline_path: Path | None = None
    updates_baseline: bool = False
    writer: OutputWriter = field(default_factory=OutputWriter)


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    known = ", ".join(formats.FORMATS)
    parser.add_argument(
        "--conformance-report", metavar="PATH", type=Path, action="append", default=[],
        help=f"write a report (repeatable); the suffix chooses the format: {known}",
    )  # fmt: skip
    parser.add_argument(
        "--conformance-evidence", metavar="DIR", type=Path,
        help="write run.har.xz, a recording of every request, and a folder for each requirement that is not met",
    )  # fmt: skip
    parser.add_argument(
        "--conformance-baseline", metavar="FILE", type=Path,
        help="ignore the failures that this TOML file lists; new failures fail the run, and so do listed ones that are "
        "fixed",
    )  # fmt: skip
    parser.add_argument(
        "--conformance-update-baseline", action="store_true",
        help="rewrite the baseline from this run; comments are kept",
    )  # fmt: skip


def read_files(options: argparse.Namespace) -> RunFiles:
    """Read the options.

    Raises:
        UserError: a path is invalid, or the baseline cannot be read.
    """
    for path in options.conformance_report:
        if formats.find_suffix(path) is None:
            known = ", ".join(formats.FORMATS)
            raise UserError(f"--conformance-report {path}: unknown suffix {path.suffix!r}, known are {known}")
        if not path.absolute().parent.is_dir():
            raise UserError(f"--conformance-report {path}: no folder {path.absolute().parent}")
    path, updates = options.conformance_baseline, options.conformance_update_baseline
    if updates and path is None:
        raise UserError("--conformance-update-baseline needs --conformance-baseline FILE")
    reports, evidence = tuple(options.conformance_report), options.conformance_evidence
    if evidence is not None and (fault := claim_folder(evidence, journal.STALE_PATTERNS)):
        raise UserError(f"--conformance-evidence {evidence}: {fault}")
    return RunFiles(reports, evidence, _load_baseline(path, updates=updates), path, updates)


def _load_baseline(path: Path | None, *, updates: bool) -> Baseline | None:
    if path is None or (updates and not path.exists()):
        return None if path is None else Baseline()
    try:
        return baseline_file.load(path)
    except BaselineError as error:
        raise UserError(str(error)) from error


def apply_baseline(
    files: RunFiles, results: Sequence[CheckResult], *, is_whole: bool
) -> tuple[Baseline | None, Sequence[CheckResult]]:
    """Update the baseline if requested; return the baseline, and the results with the baseline applied."""
    baseline, path = files.baseline, files.baseline_path
    if baseline is None or path is None:
        return None, results
    if files.updates_baseline:
        found = [baseline.apply(result) for result in results]
        baseline = output_files.update_baseline(path, baseline, found, files.writer, is_whole=is_whole)
    return baseline, [baseline.apply(revert_baseline(result)) for result in results]


def write_reports(files: RunFiles, report: dict[str, Any]) -> None:
    """Write every requested report; report an error for each one that cannot be written."""
    for path in files.reports:
        files.writer.write_or_report(f"the report {path}", partial(formats.write, report, path))
