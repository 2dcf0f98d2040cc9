"""Results of packs in reports: each pack has a section with its own verdict, beside that of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.report import terminal_findings
from conformance.report.blocks import Block, build_blocks
from conformance.report.findings import Group, build_groups
from conformance.report.lines import Line, Style
from conformance.spec.outcome import CONFORMANT, NONCONFORMANT, Outcome
from conformance.spec.report import PackEntry, Report
from conformance.spec.tally import count_requirements
from conformance.spec.text import escape_text
from conformance.spec.verdict import describe_verdict

MAX_TEXT_CHARS = 600
SHOWN_DIGITS = 12  # of a digest


@dataclass(frozen=True, slots=True)
class PackResults:
    """The results of a pack.

    `stuck`: the rows that are blocked or in error, by reason.
    """

    entry: PackEntry
    blocks: list[Block]
    advised: list[Block]
    stuck: list[Group]

    @property
    def name(self) -> str:
        """The name and the version."""
        return f"{self.entry['name']} {escape_text(self.entry['version'], 40)}"

    @property
    def sentence(self) -> str:
        """One line with the verdict, the reasons, the number of met MUSTs, and the digest."""
        entry = self.entry
        musts = count_requirements("MUST", entry["requirements"], [entry["name"]])
        why = f": {'; '.join(entry['why'])}" if entry["why"] else ""
        words = describe_verdict(entry["verdict"], entry["interoperable"])
        return escape_text(f"{words}{why} ({musts.sentence}; digest {entry['digest'][:SHOWN_DIGITS]})", MAX_TEXT_CHARS)


def from_report(report: Report) -> list[PackResults]:
    """Return the results of each pack of a report."""
    return [
        PackResults(
            entry,
            build_blocks(entry["rows"], Outcome.FAIL, Outcome.KNOWN_FAILURE),
            build_blocks(entry["rows"], Outcome.ADVISORY),
            build_groups(entry["rows"], Outcome.ERROR, Outcome.BLOCKED),
        )
        for entry in report.get("packs", ())
    ]


def format_lines(found: PackResults, rerun: str, *, max_blocks: int | None, is_quiet: bool) -> Iterator[Line]:
    """Yield the terminal output: the verdict, each requirement, and a block for each that is not met.

    `max_blocks`: the maximum number of full blocks; None shows all.
    `is_quiet`: whether to show only the line with the verdict.
    """
    verdict = found.entry["verdict"]
    style = {CONFORMANT: Style.HEAD, NONCONFORMANT: Style.BAD}.get(verdict, Style.WARNING)
    yield Line(f"{found.name}: {found.sentence}", style)
    if is_quiet:
        return
    for entry in found.entry["requirements"]:
        yield Line(f"  {entry['id']:32}{entry['level']:10}{entry['verdict'].replace('_', ' ')}")
    yield from terminal_findings.format_failures(found.blocks, rerun, max_blocks=max_blocks)
    yield from terminal_findings.format_advice(found.advised, max_blocks=max_blocks)
    yield from terminal_findings.format_blocked_or_error(found.stuck, max_blocks=max_blocks)
