"""Groups the rows of a run for pages: failures by requirement, observations, and rows that do not apply."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from conformance.spec import ledger
from conformance.spec.check import format_label as row_label
from conformance.spec.documents import Sentence
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.report import Failure, ReportRow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows: failed rows of one check and requirement, or rows that are blocked or in error.

    Attributes:
        requirement: the unmet requirement; for rows without a verdict, the first requirement of the check.
        sources: its sources in the installed ledger; empty if the report names another source.
        page: the URL of the requirement's page; empty if the requirement has no page.
        explain: the command that explains the requirement; empty if this version of the suite has no such requirement.
        rows: the entries of the report, at least one.
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
    rows: list[ReportRow]


@dataclass(frozen=True, slots=True)
class Observation:
    """An observed behavior that the documents leave open, and the rows that show it."""

    requirement: str
    statement: str
    observation: str
    labels: list[str]


def format_label(check: ReportRow) -> str:
    """Return the label of a row in reports and baselines."""
    return row_label(check["check"], check["row"])


def summarize_message(check: ReportRow) -> str:
    """Return the first line of a row's message."""
    return check["message"].partition("\n")[0]


def find_requirement(check: ReportRow) -> str:
    """Return the requirement for which a row counts: the unmet one, else the first that the row tests."""
    failure = check.get("failure")
    return failure["requirement"] if failure else check["requirements"][0]


def get_failure(check: ReportRow) -> Failure:
    """Return the failure of a row that has one. Raises ValueError: the row has none."""
    if check["failure"] is None:
        raise ValueError(f"{format_label(check)} has no failure")
    return check["failure"]


def list_texts(failure: Failure, *, has_json: bool = True) -> list[tuple[str, str]]:
    """Return the labels and texts of a failure, in the order shown.

    `has_json`: whether to include the JSON of the request and of the answer.
    """
    request, answer = (failure.get("request"), failure.get("answer")) if has_json else (None, None)
    texts = {
        "Asked": failure.get("asked"),
        "Sent": failure["sent"],
        "Request": request,
        "Expected": failure["expected"],
        "Actual": failure["actual"],
        "Answer": answer,
    }
    return [(label, text) for label, text in texts.items() if text]


def has_reason(check: ReportRow, kind: ReasonKind) -> bool:
    """Return whether a row has no verdict for a reason of this kind."""
    reason = check.get("reason")
    return reason is not None and reason["kind"] == kind


def group_by(entries: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Group entries by key, in the order of first appearance."""
    found: dict[Hashable, list[T]] = {}
    for entry in entries:
        found.setdefault(key(entry), []).append(entry)
    return list(found.values())


def build_groups(checks: Sequence[ReportRow], *outcomes: str) -> list[Group]:
    """Group the rows with these outcomes, in the order of the outcomes; blocked rows with one reason form one group."""
    found = [check for outcome in outcomes for check in checks if check["outcome"] == outcome]
    return [build_group(rows) for rows in group_by(found, _compute_group_key)]


def _compute_group_key(check: ReportRow) -> Hashable:
    failure = check["failure"]
    if has_reason(check, ReasonKind.TARGET_LOST):
        return ReasonKind.TARGET_LOST  # all rows lost with the target form one group
    blocked_by = check["message"] if check["outcome"] == Outcome.BLOCKED else ""
    return blocked_by or check["check"], check["outcome"], failure and failure["requirement"]


def build_group(rows: list[ReportRow]) -> Group:
    """Return rows of one check as a group; the group gets the requirement of the first row."""
    first = rows[0]
    failure, requirement = first["failure"], find_requirement(first)
    known = ledger.load().get(requirement)
    source = failure["source"] if failure else known.source if known else ""
    return Group(
        first["check"],
        first["claim"],
        first["outcome"],
        requirement,
        failure["level"] if failure else str(known.level) if known else "",
        failure["statement"] if failure else known.statement if known else "",
        source,
        known.sources if known and known.source == source else (),
        known.url if known else "",
        known.explain if known else "",
        rows,
    )


def collect_observations(checks: Iterable[ReportRow]) -> list[Observation]:
    """Return each observed behavior that a requirement leaves open, with its rows."""
    observed = [check for check in checks if check["outcome"] == Outcome.OBSERVED and check["observation"]]
    ways = group_by(observed, lambda check: (check["requirements"][0], check["observation"]))
    found = [(rows[0]["requirements"][0], rows[0]["observation"], [format_label(row) for row in rows]) for rows in ways]
    return [Observation(name, find_statement(name), what, labels) for name, what, labels in sorted(found)]


def find_statement(requirement: str) -> str:
    """Return the statement of a requirement in the installed ledger; empty for an unknown requirement."""
    known = ledger.load().get(requirement)
    return known.statement if known else ""


def group_unjudged(checks: Iterable[ReportRow]) -> dict[str, list[ReportRow]]:
    """Group the rows that do not apply by reason; reasons about a missing role come last."""
    found: dict[str, list[ReportRow]] = {}
    for check in checks:
        if check["outcome"] == Outcome.NOT_APPLICABLE:
            found.setdefault(check["message"], []).append(check)
    return dict(sorted(found.items(), key=lambda item: (find_missing_role(item[1][0]) is not None, -len(item[1]))))


def find_missing_role(check: ReportRow) -> str | None:
    """Return the role whose missing model is the reason why a row does not apply, or None."""
    reason = check.get("reason")
    return reason["subject"] if reason and reason["kind"] == ReasonKind.NO_MODEL else None
