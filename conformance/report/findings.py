"""What a run found, as pages show it: rows that miss one requirement together, observations, what does not apply."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from conformance.spec import ledger
from conformance.spec.check import format_label as row_label
from conformance.spec.documents import Sentence
from conformance.spec.outcome import Outcome, ReasonKind

Entry = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one check that miss one requirement, or that are blocked or in error, together.

    Attributes:
        requirement: what is not met; the first that the check answers for, where it could not be judged.
        source: as the report has it.
        sources: the installed ledger's; empty where the report names others.
        page: the URL of its page; empty where that has none.
        explain: the command that explains it; empty where this version does not know it.
        rows: the report's own entries, at least one.
    """

    check: str
    claim: str
    outcome: str
    requirement: str
    level: str
    statement: str
    source: str
    sources: Sequence[Sentence]
    page: str
    explain: str
    rows: list[Entry]


@dataclass(frozen=True, slots=True)
class Observation:
    """One way in which a server decides what the documents leave open, and the rows that show it."""

    requirement: str
    statement: str
    observation: str
    labels: list[str]


def format_label(check: Entry) -> str:
    """Return a row as reports and baselines name it."""
    return row_label(check["check"], check["row"])


def summarize_message(check: Entry) -> str:
    """Return why a row came to what it came to: the first line of its message."""
    return str(check["message"]).partition("\n")[0]


def group_by(entries: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return entries with an equal key together, in the order of the first of each."""
    found: dict[Hashable, list[T]] = {}
    for entry in entries:
        found.setdefault(key(entry), []).append(entry)
    return list(found.values())


def build_groups(checks: Sequence[Entry], *outcomes: str) -> list[Group]:
    """Return the rows with these outcomes, the worst first; blocked ones by what blocks them."""
    found = [check for outcome in outcomes for check in checks if check["outcome"] == outcome]
    return [build_group(rows) for rows in group_by(found, _together)]


def _together(check: Entry) -> Hashable:
    failure, reason = check["failure"], check.get("reason")
    if reason and reason["kind"] == ReasonKind.TARGET_LOST:
        return ReasonKind.TARGET_LOST  # nothing is to be said of a row for itself
    blocked_by = check["message"] if check["outcome"] == Outcome.BLOCKED else ""
    return blocked_by or check["check"], check["outcome"], failure and failure["requirement"]


def build_group(rows: list[Entry]) -> Group:
    """Return rows of one check as a group; what is missed is what the first of them misses."""
    first = rows[0]
    failure = first["failure"] or {}
    requirement = failure.get("requirement", first["requirements"][0])
    known = ledger.load().get(requirement)
    source = failure.get("source", known.source if known else "")
    return Group(
        first["check"],
        first["claim"],
        first["outcome"],
        requirement,
        failure.get("level", str(known.level) if known else ""),
        failure.get("statement", known.statement if known else ""),
        source,
        known.sources if known and known.source == source else (),
        known.url if known else "",
        known.explain if known else "",
        rows,
    )


def collect_observations(checks: Iterable[Entry]) -> list[Observation]:
    """Return what was observed: each way of deciding what a requirement leaves open, with its rows."""
    observed = [check for check in checks if check["outcome"] == Outcome.OBSERVED and check["observation"]]
    ways = group_by(observed, lambda check: (check["requirements"][0], check["observation"]))
    found = [(rows[0]["requirements"][0], rows[0]["observation"], [format_label(row) for row in rows]) for rows in ways]
    return [Observation(name, _statement(name), what, labels) for name, what, labels in sorted(found)]


def _statement(requirement: str) -> str:
    known = ledger.load().get(requirement)
    return known.statement if known else ""


def group_unjudged(checks: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Return why rows do not apply; of what had no model, all roles together."""
    found: dict[str, list[Entry]] = {}
    for check in checks:
        if check["outcome"] == Outcome.NOT_APPLICABLE:
            found.setdefault(check["message"], []).append(check)
    return dict(sorted(found.items(), key=lambda item: (find_missing_role(item[1][0]) is not None, -len(item[1]))))


def find_missing_role(check: Entry) -> str | None:
    """Return the role that no model fills, where a row does not apply for that reason; else None."""
    reason = check.get("reason")
    return str(reason["subject"]) if reason and reason["kind"] == ReasonKind.NO_MODEL else None
