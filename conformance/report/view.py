"""What a report's pages show, worked out once from the JSON report alone, so that they agree and can be made later.

Nothing here is escaped, but for the title: `page_html`, `page_markdown` and `badge` do that, each in its own way.
Texts are those of the report, which may come from anybody; statements and sources of requirements are the installed
ledger's.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance import ledger
from conformance.outcome import Outcome
from conformance.report.result import NO_MODEL
from conformance.report.verdict import Musts, counted, musts
from conformance.text import safe

Report = Mapping[str, Any]
Entry = Mapping[str, Any]
T = TypeVar("T")

# Every outcome: its word, and what it means. In the order in which pages show them.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    Outcome.FAIL: ("failed", "a MUST is not met (under --conformance-strict: or a SHOULD)"),
    Outcome.KNOWN_FAILURE: ("known failure", "not met, as the baseline says"),
    Outcome.FIXED: ("fixed", "met, though the baseline says that it is not"),
    Outcome.ERROR: ("error", "the suite could not judge: the target was gone, or a fault of the suite's own"),
    Outcome.BLOCKED: ("blocked", "what the check rests on fails already, so nothing can be said"),
    Outcome.ADVISORY: ("advice", "a SHOULD is not met"),
    Outcome.OBSERVED: ("observed", "the documents leave it open; what the server does is recorded"),
    Outcome.PASS: ("passed", "judged and met"),
    Outcome.NOT_APPLICABLE: ("n/a", "not offered, no model to judge it with, or too large for the server"),
}
NOT_RUN = "not run"
LONGEST_TITLE = 120  # characters
TITLES: Mapping[str, str] = {
    "protocol": "Protocol beneath the extensions",
    "binary_tensor_data": "Binary tensor data",
    "raw": "Raw binary requests",
    "classification": "Classification",
    "classification_grpc": "Classification over gRPC",
}


@dataclass(frozen=True, slots=True)
class Part:
    """An extension, or an area of one, with its counts by outcome."""

    name: str
    counts: dict[str, int]
    offered: bool = True
    verdict: str = ""
    areas: list[Part] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name for people."""
        return TITLES.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one check that miss one requirement, or that are blocked or in error, together.

    Attributes:
        requirement: what is not met; the first that the check answers for, where it could not be judged.
        rows: the report's own entries, at least one.
    """

    check: str
    claim: str
    outcome: str
    requirement: str
    level: str
    statement: str
    source: str
    rows: list[Entry]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one check that answer for one requirement, by outcome."""

    check: str
    claim: str
    by_outcome: dict[str, list[Entry]]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each outcome."""
        return {outcome: len(rows) for outcome, rows in self.by_outcome.items()}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement, what was found, and by which checks.

    Attributes:
        verdict: an outcome, or `not run`.
        counts: whether it counts in this run, which may have been over HTTP or gRPC alone.
        reasons: why it was not judged, where it was not.
    """

    id: str
    level: str
    area: str
    extension: str
    verdict: str
    statement: str
    sources: list[str]
    note: str
    checks: list[Rows]
    reasons: list[str]
    counts: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """One way in which a server decides what the documents leave open, and the rows that show it."""

    requirement: str
    statement: str
    told: str
    labels: list[str]


@dataclass(frozen=True, slots=True)
class View:
    """All that pages show of a report.

    Attributes:
        report: the JSON report itself.
        unjudged: why rows do not apply -> those rows.
        not_run: what is known of checks that were not run; empty where all were.
    """

    report: Report
    title: str
    musts: Musts
    counts: dict[str, int]
    parts: list[Part]
    requirements: list[Requirement]
    failures: list[Group]
    stuck: list[Group]
    advice: list[Group]
    observations: list[Observation]
    unjudged: dict[str, list[Entry]]
    not_run: str

    @property
    def verdict(self) -> str:
        """`conformant`, `nonconformant` or `incomplete`."""
        return str(self.report["verdict"])

    @property
    def gate(self) -> Mapping[str, Any] | None:
        """How the run differs from its baseline, where it has one."""
        return self.report.get("gate")

    def rerun(self, check: str) -> str:
        """Return the command that runs one check alone."""
        options = self.report["options"]
        headers = [f"{name}: ..." for name in options["headers"]]
        words = ["pytest", f"--target-url={self.report['target']['url']}"]
        words += [part for model in options.get("models", []) for part in ("--model", model)]
        words += [part for header in headers for part in ("--target-header", header)]
        return shlex.join([*words, "-k", check])


def view(report: Report) -> View:
    """Return what pages show of a report that has the form of `schemas/report.schema.json`."""
    checks, target = report["checks"], report["target"]
    complete = report["footer"]["complete"]
    return View(
        report,
        safe(" ".join(part for part in (target["name"], target["version"]) if part) or target["url"], LONGEST_TITLE),
        musts(report["requirements"]),
        _counts(checks),
        _parts(report),
        _requirements(report),
        _groups(checks, Outcome.FAIL, Outcome.KNOWN_FAILURE, Outcome.FIXED),
        _groups(checks, Outcome.ERROR, Outcome.BLOCKED),
        _groups(checks, Outcome.ADVISORY),
        _observations(checks),
        _unjudged(checks),
        "" if complete else "Not every check of the suite was run: what is shown here says nothing of the others.",
    )


def label(check: Entry) -> str:
    """Return a row as reports and baselines name it."""
    return f"{check['id']} [{check['row']}]" if check["row"] else str(check["id"])


def brief(check: Entry) -> str:
    """Return why a row came to what it came to: the first line of its message."""
    return str(check["message"]).partition("\n")[0]


def gate_sentence(gate: Mapping[str, Any]) -> str:
    """Return whether a gate lets a run through, and how the run differs from the baseline, on one line."""
    counts = [f"{len(gate[kind])} {kind}" for kind in ("new", "fixed", "stale", "known") if gate[kind]]
    return f"{'passed' if gate['passed'] else 'not passed'}{': ' if counts else ''}{', '.join(counts)}"


def _by(entries: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return entries with an equal key together, in the order of the first of each."""
    found: dict[Hashable, list[T]] = {}
    for entry in entries:
        found.setdefault(key(entry), []).append(entry)
    return list(found.values())


def _counts(checks: Iterable[Entry]) -> dict[str, int]:
    counts = Counter(check["outcome"] for check in checks)
    return {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}


# --- extensions and areas ------------------------------------------------------------------------------------------


def _parts(report: Report) -> list[Part]:
    extension_of = {entry["id"]: entry["extension"] for entry in report["requirements"]}
    parts = []
    for name, entry in report["extensions"].items():
        own = [check for check in report["checks"] if extension_of.get(check["requirements"][0]) == name]
        areas = [Part(rows[0]["area"], _counts(rows)) for rows in _by(own, lambda check: check["area"])]
        parts.append(Part(name, _counts(own), entry["offered"], entry["verdict"], areas if entry["offered"] else []))
    return parts


# --- requirements ------------------------------------------------------------------------------------------------


def _requirements(report: Report) -> list[Requirement]:
    rows: dict[str, list[Entry]] = {}
    for check in report["checks"]:
        for requirement in check["requirements"]:
            rows.setdefault(requirement, []).append(check)
    counting = {entry["id"] for entry in counted(report["requirements"])}
    unrun = Outcome.NOT_APPLICABLE if report["footer"]["complete"] else NOT_RUN
    return [
        _requirement(entry, rows.get(entry["id"], []), unrun, counts=entry["id"] in counting)
        for entry in report["requirements"]
    ]


def _requirement(entry: Entry, rows: Sequence[Entry], unrun: str, *, counts: bool) -> Requirement:
    known = ledger.load().get(entry["id"])
    checks = [Rows(found[0]["id"], found[0]["claim"], _by_outcome(found)) for found in _by(rows, lambda row: row["id"])]
    is_open = entry["verdict"] in (Outcome.NOT_APPLICABLE, Outcome.BLOCKED, Outcome.ERROR)
    return Requirement(
        entry["id"],
        entry["level"],
        entry["area"],
        entry["extension"],
        entry["verdict"] if rows else unrun,
        known.statement if known else "",
        [str(source) for source in known.sources] if known else [],
        known.note if known else "",
        checks,
        list(dict.fromkeys(brief(row) for row in rows if row["message"])) if is_open else [],
        counts,
    )


def _by_outcome(rows: Sequence[Entry]) -> dict[str, list[Entry]]:
    found = {outcome: [row for row in rows if row["outcome"] == outcome] for outcome in OUTCOMES}
    return {outcome: rows for outcome, rows in found.items() if rows}


# --- what was found ----------------------------------------------------------------------------------------------


def _groups(checks: Sequence[Entry], *outcomes: str) -> list[Group]:
    """Return the rows with these outcomes, the worst first; blocked ones by what blocks them."""
    found = [check for outcome in outcomes for check in checks if check["outcome"] == outcome]
    return [_group(rows) for rows in _by(found, _together)]


def _together(check: Entry) -> Hashable:
    failure = check["failure"]
    blocked_by = check["message"] if check["outcome"] == Outcome.BLOCKED else ""
    return blocked_by or check["id"], check["outcome"], failure and failure["requirement"]


def _group(rows: list[Entry]) -> Group:
    first = rows[0]
    failure = first["failure"] or {}
    requirement = failure.get("requirement", first["requirements"][0])
    known = ledger.load().get(requirement)
    return Group(
        first["id"],
        first["claim"],
        first["outcome"],
        requirement,
        failure.get("level", str(known.level) if known else ""),
        failure.get("statement", known.statement if known else ""),
        failure.get("source", "; ".join(map(str, known.sources)) if known else ""),
        rows,
    )


def _observations(checks: Iterable[Entry]) -> list[Observation]:
    observed = [check for check in checks if check["outcome"] == Outcome.OBSERVED and check["observation"]]
    ways = _by(observed, lambda check: (check["requirements"][0], check["observation"]))
    found = [(rows[0]["requirements"][0], rows[0]["observation"], [label(row) for row in rows]) for rows in ways]
    return [Observation(name, _statement(name), told, labels) for name, told, labels in sorted(found)]


def _statement(requirement: str) -> str:
    known = ledger.load().get(requirement)
    return known.statement if known else ""


def _unjudged(checks: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return why rows do not apply; of what had no model, all roles together."""
    found: dict[str, list[Entry]] = {}
    for check in checks:
        if check["outcome"] == Outcome.NOT_APPLICABLE:
            found.setdefault(check["message"], []).append(check)
    return dict(sorted(found.items(), key=lambda item: (item[0].startswith(NO_MODEL), -len(item[1]))))
