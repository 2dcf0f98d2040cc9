"""Prints the header, the summary with the unmet requirements, and the verdict of a run through pytest's reporter.

`report.terminal` and `report.terminal_findings` create the lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from conformance.discovery.discovery_result import Progress, ignore_progress
from conformance.judging.conclusion import Conclusion
from conformance.plugin.base_run import BaseRun
from conformance.plugin.collection import CheckItem
from conformance.plugin.server_run import ServerRun
from conformance.report import github, terminal
from conformance.report.lines import MARKUP, Line
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report
from conformance.spec.result import CheckResult

if TYPE_CHECKING:  # needed at the end only
    from conformance.report.view import View

Section = tuple[str, Iterable[Line | str]]  # a title and the lines below it


@contextmanager
def show_live_line(reporter: Any) -> Iterator[Progress]:
    """Yield a function that shows progress on one line of a terminal; clear the line at the end."""
    if reporter is None or not reporter.isatty:
        yield ignore_progress
        return
    yield lambda text: reporter.rewrite(text, erase=True)
    reporter.rewrite("", erase=True)
    reporter.rewrite("")


def print_header(run: BaseRun, reporter: Any) -> None:
    """Print the header lines, unless pytest's headers are turned off or there is nothing to judge."""
    if reporter is None or run.conclusion or not (reporter.showheader and not reporter.no_header):
        return
    for line in run.list_header_lines():
        reporter.write_line(line)


def print_duration(run: ServerRun, rows: Sequence[Case], reporter: Any) -> None:
    """Print about how long the rows of a run take, if that is long; `certify` reads it from a file descriptor."""
    for line in run.describe_duration(rows) if reporter is not None and not run.conclusion else ():
        reporter.write_line(line)
        if shown := os.environ.get(terminal.DURATION_VARIABLE):
            os.write(int(shown), f"{line}\n".encode())


def print_summary(run: BaseRun, report: Report | None, reporter: Any) -> None:
    """Print the summary and unmet requirements; the most urgent requirements come last, where users see them."""
    conclusion = run.conclusion
    if conclusion is None or report is None or not (conclusion.results or conclusion.robustness or conclusion.packs):
        return
    from conformance.report.view import build_view  # lazy: needed at the end only

    is_quiet, explains = reporter.verbosity < 0, reporter.verbosity > 0
    for title, section in _list_sections(run, conclusion, build_view(report), is_quiet=is_quiet, explains=explains):
        lines = [line if isinstance(line, Line) else Line(line, is_whole=True) for line in section]
        if lines:
            reporter.write_sep("=", title)
            _write_lines(reporter, lines)


def _list_sections(
    run: BaseRun, conclusion: Conclusion, view: View, *, is_quiet: bool, explains: bool
) -> Iterator[Section]:
    """Yield the sections of the summary.

    A run with a baseline shows only the differences from it; a run with `-q` shows only unmet requirements. With `-v`
    a section explains the words of the summary.
    """
    from conformance.report import pack_results, robustness, terminal_findings  # lazy: needed at the end only

    most = None if run.options.shows_all else terminal_findings.MAX_BLOCKS
    is_whole = not (is_quiet or view.gate)
    if view.gate:
        yield "gate", terminal.format_gate(view.gate)
    if is_whole and view.counts:
        yield "summary", terminal.format_summary(view)
        yield "MUSTs met", terminal.format_concerns(view)
        if explains:
            yield "words", terminal.explain_words(view)
    rerun, unmet = run.build_rerun_command(), view.choose_blocks(Outcome.FAIL)
    if run.shows_failures:
        yield "failures", terminal_findings.format_failures(unmet, rerun, max_blocks=most)
    if is_whole:
        yield "in error, or blocked", terminal_findings.format_blocked_or_error(view.stuck, max_blocks=most)
    if is_whole or view.gate:
        advised = view.choose_blocks(Outcome.ADVISORY)
        yield "advice", terminal_findings.format_advice(advised, max_blocks=most)
    for pack in view.packs:
        lines = pack_results.format_lines(pack, rerun, max_blocks=most, is_quiet=not is_whole)
        yield f"pack {pack.name}", lines
    yield "robustness", robustness.format_lines(view.robustness, rerun, max_blocks=most, is_quiet=not is_whole)
    if is_whole:
        yield "observations", terminal.format_observations(view.observations)
        yield "not judged", run.explain_unjudged(conclusion)
    yield "fix first", terminal_findings.format_fix_first(unmet)


def _write_lines(reporter: Any, lines: Iterable[Line]) -> None:
    """Write lines with pytest's terminal writer; on a terminal they are wrapped and colored."""
    writer = reporter.config.get_terminal_writer()
    width = writer.fullwidth if reporter.isatty else None
    for line in lines:
        for piece in line.wrap(width):
            writer.line(piece, **MARKUP[line.style])


def print_verdict(run: BaseRun, report: Report | None, reporter: Any) -> None:
    """Print what cannot be written, the workflow commands for GitHub Actions, then the verdict as the last line."""
    run.output.print_faults()
    conclusion = run.conclusion
    if reporter is None or conclusion is None:
        return
    for command in github.build_commands(report, os.environ):
        reporter.write_line(command)
    line = terminal.format_verdict(report, conclusion, run.name, run.discovery_result.offered)
    color = terminal.COLORS[conclusion.verdict.verdict if conclusion.gate is None else conclusion.gate.color]
    reporter.write_line(line, **{color: True, "bold": True})


MIN_INTERVAL_S = 0.1  # between updates
# The minimum rows and seconds for an estimate of the remaining time.
FEWEST_ROWS, SOONEST = 20, 2.0


class ProgressLine:
    """The progress line of a run; `is_live` is true while the line replaces pytest's dots."""

    def __init__(self, reporter: Any, session: pytest.Session) -> None:
        self.is_live = wants_progress_line(reporter, session.config)
        self._reporter, self._session = reporter, session
        self._started, self._shown = time.monotonic(), 0.0
        self._done = self._failed = 0
        if reporter is not None and any(isinstance(item, CheckItem) for item in session.items):
            reporter.showfspath = False  # rows of all areas take turns, and each turn would begin a line

    def show(self, result: CheckResult) -> None:
        """Count a result, and update the line unless it was updated a moment ago."""
        if not self.is_live:
            return
        now = time.monotonic()
        self._done += 1
        is_first_failure = result.outcome is Outcome.FAIL and not self._failed
        self._failed += result.outcome is Outcome.FAIL
        is_last = self._done >= self._session.testscollected
        if now - self._shown < MIN_INTERVAL_S and not (is_first_failure or is_last):
            return
        self._shown = now
        text = format_progress_line(
            result.area, self._done, self._session.testscollected, self._failed, now - self._started
        )
        self._reporter.rewrite(text[: self._reporter._tw.fullwidth - 1], erase=True)
        self._reporter.flush()

    def end(self) -> None:
        """Stop updating the line; pytest shows later results."""
        self.is_live = False


def wants_progress_line(reporter: Any, config: pytest.Config) -> bool:
    """Return whether to show the progress line: on a terminal, with default verbosity and output style."""
    is_plain = config.get_verbosity() == 0 and config.getini("console_output_style") != "classic"
    return bool(is_plain and reporter is not None and reporter.isatty)


def format_progress_line(area: str, done: int, total: int, failed: int, seconds: float) -> str:
    """Format the progress line.

    `area`: the area of the last row.
    `total`: the number of all rows; 0 if unknown.
    `seconds`: the seconds since the first row.
    """
    parts = [f"{area:16}{done} of {total} rows" if total else f"{area:16}{done} rows"]
    parts += [f"{failed} failed"] if failed else []
    if done >= FEWEST_ROWS and seconds >= SOONEST and total > done:
        left = round(seconds / done * (total - done))
        parts.append(f"about {left // 60}:{left % 60:02} left")
    return ", ".join(parts)
