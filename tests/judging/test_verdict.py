"""The rules by which results become a verdict."""

from __future__ import annotations

import pytest

from conformance.spec.coverage import Coverage, Gap, GapReason
from conformance.spec.outcome import Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult, Failure
from conformance.spec.verdict import Verdict, conclude, conclude_extensions, conclude_requirements, format_sentence


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
    assert (concluded.verdict, concluded.exit_status()) == (verdict, exit_status)
    assert bool(concluded.why) == (verdict != "conformant")


# What of a requirement of each level, and of each concern, has no model.
GAP = Gap(1, (GapReason.NO_MODEL,), ("multi",))


def gaps(*names: str) -> Coverage:
    return Coverage(dict.fromkeys(names, GAP), unjudged=names, waiting=len(names))


@pytest.mark.parametrize(
    ("outcomes", "coverage", "verdict", "statuses"),
    [
        ([PASS], Coverage(), "conformant", (0, 0, 0)),
        ([PASS], gaps("BIN-ORDER-O"), "partial", (0, 6, 6)),
        ([PASS], gaps("OIP-REFUSAL"), "partial", (0, 6, 0)),
        ([PASS], gaps("BIN-BODY-LONG"), "conformant", (0, 0, 0)),  # a SHOULD
        ([PASS, ADVISORY], gaps("BIN-ORDER-O"), "partial", (0, 6, 6)),
        ([PASS, FAIL], gaps("BIN-ORDER-O"), "nonconformant", (1, 1, 1)),
        ([PASS, BLOCKED], gaps("BIN-ORDER-O"), "incomplete", (6, 6, 6)),
        ([PASS, ERROR], gaps("BIN-ORDER-O"), "incomplete", (6, 6, 6)),
        ([NOT_APPLICABLE], gaps("BIN-ORDER-O"), "incomplete", (6, 6, 6)),
        (
            [PASS],
            Coverage({"BIN-ORDER-O": Gap(1, (GapReason.NOT_RUN,))}),
            "conformant",
            (0, 0, 0),
        ),  # `missing` says that
    ],
)
def test_what_was_not_judged_makes_a_run_partial(
    outcomes: list[Outcome], coverage: Coverage, verdict: str, statuses: tuple[int, int, int]
) -> None:
    found = conclude([result(outcome) for outcome in outcomes], coverage=coverage)
    assert found.verdict == verdict
    assert tuple(found.exit_status(gate) for gate in (None, "conformant", "interoperable")) == statuses


@pytest.mark.parametrize(
    ("outcomes", "lost", "verdict", "why"),
    [
        ([PASS], None, "narrowed", ["1 of 3 rows, none failed"]),
        ([NOT_APPLICABLE], None, "narrowed", ["1 of 3 rows, none failed"]),
        ([], None, "narrowed", ["0 of 2 rows, none failed"]),
        ([PASS, ADVISORY], None, "narrowed", ["2 of 4 rows, none failed"]),
        ([FAIL], None, "nonconformant", ["1 row failed", "2 rows not run"]),
        ([PASS, BLOCKED], None, "incomplete", ["1 row blocked", "2 rows not run"]),
        ([PASS, ERROR], None, "incomplete", ["1 row in error", "2 rows not run"]),
        ([PASS], "refused", "incomplete", ["the target is gone: refused"]),
    ],
)
def test_a_run_that_the_user_narrowed_has_a_word_of_its_own(
    outcomes: list[Outcome], lost: str | None, verdict: str, why: list[str]
) -> None:
    found = conclude([result(outcome) for outcome in outcomes], ["a[b]", "a[c]"], lost, is_narrowed=True)
    assert (found.verdict, found.why) == (verdict, why)
    assert found.interoperable is (False if verdict == "nonconformant" else None)


@pytest.mark.parametrize(
    ("verdict", "interoperable", "said"),
    [
        ("conformant", True, "s is conformant"),
        ("partial", None, "s is partial"),
        ("partial", True, "s is partial but interoperable"),
        ("nonconformant", True, "s is nonconformant but interoperable"),
        ("narrowed", None, "s: narrowed run"),
    ],
)
def test_who_is_what(verdict: str, interoperable: bool | None, said: str) -> None:
    assert format_sentence("s", verdict, interoperable) == said


def test_missing_checks_and_a_lost_target_are_never_conformant() -> None:
    lost = CheckResult(
        "ordering.y", "", "Y.", "ordering", "raw", ERROR, ["BIN-ORDER-O"], reason=Reason(ReasonKind.TARGET_LOST)
    )
    assert conclude([result(PASS), lost], lost="refused").verdict == "incomplete"
    gone = "1 row not judged: the target is gone: refused"
    assert conclude([result(FAIL), lost], lost="refused") == Verdict(
        "nonconformant", ["1 row failed", gone], interoperable=False
    )
    assert conclude([result(PASS)], missing=["a[b]"]).why == ["1 row not run"]
    assert conclude([result(PASS)], missing=["a[b]"]).verdict == "incomplete"
    assert conclude([result(PASS)], missing=["a[b]"], stopped="why").why == ["1 row not run: why"]
    assert conclude([result(FAIL)], missing=["a[b]"]).why == ["1 row failed", "1 row not run"]
    assert conclude([result(PASS)], lost="refused").why == ["the target is gone: refused"]


def test_extensions_are_judged_apart() -> None:
    results = [result(PASS, extension="raw"), result(FAIL, extension="classification")]
    extensions = conclude_extensions(results, ["raw", "classification"])
    assert extensions["raw"] == {"offered": True, "verdict": "conformant", "interoperable": True, "counts": {"pass": 1}}
    assert extensions["classification"] == {
        "offered": True,
        "verdict": "nonconformant",
        "interoperable": False,
        "counts": {"fail": 1},
    }
    absent = {"offered": False, "verdict": "not_applicable", "interoperable": None, "counts": {}}
    assert extensions["binary_tensor_data"] == absent


# A requirement of each concern.
EXCHANGE, REFUSAL, TRANSPORT = "BIN-ORDER-O", "OIP-REFUSAL", "OIP-JSON"


@pytest.mark.parametrize(
    ("results", "interoperable", "exit_status"),
    [
        ([result(PASS, EXCHANGE), result(PASS, REFUSAL), result(PASS, TRANSPORT)], True, 0),
        ([result(PASS, EXCHANGE), result(FAIL, REFUSAL, REFUSAL)], True, 0),
        ([result(PASS, EXCHANGE), result(FAIL, TRANSPORT, TRANSPORT)], False, 1),
        ([result(FAIL, EXCHANGE, EXCHANGE), result(PASS, REFUSAL)], False, 1),
        ([result(PASS, EXCHANGE), result(BLOCKED, REFUSAL)], True, 0),
        ([result(PASS, REFUSAL), result(BLOCKED, EXCHANGE)], None, 6),
        ([result(PASS, REFUSAL)], None, 6),
        # what is not met decides, not what else the row answers for
        ([result(PASS, EXCHANGE), result(FAIL, requirements=f"{EXCHANGE} {REFUSAL}", unmet=REFUSAL)], True, 0),
        ([result(FAIL, requirements=f"{REFUSAL} {EXCHANGE}", unmet=EXCHANGE)], False, 1),
        ([result(PASS, EXCHANGE), result(BLOCKED, requirements=f"{REFUSAL} {EXCHANGE}")], None, 6),
    ],
)
def test_interoperable_is_who_meets_exchange_and_transport(
    results: list[CheckResult], interoperable: bool | None, exit_status: int
) -> None:
    concluded = conclude(results)
    assert (concluded.interoperable, concluded.exit_status("interoperable")) == (interoperable, exit_status)


def test_a_run_that_is_not_whole_is_not_interoperable() -> None:
    assert conclude([result(PASS, EXCHANGE)], missing=["a[b]"]).interoperable is None
    assert conclude([result(PASS, EXCHANGE)], lost="refused").interoperable is None


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
        # refused, with another status than is advised; answered right, where a refusal is advised
        ([result(ADVISORY, "OIP-COERCE", "OIP-ERROR-STATUS")], {"OIP-COERCE": "pass"}),
        ([result(FAIL, "OIP-ANSWER", "OIP-ERROR-STATUS")], {"OIP-ANSWER": "blocked"}),
        (
            [result(ADVISORY, requirements="OIP-NESTING-SAFE OIP-NESTING", unmet="OIP-NESTING")],
            {"OIP-NESTING-SAFE": "pass", "OIP-NESTING": "advisory"},
        ),
    ],
)
def test_requirements(results: list[CheckResult], verdicts: dict[str, str]) -> None:
    found = {entry["id"]: entry["verdict"] for entry in conclude_requirements(results)}
    assert {name: found[name] for name in verdicts} == verdicts
