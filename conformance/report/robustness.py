"""Robustness results in reports: shown beside the verdict, without effect on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.report import terminal_findings
from conformance.report.blocks import Block, build_blocks
from conformance.report.findings import Group, build_groups, has_reason
from conformance.report.lines import Line, Style
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.report import Report, ReportRow
from conformance.spec.text import escape_text

MAX_TEXT_CHARS = 600  # characters of the sentence on a terminal
HELD, NOT_HELD = (Outcome.PASS, Outcome.OBSERVED), (Outcome.ADVISORY,)


@dataclass(frozen=True, slots=True)
class Robustness:
    """The results of the robustness rows of a run, whose requests are hostile.

    Attributes:
        of: the number of rows that were judged: passed and failed.
        open: the number of rows that ran without a verdict: blocked or in error.
        blocks: the failed rows, by requirement.
        stuck: the rows that are blocked or in error, by reason.
        lost: why the suite could not reach the server in some rows; empty if the server was always reachable.
    """

    held: int
    of: int
    open: int
    blocks: list[Block]
    stuck: list[Group]
    lost: str

    @property
    def sentence(self) -> str:
        """One line with the numbers of rows that the server passed and that were not judged."""
        because = f": {self.lost}" if self.lost else ""
        return f"{self.held} of {self.of} rows passed{f', {self.open} not judged{because}' if self.open else ''}"


def from_checks(checks: Sequence[ReportRow]) -> Robustness:
    """Return the results of the robustness rows of a report."""
    held, missed = (sum(check["outcome"] in outcomes for check in checks) for outcomes in (HELD, NOT_HELD))
    found = build_groups(checks, Outcome.ERROR, Outcome.BLOCKED)
    unjudged = sum(len(group.rows) for group in found)
    lost = next((check["message"] for check in checks if has_reason(check, ReasonKind.TARGET_LOST)), "")
    return Robustness(held, held + missed, unjudged, build_blocks(checks, *NOT_HELD), found, lost)


def from_report(report: Report) -> Robustness | None:
    """Return the robustness results of a report, or None if robustness was not tested."""
    found = report.get("robustness")
    return None if found is None else from_checks(found["rows"])


def format_lines(found: Robustness | None, rerun: str, *, max_blocks: int | None, is_quiet: bool) -> Iterator[Line]:
    """Yield the terminal output: the numbers, and a block for each unmet requirement.

    `found`: the results; None if robustness was not tested.
    `max_blocks`: the maximum number of full blocks; None shows all.
    `is_quiet`: whether to show only the line with the numbers.
    """
    if found is None:
        return
    yield Line(
        f"robustness: {escape_text(found.sentence, MAX_TEXT_CHARS)}",
        Style.HEAD if found.held == found.of else Style.WARNING,
    )
    if not is_quiet:
        yield from terminal_findings.format_failures(found.blocks, rerun, max_blocks=max_blocks)
        yield from terminal_findings.format_blocked_or_error(found.stuck, max_blocks=max_blocks)
