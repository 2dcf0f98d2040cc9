"""A finished run as one case for each requirement, with the rows that say something of it: what a CI page shows."""

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

# Of a requirement with this verdict, unless one of its rows fails the run.
_STATUS: Mapping[Outcome, Status] = {
    Outcome.PASS: "passed",
    Outcome.OBSERVED: "passed",
    Outcome.ADVISORY: "passed",
}
_FAILING = (Outcome.FAIL, Outcome.FIXED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class Case:
    """One requirement, and what a run says of it.

    Attributes:
        name: its id and statement.
        message: one line; of a case that passed, empty.
        text: of a case that failed, every row that fails it, the first of each check in full.
        duration: seconds of the rows whose first requirement it is, so that all cases take as long as all rows.
        properties: what else is to say, by name.
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
    """Return a case for each requirement that a row of the run answers for, in the order of the ledger.

    Args:
        results: of every check that was run, as the baseline has them where there is one.
        rerun: the command that runs the suite again.
        party: who was judged.
    """
    rows = group_by_requirement(results)
    verdicts = {entry["id"]: Outcome(entry["verdict"]) for entry in conclude_requirements(results, party)}
    return [_case(entry, verdicts[name], rows[name], rerun) for name, entry in ledger.load().items() if rows.get(name)]


def _case(entry: Requirement, verdict: Outcome, rows: Sequence[CheckResult], rerun: str) -> Case:
    failing = [row for row in rows if _is_failing(row, entry)]
    status: Status = "failed" if failing else _STATUS.get(verdict, "skipped")
    shown = failing or ([] if status == "passed" else [row for row in rows if row.message])
    counts = {word.long: sum(row.outcome is outcome for row in rows) for outcome, word in OUTCOME_WORDINGS.items()}
    return Case(
        str(entry.area),
        entry.id,
        f"{entry.id}: {entry.statement}",
        status,
        _message(entry, verdict, shown),
        "\n".join(_text(failing, rerun)),
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
    """Say whether a row fails the run by this requirement: that the target is gone is told once, elsewhere."""
    said = row.outcome if row.outcome is Outcome.FIXED else find_outcome(row, entry)
    return said in _FAILING and not row.is_for(ReasonKind.TARGET_LOST)


def _message(entry: Requirement, verdict: Outcome, shown: Sequence[CheckResult]) -> str:
    if not shown:
        return "" if verdict in _STATUS else f"{OUTCOME_WORDINGS[verdict].short}: {OUTCOME_WORDINGS[verdict].meaning}"
    more = f" (and {len(shown) - 1} more row{'s' if len(shown) > 2 else ''})" if shown[1:] else ""
    first = shown[0].message.partition("\n")[0]
    return f"{entry.level} {entry.id}: {first}{more}"


def _text(failing: Sequence[CheckResult], rerun: str) -> list[str]:
    lines: list[str] = []
    seen: set[str] = set()
    for row in failing:
        lines += [f"{row.label}: {row.message}"] if row.id in seen else format_block(row, rerun)
        seen.add(row.id)
    return lines
