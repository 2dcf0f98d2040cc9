"""What the terminal says of rows that no model fills the role of."""

from __future__ import annotations

import pytest

from conformance.report import terminal
from conformance.survey.survey import Survey
from conformance.terms import ledger
from conformance.terms.outcome import Outcome, Reason, ReasonKind
from conformance.terms.result import CheckResult


def skipped(requirement_id: str) -> CheckResult:
    entry = ledger.requirement(requirement_id)
    return CheckResult(
        "a.b", "", "A claim.", entry.area, entry.extension, Outcome.NOT_APPLICABLE, [entry.id], "no model",
        reason=Reason(ReasonKind.NO_MODEL, "multi"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("requirement_id", "count", "role"),
    [("BIN-ORDER-O", "1", f"{'multi':28}BIN-ORDER-O"), ("BIN-BODY-LONG", "none", "for more rows: multi")],
    ids=["a MUST", "a SHOULD"],
)
def test_rows_without_a_model_are_counted_with_the_musts_that_stay_unjudged(
    requirement_id: str, count: str, role: str
) -> None:
    assert list(terminal.not_judged([skipped(requirement_id)], Survey())) == [
        f"Rows skipped because no model fills their role: 1. MUSTs not judged because of that: {count}.",
        "Deploy these roles to run them (`oip-conformance models export` writes them for several servers):",
        f"      {role}",
    ]
