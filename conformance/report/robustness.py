"""What a server withstands, as reports show it: beside the verdict, and no part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.report import terminal_findings
from conformance.report.blocks import Block, build_blocks
from conformance.report.findings import Entry, Group, build_groups
from conformance.report.lines import Line, Style
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text

MAX_TEXT_CHARS = 600  # characters of the sentence on a terminal
HELD, NOT_HELD = (Outcome.PASS, Outcome.OBSERVED), (Outcome.ADVISORY,)


@dataclass(frozen=True, slots=True)
class Robustness:
    """What became of the hostile requests of a run.

    Attributes:
        held: how many rows the server withstood, `of` so many that were judged; `open` were sent and not judged.
        blocks: what it did not withstand, by requirement.
        stuck: what could not be judged.
        lost: why the server was gone for some of it; empty where it never was.
    """

    held: int
    of: int
    open: int
    blocks: list[Block]
    stuck: list[Group]
    lost: str

    @property
    def sentence(self) -> str:
        """The numbers, on one line."""
        because = f": {self.lost}" if self.lost else ""
        return f"{self.held} of {self.of} held{f', {self.open} not judged{because}' if self.open else ''}"


def from_checks(checks: Sequence[Entry]) -> Robustness:
    """Return what became of the checks of a run, which have the form of the report."""
    held, missed = (sum(check["outcome"] in outcomes for check in checks) for outcomes in (HELD, NOT_HELD))
    found = build_groups(checks, Outcome.ERROR, Outcome.BLOCKED)
    unjudged = sum(len(group.rows) for group in found)
    lost = next((str(check["message"]) for check in checks if _is_lost(check)), "")
    return Robustness(held, held + missed, unjudged, build_blocks(checks, *NOT_HELD), found, lost)


def _is_lost(check: Entry) -> bool:
    reason = check.get("reason")
    return bool(reason and reason["kind"] == ReasonKind.TARGET_LOST)


def from_report(report: Mapping[str, Any]) -> Robustness | None:
    """Return what became of it in a report; None where it was not asked for."""
    found = report.get("robustness")
    return None if found is None else from_checks(found["rows"])


def build_report_member(checks: Sequence[Entry]) -> dict[str, Any]:
    """Return the member of the JSON report."""
    found = from_checks(checks)
    return {"held": found.held, "of": found.of, "rows": list(checks)}


def format_lines(checks: Sequence[Entry], rerun: str, *, most: int | None, is_quiet: bool) -> Iterator[Line]:
    """Yield what a terminal shows: the numbers, and a block for each requirement that did not hold.

    Args:
        checks: as the report has them.
        rerun: the command that runs the suite again.
        most: how many blocks are shown whole; None shows them all.
        is_quiet: the numbers alone are shown.
    """
    if not checks:
        return
    found = from_checks(checks)
    yield Line(
        f"robustness: {escape_text(found.sentence, MAX_TEXT_CHARS)}",
        Style.HEAD if found.held == found.of else Style.WARNING,
    )
    if not is_quiet:
        yield from terminal_findings.format_failures(checks, rerun, Outcome.ADVISORY, most=most)
        yield from terminal_findings.format_stuck(checks, most=most)
