"""The rules by which results become a verdict."""

from __future__ import annotations

import pytest

from conformance.terms.outcome import Outcome, Reason, ReasonKind
from conformance.terms.result import CheckResult, Failure
from conformance.terms.verdict import Verdict, conclude, of_extensions, of_requirements


def result(outcome: Outcome, requirement: str = "BIN-ORDER-O", unmet: str | None = None, **fields: str) -> CheckResult:
    failure = Failure(unmet, "MUST", "", "", "a", "b") if unmet else None
    return CheckResult(
        fields.get("id", "ordering.x"), fields.get("row", ""), "X.", "ordering", fields.get("extension", "raw"),
        outcome, fields.get("requirements", requirement).split(), failure=failure,
    )  # fmt: skip


PASS, FAIL, ADVISORY, OBSERVED = Outcome.PASS, Outcome.FAIL, Outcome.ADVISORY, Outcome.OBSERVED
NOT_APPLICABLE, BLOCKED, ERROR = Outcome.NOT_APPLICABLE, Outcome.BLOCKED, Outcome.ERROR


@pytest.mark.parametrize(
    ("outcomes", "verdict", "exit_status"),
    [
        ([PASS], "conformant", 0),
        ([PASS, ADVISORY, OBSERVED, NOT_APPLICABLE], "conformant", 0),
        ([PASS, FAIL], "nonconformant", 1),
        ([PASS, BLOCKED], "incomplete", 6),
        ([PASS, ERROR], "incomplete", 6),
        ([FAIL, BLOCKED, ERROR], "nonconformant", 1),
        ([NOT_APPLICABLE, NOT_APPLICABLE], "incomplete", 6),
        ([], "incomplete", 6),
    ],
)
def test_conclude(outcomes: list[Outcome], verdict: str, exit_status: int) -> None:
    concluded = conclude([result(outcome) for outcome in outcomes])
    assert (concluded.verdict, concluded.exit_status) == (verdict, exit_status)
    assert bool(concluded.why) == (verdict != "conformant")


def test_missing_checks_and_a_lost_target_are_never_conformant() -> None:
    lost = CheckResult(
        "ordering.y", "", "Y.", "ordering", "raw", ERROR, ["BIN-ORDER-O"], reason=Reason(ReasonKind.TARGET_LOST)
    )
    assert conclude([result(PASS), lost], lost="refused").verdict == "incomplete"
    gone = "1 check not judged: the target is gone: refused"
    assert conclude([result(FAIL), lost], lost="refused") == Verdict("nonconformant", ["1 check failed", gone])
    assert conclude([result(PASS)], missing=["a[b]"]).why == ["1 check not run"]
    assert conclude([result(PASS)], missing=["a[b]"]).verdict == "incomplete"
    assert conclude([result(PASS)], missing=["a[b]"], stopped="why").why == ["1 check not run: why"]
    assert conclude([result(FAIL)], missing=["a[b]"]) == Verdict("nonconformant", ["1 check failed", "1 check not run"])
    assert conclude([result(PASS)], lost="refused").why == ["the target is gone: refused"]


def test_extensions_are_judged_apart() -> None:
    results = [result(PASS, extension="raw"), result(FAIL, extension="classification")]
    extensions = of_extensions(results, ["raw", "classification"])
    assert extensions["raw"] == {"offered": True, "verdict": "conformant", "counts": {"pass": 1}}
    assert extensions["classification"] == {"offered": True, "verdict": "nonconformant", "counts": {"fail": 1}}
    assert extensions["binary_tensor_data"] == {"offered": False, "verdict": "not_applicable", "counts": {}}


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ([result(PASS), result(FAIL, unmet="BIN-ORDER-O")], {"BIN-ORDER-O": "fail"}),
        ([result(PASS), result(NOT_APPLICABLE)], {"BIN-ORDER-O": "pass"}),
        ([result(NOT_APPLICABLE)], {"BIN-ORDER-O": "not_applicable"}),
        ([result(BLOCKED), result(PASS)], {"BIN-ORDER-O": "blocked"}),
        # a check that stopped at one of its requirements says nothing about the other
        (
            [result(FAIL, requirements="OIP-ERROR OIP-ERROR-STATUS", unmet="OIP-ERROR")],
            {"OIP-ERROR": "fail", "OIP-ERROR-STATUS": "blocked"},
        ),
        (
            [
                result(ADVISORY, requirements="OIP-ERROR OIP-ERROR-STATUS", unmet="OIP-ERROR-STATUS"),
                result(PASS, "OIP-ERROR"),
            ],
            {"OIP-ERROR": "pass", "OIP-ERROR-STATUS": "advisory"},
        ),
        (  # a row may come upon what it does not answer for
            [result(PASS, "BIN-ORDER-O"), result(FAIL, "OIP-ANSWER", "BIN-ORDER-O"), result(PASS, "OIP-ANSWER")],
            {"BIN-ORDER-O": "fail", "OIP-ANSWER": "pass"},
        ),
        ([result(FAIL, "OIP-ANSWER", "BIN-ORDER-O")], {"BIN-ORDER-O": "fail", "OIP-ANSWER": "blocked"}),
    ],
)
def test_requirements(results: list[CheckResult], verdicts: dict[str, str]) -> None:
    found = {entry["id"]: entry["verdict"] for entry in of_requirements(results)}
    assert {name: found[name] for name in verdicts} == verdicts
