"""Compares reports side by side: the outcome of each server or client for each requirement, as data for a page.

Each report is a column. Nothing is escaped here; the page does that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformance.report.findings import find_requirement, group_by
from conformance.report.party_labels import PartyLabels, find_labels
from conformance.report.requirement_changes import (
    RequirementOutcomes,
    VersionStep,
    find_steps,
    list_outcomes,
    order_requirements,
)
from conformance.report.scope import describe_report_verdict
from conformance.spec.extensions import OVER_HTTP
from conformance.spec.ledger import Party
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome
from conformance.spec.report import Failure, Report, ReportRow, find_party, list_rows
from conformance.spec.tally import MEANINGS, describe_absence, tally_report
from conformance.spec.user_error import UserError
from conformance.spec.verdict import describe_verdict

# Outcome -> the word in a cell, and its meaning. Failures are in capitals.
LEGEND: Mapping[str, tuple[str, str]] = {
    **{outcome: (words.short, words.meaning) for outcome, words in OUTCOME_WORDINGS.items()},
    Outcome.FAIL: (OUTCOME_WORDINGS[Outcome.FAIL].short.upper(), OUTCOME_WORDINGS[Outcome.FAIL].meaning),
    "": ("-", "not in this report: another version of the suite wrote it"),
}
LEVELS = ("MUST", "SHOULD")  # levels with counts
NOT_MET = (Outcome.FAIL, Outcome.KNOWN_FAILURE)
STUCK = (Outcome.ERROR, Outcome.BLOCKED)


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell with its text; `kind` is the outcome or verdict that determines the color, or empty."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table of runs: a label, and a cell for each report."""

    label: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Observation:
    """The observations of a check in each column: texts with the number of their rows, most frequent first."""

    requirement: str
    check: str
    cells: list[list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class Line:
    """Rows of one check with equivalent messages; `message` and `failure` are those of the first row."""

    outcome: str
    requirement: str
    check: str
    message: str
    failure: Failure | None = None
    rows: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of reports, one column per report.

    Attributes:
        words: the nouns and labels for servers, or for clients.
        titles: the servers or clients, one for each column.
        steps: for each two consecutive versions of a server or client, the changed requirements.
        advice, failures, stuck: for each column, the rows that are advisory, failed, and blocked or in error.
        terms: the words in the counts of MUSTs and SHOULDs that the legend explains, such as "not judged".
        is_whole: whether the comparison is complete; otherwise it contains differences only.
    """

    words: PartyLabels
    titles: list[str]
    facts: list[Fact]
    steps: list[VersionStep]
    areas: dict[str, list[RequirementOutcomes]]
    observations: list[Observation]
    advice: list[list[Line]]
    failures: list[list[Line]]
    stuck: list[list[Line]]
    terms: list[str] = field(default_factory=list)
    is_whole: bool = True

    @property
    def legend(self) -> dict[str, tuple[str, str]]:
        """The word and meaning of each outcome and term that occurs in the comparison."""
        found = {outcome for entries in self.areas.values() for entry in entries for outcome in entry.outcomes}
        meanings = {str(outcome): meaning for outcome, meaning in self.words.meanings.items()}
        signs = {kind: (word, meanings.get(kind, what)) for kind, (word, what) in LEGEND.items() if kind in found}
        return signs | {term: (term, MEANINGS[term]) for term in self.terms}


def compare(reports: Sequence[tuple[str, Report]]) -> Comparison:
    """Compare reports side by side.

    `reports`: pairs of a file name, without folder and suffix, and its report; all of servers, or all of clients.

    Raises UserError: some reports are of servers, and some of clients.
    """
    bodies = [report for _, report in reports]
    parties = {find_party(report) for report in bodies}
    if len(parties) > 1:
        raise UserError("reports of servers and of clients cannot be compared: they have different requirements")
    return Comparison(
        find_labels(next(iter(parties), Party.SERVER)),
        _build_titles(reports),
        _build_facts(bodies),
        find_steps(bodies),
        _group_by_area(bodies),
        _collect_observations(bodies),
        [_merge_rows(report, (Outcome.ADVISORY,)) for report in bodies],
        [_merge_rows(report, NOT_MET) for report in bodies],
        [_merge_rows(report, STUCK) for report in bodies],
        list(
            dict.fromkeys(word for report in bodies for level in LEVELS for word in tally_report(report, level).words)
        ),
    )


def _build_titles(reports: Sequence[tuple[str, Report]]) -> list[str]:
    """Return unique column titles: server and version, plus the file name and a number if needed."""
    names = [" ".join(filter(None, (r["target"]["name"], r["target"]["version"]))) for _, r in reports]
    unclear = Counter(names)
    titles = [
        name if name and unclear[name] == 1 else f"{name} ({stem})".strip()
        for name, (stem, _) in zip(names, reports, strict=True)
    ]
    seen: Counter[str] = Counter()
    for place, title in enumerate(titles):
        seen[title] += 1
        titles[place] = f"{title} #{seen[title]}" if seen[title] > 1 else title
    return titles


# --- facts ------------------------------------------------------------------------------------------------------------


def _build_facts(reports: Sequence[Report]) -> list[Fact]:
    """Return the facts of the runs, without counts that are 0 in all of them."""
    facts = [Fact(label, [read(report) for report in reports]) for label, read in FACTS.items()]
    return [fact for fact in facts if {cell.text for cell in fact.cells} != {"0"}]


def _format_verdict(report: Report) -> Cell:
    words = describe_report_verdict(report)
    return Cell(": ".join(filter(None, (words, "; ".join(report["why"])))), report["verdict"])


def _build_extension_reader(name: str) -> Callable[[Report], Cell]:
    def read(report: Report) -> Cell:
        entry = report["extensions"].get(name)
        if entry is None or not entry["offered"]:
            return Cell(describe_absence(report, name), "not_applicable")
        met = ", ".join(f"{concern} {own['met']}/{own['of']}" for concern, own in entry["musts"].items() if own["of"])
        return Cell(f"{describe_verdict(entry['verdict'], entry['interoperable'])} ({met})", entry["verdict"])

    return read


def _build_met_counter(level: str) -> Callable[[Report], Cell]:
    return lambda report: Cell(tally_report(report, level).brief)


def _build_row_counter(outcome: str) -> Callable[[Report], Cell]:
    return lambda report: Cell(
        str(sum(count_represented_rows(row) for row in report["rows"] if row["outcome"] == outcome))
    )


def count_represented_rows(row: ReportRow) -> int:
    """Return the number of rows that an entry represents: one in a report, one or more in the summary of a report."""
    return row.get("count", 1)


def _format_options(report: Report) -> Cell:
    options = report["options"]
    switches = [name for name in ("strict", "dangerous") if options.get(name)]
    named = [f"{name} {', '.join(options[name])}" for name in ("extensions", "models") if options.get(name)]
    return Cell("; ".join([options["profile"], *switches, *named]))


FACTS: Mapping[str, Callable[[Report], Cell]] = {
    "verdict": _format_verdict,
    "base protocol": _build_extension_reader("protocol"),
    **{name: _build_extension_reader(name) for name in OVER_HTTP},
    **{level: _build_met_counter(level) for level in LEVELS},
    **{f"rows: {word}": _build_row_counter(outcome) for outcome, (word, _) in LEGEND.items() if outcome},
    "packs": lambda report: Cell(
        "; ".join(f"{p['name']} {p['version']}: {p['verdict']}" for p in report.get("packs", ())) or "0"
    ),
    "roles": lambda report: Cell(str(len(report["target"]["roles"]))),
    "suite": lambda report: Cell(f"{report['suite']['version']} ({report['suite']['digest'][:8]})"),
    "profile": _format_options,
    "date": lambda report: Cell(report["started"][:10]),
}


def _group_by_area(reports: Sequence[Report]) -> dict[str, list[RequirementOutcomes]]:
    """Return the requirements by area, in the order of the installed ledger; unknown requirements come last."""
    return {entries[0].area: entries for entries in group_by(list_outcomes(reports), lambda entry: entry.area)}


# --- observations and lines -------------------------------------------------------------------------------------------

_BODY = re.compile(r"(HTTP \d{3}): .*", re.DOTALL)
_NUMBERS = re.compile(r"(?<!HTTP )(?<!\d)-?\d+(\.\d+)?(, -?\d+(\.\d+)?)*")


def _collect_observations(reports: Sequence[Report]) -> list[Observation]:
    """Return the observations by requirement, in the order of the ledger."""
    seen: dict[tuple[str, str], list[Counter[str]]] = {}
    for place, report in enumerate(reports):
        for check in list_rows(report):
            if check.get("observation"):
                counts = seen.setdefault((check["requirements"][0], check["check"]), [Counter() for _ in reports])
                counts[place][remove_body(check["observation"])] += count_represented_rows(check)
    order = order_requirements(sorted({requirement for requirement, _ in seen}))
    keys = sorted(seen, key=lambda key: (order.index(key[0]), key))
    return [Observation(*key, [counts.most_common() for counts in seen[key]]) for key in keys]


def remove_body(observation: str) -> str:
    """Remove the body of the answer from an observation, because servers word equivalent errors differently."""
    return _BODY.sub(r"\1", observation)


def _merge_rows(report: Report, outcomes: Iterable[str]) -> list[Line]:
    """Return the rows with these outcomes, with equivalent rows of a check merged into one line."""
    lines: dict[tuple[str, ...], Line] = {}
    for check in list_rows(report):
        if check["outcome"] in outcomes:
            requirement = find_requirement(check)
            key = (check["outcome"], requirement, check["check"], _simplify_message(check))
            first = Line(check["outcome"], requirement, check["check"], check["message"], check["failure"])
            line = lines.setdefault(key, first)
            line.rows.append(check["row"])
    return list(lines.values())


def _simplify_message(check: ReportRow) -> str:
    """Return the message of a row without row name, numbers and answer body, to find equivalent messages."""
    row = check["row"].replace("-", " ")
    message = check["message"].replace(row, "...") if row else check["message"]
    return _NUMBERS.sub("0", remove_body(message))


# --- differences ------------------------------------------------------------------------------------------------------


def keep_differences(comparison: Comparison) -> Comparison:
    """Keep the facts, requirements and observations that differ between columns.

    Rows that are advisory, failed or stuck are kept if they test one of these requirements.
    """
    areas = {
        area: own
        for area, entries in comparison.areas.items()
        if (own := [entry for entry in entries if len(set(entry.outcomes)) > 1])
    }
    names = {entry.id for entries in areas.values() for entry in entries}
    return replace(
        comparison,
        facts=[fact for fact in comparison.facts if len({cell.text for cell in fact.cells}) > 1],
        areas=areas,
        observations=[entry for entry in comparison.observations if _is_different(entry.cells)],
        advice=_filter_lines(comparison.advice, names),
        failures=_filter_lines(comparison.failures, names),
        stuck=_filter_lines(comparison.stuck, names),
        is_whole=False,
    )


def _is_different(cells: Sequence[Sequence[tuple[str, int]]]) -> bool:
    """Say whether the observations differ between the columns, ignoring the numbers of rows."""
    return len({frozenset(what for what, _ in cell) for cell in cells}) > 1


def _filter_lines(columns: Sequence[Sequence[Line]], names: Collection[str]) -> list[list[Line]]:
    return [[line for line in lines if line.requirement in names] for lines in columns]
