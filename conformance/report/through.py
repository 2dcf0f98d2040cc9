"""Compares a run directly against a server with a run through a gateway in front of it.

A row counts against the gateway only if it is met directly. The requirement of such a row counts only if no other row
of it fails directly: a requirement that the server itself does not meet is not the gateway's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.report.exchange_changes import Change, ChangeKind, Pair, count_changes, find_changes
from conformance.report.findings import find_requirement, format_label, group_by, summarize_message
from conformance.report.requirement_changes import map_verdicts, order_requirements
from conformance.spec.check import format_key
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report, ReportRow
from conformance.spec.tally import MET, NOT_MET
from conformance.spec.text import escape_text, format_count, join_some
from conformance.spec.verdict import EXIT_STATUS

MAX_ROWS = 3
MAX_NAMES = 10
MAX_TEXT = 160  # characters
# Changes that explain no failure, so that one line lists them.
SLIGHT = (ChangeKind.HEADER_CASE, ChangeKind.HEADER_ADDED, ChangeKind.VERSION)
RowPair = tuple[ReportRow, ReportRow | None]  # directly, and through the gateway if the row is in that run


class Effect(StrEnum):
    """What a gateway does to rows of a requirement; each value is the heading of its section."""

    BROKEN = "met directly, not met through the gateway"
    ADVISED = "advice met directly, not met through the gateway"
    UNJUDGED = "met directly, not judged through the gateway"
    WORSE = "further rows of requirements that are not met directly either"
    OBSERVED = "done otherwise, where the documents leave a choice"
    MENDED = "not met directly, met through the gateway"


@dataclass(frozen=True, slots=True)
class ThroughComparison:
    """The differences of a run through a gateway.

    Attributes:
        effects: the rows that differ, by effect and requirement, in this order.
        uncertain: MUSTs that are met directly and not judged through the gateway, or in error directly.
    """

    effects: Mapping[tuple[Effect, str], Sequence[RowPair]]
    unmet: Sequence[str]
    uncertain: Sequence[str]
    changes: Sequence[Change]
    pairs: Mapping[str, list[Pair]]

    def select(self, effect: Effect) -> dict[str, Sequence[RowPair]]:
        """Return the rows that the gateway affects in this way, by requirement."""
        return {name: rows for (kind, name), rows in self.effects.items() if kind is effect}

    @property
    def exit_status(self) -> int:
        """The exit status: 1 if a MUST is met directly and not through the gateway, 6 if one is not judged there."""
        verdict = "incomplete" if self.uncertain else "conformant"
        return EXIT_STATUS["nonconformant" if self.select(Effect.BROKEN) else verdict]

    def format_lines(self) -> Iterator[str]:
        """Yield the lines to print; the last one is the conclusion."""
        for effect in Effect:
            if found := self.select(effect):
                yield f"{effect}:"
                yield from (
                    f"  {line}"
                    for name, rows in _merge_unjudged(effect, found)
                    for line in self.format_rows(name, rows)
                )
        if self.unmet:
            yield f"met in neither way: {join_some(self.unmet, MAX_NAMES)}"
        yield f"differences in {format_count(sum(map(len, self.pairs.values())), 'exchange')} that both ways have:"
        yield from _format_changes(self.changes)
        broken = list(self.select(Effect.BROKEN))
        if broken:
            yield f"the gateway breaks {format_count(len(broken), 'requirement')}: {join_some(broken, MAX_NAMES)}"
        elif self.uncertain:
            yield f"incomplete: not judged in both ways: {join_some(self.uncertain, MAX_NAMES)}"
        else:
            yield "the gateway breaks no requirement"

    def format_rows(self, names: str, rows: Sequence[RowPair]) -> Iterator[str]:
        """Yield requirements with their rows, and what came in both ways in the first row."""
        labels = join_some([format_label(row) for row, _ in rows], MAX_ROWS)
        yield f"{names}: {format_count(len(rows), 'row')}, {labels}"
        for side, text in zip(("directly", "through"), self._describe(*rows[0]), strict=True):
            yield f"    {side:9} {escape_text(text, MAX_TEXT)}"

    def _describe(self, direct: ReportRow, through: ReportRow | None) -> tuple[str, str]:
        """Return what came in a row in both ways: its first exchange that differs, else its outcomes."""
        pairs = self.pairs.get(format_key(direct["check"], direct["row"]), ())
        found = [change for pair in pairs for change in find_changes(*pair) if change.kind not in SLIGHT]
        if found and through and (direct["failure"] or through["failure"]):
            change = min(found, key=lambda each: list(ChangeKind).index(each.kind))
            return change.direct, change.through
        return _describe_outcome(direct), _describe_outcome(through)


def _describe_outcome(row: ReportRow | None) -> str:
    if row is None:
        return "not in this run"
    return row["observation"] or ("met" if row["outcome"] in MET else summarize_message(row))


def _merge_unjudged(effect: Effect, found: Mapping[str, Sequence[RowPair]]) -> Iterator[tuple[str, Sequence[RowPair]]]:
    """Yield requirements and rows; those that were not judged for one reason together, as there may be many."""
    if effect is not Effect.UNJUDGED:
        yield from found.items()
        return
    rows = [(name, pair) for name, pairs in found.items() for pair in pairs]
    for own in group_by(rows, lambda each: _describe_outcome(each[1][1])):
        yield join_some(list(dict.fromkeys(name for name, _ in own)), MAX_NAMES), [pair for _, pair in own]


def _format_changes(changes: Sequence[Change]) -> Iterator[str]:
    for kind in ChangeKind:
        own = [each for each in changes if each.kind is kind]
        if kind in SLIGHT and own:
            yield f"  {kind}: {join_some([f'{escape_text(each.name, 60)} ({each.count})' for each in own], MAX_NAMES)}"
            continue
        for each in own:
            sides = " -> ".join(escape_text(text, MAX_TEXT) for text in (each.direct, each.through))
            yield f"  {kind} ({each.count}): {sides}; first in {escape_text(each.scope)}"


# --- comparing --------------------------------------------------------------------------------------------------------


def compare(
    direct: Report, through: Report, pairs: Mapping[str, list[Pair]], again: Report | None = None
) -> ThroughComparison:
    """Compare a run through a gateway with a run directly against the server.

    `direct`: the report of the run without the gateway.
    `pairs`: the exchanges of both runs: see `pair_calls`.
    `again`: the report of a second run without the gateway; what is not met in it counts as not met directly.
    """
    before, verdicts = _map_rows(direct), map_verdicts(direct)
    if again:
        before |= {key: row for key, row in _map_rows(again).items() if row["outcome"] in NOT_MET}
        verdicts |= {name: verdict for name, verdict in map_verdicts(again).items() if verdict in NOT_MET}
    after, verdicts_after = _map_rows(through), map_verdicts(through)
    found: dict[tuple[Effect, str], list[RowPair]] = {}
    for key, row in before.items():
        other = after.get(key)
        effect = _find_effect(row, other)
        requirement = find_requirement(other if other and other["failure"] else row)
        if effect is Effect.BROKEN and verdicts.get(requirement) in NOT_MET:
            effect = Effect.WORSE
        if effect:
            found.setdefault((effect, requirement), []).append((row, other))
    order = order_requirements({name for _, name in found})
    musts = [entry["id"] for entry in direct["requirements"] if entry["level"] == "MUST"]
    return ThroughComparison(
        dict(sorted(found.items(), key=lambda each: order.index(each[0][1]))),
        [name for name, verdict in verdicts.items() if verdict in NOT_MET and verdicts_after.get(name) in NOT_MET],
        [name for name in musts if _is_uncertain(verdicts[name], verdicts_after.get(name))],
        count_changes(pairs),
        pairs,
    )


def _map_rows(report: Report) -> dict[tuple[str, str], ReportRow]:
    return {(row["check"], row["row"]): row for row in report["rows"]}


def _is_uncertain(direct: str, through: str | None) -> bool:
    """Whether a requirement was not judged in one of the runs; it may be blocked or not applicable in both."""
    return direct == Outcome.ERROR or (direct in MET and through not in (*MET, *NOT_MET))


def _find_effect(direct: ReportRow, through: ReportRow | None) -> Effect | None:
    """Return what the gateway does to a row; None for nothing, and for a row that was not judged directly."""
    before, after = direct["outcome"], through["outcome"] if through else ""
    if before in NOT_MET:
        return Effect.MENDED if after in MET else None
    if before not in MET:
        return None
    if through is None or after not in (*MET, *NOT_MET):
        return Effect.UNJUDGED
    if after in NOT_MET:
        return Effect.ADVISED if after == Outcome.ADVISORY else Effect.BROKEN
    is_other = before == after == Outcome.OBSERVED and direct["observation"] != through["observation"]
    return Effect.OBSERVED if is_other else None
