"""The matrix of a comparison as plain data: a row per requirement, a column per report, and the details of each cell.

Versions of one server are in adjacent columns. Nothing is escaped here; the page escapes all texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from conformance.report.anchors import encode_name
from conformance.report.blocks import NO_VERDICT
from conformance.report.comparison import Comparison, Line, count_represented_rows
from conformance.report.findings import find_requirement, group_by
from conformance.report.requirement_changes import RequirementOutcomes, parse_version
from conformance.report.scope import describe_report_verdict, describe_scope, describe_transports
from conformance.spec import ledger
from conformance.spec.extensions import GRPC, PROTOCOL, find_transport
from conformance.spec.ledger import Concern
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome
from conformance.spec.report import Report, find_party, list_requirements, list_rows
from conformance.spec.tally import ABSENT, MEANINGS, NOT_APPLICABLE, NOT_JUDGED, NOT_MET, Tally, tally_report

# Kinds of a cell without an outcome: the report lacks the requirement, or nothing was judged.
UNKNOWN, NOT_OFFERED = "unknown", "not offered"
_MEANING_OF_UNKNOWN = "not in this report: another version of the suite wrote it"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the matrix: a judged server or client.

    Attributes:
        server: the name of the server or client, the same for all versions.
        version: the version; empty if none is reported.
        key: the unique name and version in the anchors of the column's cells.
        verdict: the verdict of the report, which determines the color of the column.
        transports, scope: the scope of the report, in two words and as a sentence.
    """

    title: str
    server: str
    version: str
    key: str
    verdict: str
    verdict_in_words: str
    musts: Tally
    shoulds: Tally
    transports: str
    scope: str


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome of a requirement in a column.

    Attributes:
        column_index: the index of the cell's column.
        kind: an outcome, or the reason for having none; it determines the mark and the color.
        anchor: the address of the cell within the page.
        unmet, judged: the numbers of rows that do not meet the requirement, and that have a verdict on it.
        lines: the rows that need an explanation; equivalent rows are merged.
        observed: behaviors of the server that the documents leave open, each with the number of rows.
        since: a sentence that names the first judged version with this outcome, and the version before that one.
        before: the word for the outcome in the previous version if the two outcomes differ; else empty.
        bug_report: the URL of the bug report; empty if there is none.
        issues: the URLs of issues about the requirement in the server's issue tracker.
        same_as: the column of the next version if its details are the same; the cell then refers to that column.
    """

    column_index: int
    kind: str
    word: str
    meaning: str
    anchor: str
    unmet: int
    judged: int
    lines: Sequence[Line]
    observed: Sequence[tuple[str, int]]
    since: str
    before: str
    bug_report: str
    issues: Sequence[str] = ()
    same_as: int | None = None

    @property
    def is_unmet(self) -> bool:
        """Whether the requirement, a MUST or a SHOULD, is not met."""
        return self.kind in NOT_MET

    @property
    def has_details(self) -> bool:
        """Whether the cell opens a panel with details; a cell without details, such as "not judged", opens none."""
        is_met = self.kind == Outcome.PASS and not (self.observed or self.before)
        return bool(self.lines or (self.judged and not is_met))


@dataclass(frozen=True, slots=True)
class Row:
    """A requirement and its cells.

    Attributes:
        anchor: the address of the row within the page.
        page: the URL of the requirement's page; empty if the requirement has no page.
        explain: the command that explains the requirement; empty if this version of the suite has no such requirement.
    """

    id: str
    level: str
    concern: str
    extension: str
    statement: str
    anchor: str
    page: str
    explain: str
    sources: Sequence[Any]
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Group:
    """The requirements of one concern in one area."""

    area: str
    concern: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of requirements (rows) and servers or clients (columns), with the comparison that it shows."""

    comparison: Comparison
    columns: Sequence[Column]
    groups: Sequence[Group]

    @property
    def rows(self) -> list[Row]:
        """The requirements in the order of the page."""
        return [row for group in self.groups for row in group.rows]

    @property
    def servers(self) -> dict[str, list[int]]:
        """The indexes of the columns of each server, the oldest version first."""
        found: dict[str, list[int]] = {}
        for column_index, column in enumerate(self.columns):
            found.setdefault(column.server, []).append(column_index)
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """Functions that return links from a matrix to other pages.

    Attributes:
        find_page: returns the URL of a requirement's page, or an empty text.
        find_bug_report: returns the URL of the bug report for a server and a requirement, or an empty text.
        find_issues: returns the URLs of the server's own issues about a requirement.
    """

    find_page: Callable[[ledger.Requirement], str] = lambda entry: entry.url
    find_bug_report: Callable[[str, str], str] = lambda *_: ""
    find_issues: Callable[[str, str], Sequence[str]] = lambda *_: ()


def sort_versions(reports: Sequence[tuple[str, Report]]) -> list[tuple[str, Report]]:
    """Sort pairs of a file name and a report: the versions of each server are adjacent, the oldest first."""
    order: dict[str, int] = {}
    for stem, report in reports:
        order.setdefault(_name_server(stem, report), len(order))
    return sorted(
        reports, key=lambda pair: (order[_name_server(*pair)], parse_version(pair[1]["target"]["version"] or ""))
    )


def build_matrix(comparison: Comparison, reports: Sequence[tuple[str, Report]], links: Links | None = None) -> Matrix:
    """Build the matrix of the requirements of a comparison.

    Args:
        comparison: the complete comparison, or only its differences.
        reports: the compared pairs of a file name and a report, in the same order.
        links: functions that return links to other pages; None for the default links.
    """
    columns = _build_columns(comparison.titles, reports)
    builder = _CellBuilder(comparison, columns, [report for _, report in reports], links or Links())
    groups: dict[tuple[str, str], list[Row]] = {}
    # Areas over gRPC repeat those over HTTP, and come last.
    for area, entries in sorted(comparison.areas.items(), key=lambda item: find_transport(item[0]) == GRPC):
        found = [builder.build_row(entry) for entry in entries]
        for concern in (*Concern, ""):
            if own := [row for row in found if row.concern == concern]:
                groups[area, concern] = own
    return Matrix(comparison, columns, [Group(*key, rows) for key, rows in groups.items()])


def _name_server(stem: str, report: Report) -> str:
    return report["target"]["name"] or stem


def _build_columns(titles: Sequence[str], reports: Sequence[tuple[str, Report]]) -> list[Column]:
    columns: list[Column] = []
    seen: Counter[str] = Counter()
    for title, (stem, report) in zip(titles, reports, strict=True):
        server, version = _name_server(stem, report), report["target"]["version"] or ""
        key = encode_name("-".join(filter(None, (server, version))).replace(" ", "-"))
        seen[key] += 1
        columns.append(
            Column(
                server if title == f"({stem})" else title,
                server,
                version,
                key if seen[key] == 1 else f"{key}!{seen[key]}",
                report["verdict"],
                describe_report_verdict(report),
                tally_report(report),
                tally_report(report, "SHOULD"),
                describe_transports(report),
                describe_scope(report),
            )
        )
    return columns


class _CellBuilder:
    """Builds rows of the matrix from the results of each column, looked up by requirement."""

    def __init__(
        self, comparison: Comparison, columns: Sequence[Column], reports: Sequence[Report], links: Links
    ) -> None:
        self._columns, self._links = columns, links
        self._party = next(map(find_party, reports), ledger.Party.SERVER)
        self._words = comparison.words
        self._entries = [{entry["id"]: entry for entry in list_requirements(report)} for report in reports]
        self._offered = [
            {
                PROTOCOL,
                *(name for name, entry in report["extensions"].items() if entry["offered"]),
                *(pack["name"] for pack in report.get("packs", ())),
            }
            for report in reports
        ]
        self._unmet = [_count_rows(report, NOT_MET) for report in reports]
        self._judged = [_count_rows(report, {*Outcome} - {*NO_VERDICT}) for report in reports]
        parts = map(chain, comparison.failures, comparison.advice, comparison.stuck)
        groups = (group_by(lines, lambda line: line.requirement) for lines in parts)
        self._lines = [{lines[0].requirement: lines for lines in found} for found in groups]
        self._observed = _group_observations(comparison)

    def build_row(self, entry: RequirementOutcomes) -> Row:
        """Build the row of a requirement."""
        known = ledger.load().get(entry.id)
        reported = next(own[entry.id] for own in self._entries if entry.id in own)
        concern = reported.get("concern") or (known.concern if known else "")
        return Row(
            entry.id,
            entry.level,
            str(concern or ""),
            reported["extension"],
            entry.statement,
            encode_name(entry.id),
            self._links.find_page(known) if known else "",
            known.explain if known else "",
            known.sources if known else (),
            list(self._build_cells(entry.id)),
        )

    def _build_cells(self, name: str) -> Iterator[Cell]:
        kinds = [self._find_outcome_or_reason(column_index, name) for column_index in range(len(self._columns))]
        words = [self._describe_kind(kind) for kind in kinds]
        for column_index, column in enumerate(self._columns):
            older = [other for other in range(column_index) if self._columns[other].server == column.server]
            is_changed = bool(older) and kinds[older[-1]] != kinds[column_index]
            is_unmet = kinds[column_index] in NOT_MET
            yield Cell(
                column_index,
                kinds[column_index],
                *words[column_index],
                f"{encode_name(name)}--{column.key}",
                self._unmet[column_index][name],
                self._judged[column_index][name],
                self._lines[column_index].get(name, ()),
                self._observed[column_index].get(name, ()),
                self._describe_last_change(column_index, older, kinds, words),
                words[older[-1]][0] if is_changed else "",
                self._links.find_bug_report(column.server, name) if is_unmet else "",
                self._links.find_issues(column.server, name) if is_unmet else (),
                self._find_identical_version(column_index, name),
            )

    def _find_identical_version(self, column_index: int, name: str) -> int | None:
        """Return the column of the server's next version if its lines and observations are identical, else None."""
        later = column_index + 1
        if later == len(self._columns) or self._columns[later].server != self._columns[column_index].server:
            return None
        kept = [(self._lines[each].get(name), self._observed[each].get(name)) for each in (column_index, later)]
        return later if any(kept[0]) and kept[0] == kept[1] else None

    def _find_outcome_or_reason(self, column_index: int, name: str) -> str:
        """Return the outcome of a requirement in a column, or the reason why there is none."""
        entry = self._entries[column_index].get(name)
        if entry is None:
            return UNKNOWN
        if entry["verdict"] != Outcome.NOT_APPLICABLE:
            return entry["verdict"]
        if entry["extension"] not in self._offered[column_index]:
            return NOT_OFFERED
        return NOT_JUDGED if "unjudged" in entry else NOT_APPLICABLE

    def _describe_kind(self, kind: str) -> tuple[str, str]:
        """Return the word for an outcome, or for the reason without one, and the meaning of the word."""
        if kind == UNKNOWN:
            return "unknown", _MEANING_OF_UNKNOWN
        if kind == NOT_OFFERED:
            word = ABSENT[self._party]
            return word, MEANINGS[word]
        if kind in MEANINGS:
            return kind, MEANINGS[kind]
        return OUTCOME_WORDINGS[Outcome(kind)].short, self._words.explain(Outcome(kind))

    def _describe_last_change(
        self, column_index: int, older: Sequence[int], kinds: Sequence[str], words: Sequence[tuple[str, str]]
    ) -> str:
        """Return a sentence that says since which version the outcome is unchanged; empty for the oldest version."""
        word = words[column_index][0]
        if not older:
            return ""
        first = column_index
        for other in reversed(older):
            if kinds[other] != kinds[column_index]:
                version = self._columns[other].version
                return f"{word} since {self._columns[first].version}; {words[other][0]} in {version}"
            first = other
        return f"{word} in every judged version since {self._columns[first].version}"


def _group_observations(comparison: Comparison) -> list[dict[str, Sequence[tuple[str, int]]]]:
    """Return the observations of each column by requirement; counts of several checks are added up."""
    found: list[dict[str, Counter[str]]] = [{} for _ in comparison.titles]
    for entry in comparison.observations:
        for own, seen in zip(found, entry.cells, strict=True):
            own.setdefault(entry.requirement, Counter()).update(dict(seen))
    return [{name: counts.most_common() for name, counts in own.items()} for own in found]


def _count_rows(report: Report, outcomes: Collection[str]) -> Counter[str]:
    """Count rows with these outcomes; each counts for its unmet requirement, else for its first requirement."""
    counts: Counter[str] = Counter()
    for row in list_rows(report):
        if row["outcome"] in outcomes:
            counts[find_requirement(row)] += count_represented_rows(row)
    return counts
