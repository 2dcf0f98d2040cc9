"""The end of a run: updates the baseline, writes recordings and reports, and chooses the exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest

from conformance.judging import evidence
from conformance.judging.baseline import revert_baseline
from conformance.judging.conclusion import (
    Conclusion,
    conclude_run,
    find_left_out_rows,
    find_missing_rows,
    index_rows,
    sort_results,
)
from conformance.judging.coverage import find_coverage
from conformance.judging.selection import matches_pattern
from conformance.judging.session import DISCOVERY_SCOPE
from conformance.plugin.base_run import BaseRun, format_now
from conformance.plugin.collection import FOLDER
from conformance.report import formats, github, json_report, output_files
from conformance.spec.check import Case, format_key
from conformance.spec.outcome import INCOMPLETE, NONCONFORMANT, Outcome
from conformance.spec.report import Report
from conformance.spec.result import CheckResult
from conformance.spec.verdict import EXIT_STATUS
from conformance.transport import journal

_FAILED = (Outcome.FAIL, Outcome.ERROR, Outcome.FIXED)  # outcomes with which pytest ends with status 1
FIRST = -2  # the place of discovery in a recording, before scopes that are no rows


def finish(run: BaseRun, config: pytest.Config, exitstatus: int) -> tuple[int, Report | None]:
    """Conclude the run, write its output files, and return the exit status and the report (None if nothing ran)."""
    if not run.has_started or (run.conclusion is None and config.option.collectonly):
        return exitstatus, None
    conclusion = run.conclusion or _conclude_run(run, has_ended_normally=_has_ended_normally(run, config, exitstatus))
    run.conclusion = conclusion
    report = _build_report(run, conclusion)
    _write_reports(run, report)
    if run.options.evidence is not None:
        _write_patterns(run, report, run.options.evidence)
        finish_recording = partial(_merge_recordings, run) if run.is_recorded else journal.remove
        run.output.write_or_report(run.recording, partial(finish_recording, run.options.evidence))
    status = _choose_exit_status(run, conclusion, config, exitstatus)
    return EXIT_STATUS[INCOMPLETE] if run.output.faults else status, report


def _has_ended_normally(run: BaseRun, config: pytest.Config, chosen: int) -> bool:
    """Return whether pytest ended normally; a run with paths from the user, or with failures of packs alone, did."""
    others = [result for result in run.results if result.extension not in run.subjects.packs]
    of_packs_alone = not run.stopped and not any(result.outcome in _FAILED for result in others)
    is_failed_by_pack = chosen == pytest.ExitCode.TESTS_FAILED and bool(run.subjects.packs) and of_packs_alone
    is_normal = chosen in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return is_normal or is_failed_by_pack or _has_paths(config)


def _has_paths(config: pytest.Config) -> bool:
    """Return whether the user passed paths, instead of running the installed suite."""
    return config.args != [str(FOLDER)]


def _choose_exit_status(run: BaseRun, conclusion: Conclusion, config: pytest.Config, chosen: int) -> int:
    """Return the exit status of the verdict or the regression gate, unless pytest's own status takes precedence."""
    verdict, gate = conclusion.verdict, conclusion.gate
    required = run.options.gate
    own = verdict.exit_status(required) if gate is None else gate.exit_status(verdict, conclusion.lost, required)
    if not own and gate is None:  # the user asked for packs: their verdicts count once the run's own is good
        own = max((pack.verdict.exit_status(required) for pack in conclusion.packs), default=own)
    if conclusion.judged_nothing and chosen != pytest.ExitCode.INTERRUPTED:
        return own
    if chosen not in (0, 1) and not run.was_cut_short:
        return chosen
    is_part = bool(conclusion.missing) and not conclusion.lost
    if _has_paths(config) or (
        is_part and verdict.verdict != INCOMPLETE
    ):  # a partial run can show failures, but not success
        return own if own == EXIT_STATUS[NONCONFORMANT] else chosen
    return own


def _conclude_run(run: BaseRun, *, has_ended_normally: bool) -> Conclusion:
    options = run.options
    results: Sequence[CheckResult] = sort_results(run.results, run.subjects)
    missing = find_missing_rows(
        results,
        options.profile,
        dangerous=options.dangerous,
        subjects=run.subjects,
        transports=run.transports,
        discovery_result=run.discovery_result,
    )
    baseline = options.baseline
    left_out: Sequence[Case] = ()
    if baseline is not None and not missing:
        left_out = find_left_out_rows(results, subjects=run.subjects, transports=run.transports)
    if baseline is not None and options.updates_baseline and options.baseline_file is not None:
        baseline = output_files.update_baseline(
            options.baseline_file, baseline, results, run.output, is_whole=not missing, left_out=left_out
        )
        results = [baseline.apply(revert_baseline(result)) for result in results]
    coverage = find_coverage(
        results,
        run.discovery_result,
        profile=options.profile,
        transports=run.transports,
        requested=run.extensions,
        party=run.party,
    )
    absent = (label for labels in missing.values() for label in labels)
    is_narrowed = has_ended_normally and not all(_is_excluded(label, run.never) for label in absent)
    return conclude_run(
        results,
        missing,
        baseline,
        run.stopped,
        options.gate,
        coverage=coverage,
        is_narrowed=is_narrowed,
        packs=run.subjects.packs,
        left_out=left_out,
    )


def _is_excluded(label: str, never: Iterable[str]) -> bool:
    """Return whether the target file lists a row under `never`."""
    names = (label, label.partition("[")[0])
    return any(matches_pattern(name, pattern) for pattern in never for name in names)


def _write_patterns(run: BaseRun, report: Report, folder: Path) -> None:
    """Write the failure patterns, which evidence of failed rows alone does not show."""
    if patterns := report.get("failure_patterns"):
        write = partial(
            output_files.write_atomically, folder / evidence.PATTERNS_FILE, json.dumps(patterns, indent=1) + "\n"
        )
        run.output.write_or_report("the failure patterns", write)


def _merge_recordings(run: BaseRun, folder: Path) -> None:
    rows = {format_key(check, row): place for (check, row), place in index_rows(run.subjects).items()}
    order = {DISCOVERY_SCOPE: FIRST, **rows}
    seed = None if run.options.profile == "explore" else run.seed
    journal.merge(
        folder, run.url, order, run.grpc_url, run.party, seed, run.list_request_options(), run.describe_client()
    )


def _build_report(run: BaseRun, conclusion: Conclusion) -> Report:
    return json_report.build(
        conclusion,
        run.discovery_result,
        url=run.url,
        grpc=run.grpc_url,
        options=run.list_report_options(),
        seed=run.seed,
        started=run.started,
        finished=format_now(),
        party=run.party,
        about=run.describe_target(),
    )


def _write_reports(run: BaseRun, report: Report) -> None:
    for path in run.options.reports:
        run.output.write_or_report(f"the report {path}", partial(formats.write, report, path))
    run.output.write_or_report("the summary of the GitHub step", partial(github.summarize, report, os.environ))
