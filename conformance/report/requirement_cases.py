"""Converts a finished run into one test case per requirement, for the test reports of CI systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.judging.failure import format_block
from conformance.spec import ledger
from conformance.spec.ledger import Party, Requirement
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.verdict import conclude_requirements, find_outcome, group_by_requirement

Status = Literal["passed", "failed", "skipped"]

# The status of a requirement by verdict, unless one of its rows fails the run.
_STATUS: Mapping[Outcome, Status] = {Outcome.PASS: "passed", Outcome.OBSERVED: "passed", Outcome.ADVISORY: "passed"}
_FAILING = (Outcome.FAIL, Outcome.FIXED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Case:
    """The test case of one requirement.

    Attributes:
        message: one line; empty for a case that passed.
        text: for a failed case, its failing rows; the first row of each check has all details.
        duration: the seconds of the rows whose first requirement is this one, so that durations add up to the total.
        properties: further properties by name.
    """

    area: str
    requirement: str
    name: str
    status: Status
    message: str
    text: str
    duration: float
    properties: Mapping[str, str]


def build_cases(results: Sequence[CheckResult], rerun: str, party: Party = Party.SERVER) -> list[Case]:
    """Return a case for each requirement that a row of the run tests, in the order of the ledger.

    `results`: the results of the run, with the baseline applied if there is one.
    """
    rows = group_by_requirement(results)
    of_packs = [entry for name in rows if (entry := ledger.get_requirement(name)).is_of_pack]
    entries = [*(entry for name, entry in ledger.load().items() if name in rows), *of_packs]
    concluded = [*conclude_requirements(results, party), *conclude_requirements(results, entries=of_packs)]
    verdicts = {entry["id"]: Outcome(entry["verdict"]) for entry in concluded}
    return [_build_case(entry, verdicts[entry.id], rows[entry.id], rerun) for entry in entries]


def _build_case(entry: Requirement, verdict: Outcome, rows: Sequence[CheckResult], rerun: str) -> Case:
    failing = [row for row in rows if _is_failing(row, entry)]
    status: Status = "failed" if failing else _STATUS.get(verdict, "skipped")
    shown = failing or ([] if status == "passed" else [row for row in rows if row.message])
    counts = {word.long: sum(row.outcome is outcome for row in rows) for outcome, word in OUTCOME_WORDINGS.items()}
    return Case(
        str(entry.area),
        entry.id,
        f"{entry.id}: {entry.statement}",
        status,
        _format_message(entry, verdict, shown),
        "\n".join(_format_failing_rows(failing, rerun)),
        sum(row.duration_s for row in rows if row.requirements[0] == entry.id),
        {
            "requirement": entry.id,
            "level": str(entry.level),
            "extension": str(entry.extension),
            "verdict": str(verdict),
            "rows": ", ".join(f"{count} {word}" for word, count in counts.items() if count),
            "explain": entry.explain,
            **({"page": entry.url} if entry.url else {}),
        },
    )


def _is_failing(row: CheckResult, entry: Requirement) -> bool:
    """Say whether a row fails the run because of a requirement; a row whose target was unreachable does not."""
    outcome = row.outcome if row.outcome is Outcome.FIXED else find_outcome(row, entry)
    return outcome in _FAILING and not row.has_reason(ReasonKind.TARGET_LOST)


def _format_message(entry: Requirement, verdict: Outcome, shown_rows: Sequence[CheckResult]) -> str:
    if not shown_rows:
        return "" if verdict in _STATUS else f"{OUTCOME_WORDINGS[verdict].short}: {OUTCOME_WORDINGS[verdict].meaning}"
    more = f" (and {len(shown_rows) - 1} more row{'s' if len(shown_rows) > 2 else ''})" if shown_rows[1:] else ""
    first = shown_rows[0].message.partition("\n")[0]
    return f"{entry.level} {entry.id}: {first}{more}"


def _format_failing_rows(failing: Sequence[CheckResult], rerun: str) -> list[str]:
    lines: list[str] = []
    seen: set[str] = set()
    for row in failing:
        lines += [f"{row.label}: {row.message}"] if row.id in seen else format_block(row, rerun)
        seen.add(row.id)
    return lines
