"""What failed requests share: patterns over rows written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.report.blocks import build_blocks
from conformance.report.failure_patterns import find_patterns, format_pattern
from conformance.report.json_report import build_rows
from conformance.spec.outcome import AnswerKind, Outcome
from conformance.spec.result import CheckResult, Failure, SentRequests

JSON, BYTES, BINARY, ID = "in JSON", "with BYTES in JSON", "as binary data", "with an id"
REQUIREMENTS = {BINARY: "BIN-DATATYPES-I"}


def row(
    unmet: str, *features: str, answer: AnswerKind = AnswerKind.REFUSED, over: str = "http", outcome: str = "fail"
) -> CheckResult:
    """A row whose one request has these features; one without an unmet requirement passed."""
    sent: SentRequests = {
        "features": [(name, REQUIREMENTS.get(name, "")) for name in features],
        "answer": answer if unmet else AnswerKind.RIGHT,
        "over": over,
    }
    return result("json.x", "", unmet, Outcome(outcome) if unmet else Outcome.PASS, sent)


def result(
    check: str, row: str, unmet: str, outcome: Outcome = Outcome.FAIL, sent: SentRequests | None = None
) -> CheckResult:
    failure = Failure(unmet, "MUST", "", "", "", "") if unmet else None
    return CheckResult(check, row, "", "json", "protocol", outcome, [unmet or "OIP-ANSWER"], failure=failure, sent=sent)


def refused(*features: str, count: int = 4, unmet: str = "OIP-ANSWER", **more: Any) -> list[CheckResult]:
    return [row(unmet, *features, **more) for _ in range(count)]


ANSWERED = [row("", JSON), row("", BINARY)] * 10


def texts(rows: list[CheckResult]) -> list[str]:
    return [pattern["requests"] for pattern in find_patterns(rows)]


def test_a_pattern_is_what_all_failed_requests_have_and_no_other() -> None:
    (pattern,) = find_patterns([*refused(JSON, BYTES), *ANSWERED])
    assert pattern == {
        "requests": BYTES, "answer": "refused", "requirement": "OIP-ANSWER", "missed": {"OIP-ANSWER": 4}, "rows": 4,
        "others": 20,
    }  # fmt: skip
    assert format_pattern(pattern) == f"Every request {BYTES} is refused (4 of 4 rows; 0 of 20 other rows)"


def test_the_plainest_feature_is_named() -> None:
    assert texts([*refused(BYTES, ID), *ANSWERED]) == [BYTES]


def test_two_features_are_named_where_one_alone_is_answered() -> None:
    assert texts([*refused(JSON, ID), row("", ID), *ANSWERED]) == [f"{JSON} and {ID}"]
    assert texts([*refused(JSON, ID, count=3), row("", ID), *ANSWERED]) == []


def test_failures_of_two_reasons_have_two_patterns() -> None:
    assert texts([*refused(BYTES, count=3), *refused(ID, count=5), *ANSWERED]) == [ID, BYTES]


def test_requests_that_failed_differently_are_told_apart() -> None:
    rows = [
        *refused(BYTES),
        *refused(ID, answer=AnswerKind.SERVER_ERROR),
        *refused("in chunks", answer=AnswerKind.NONE),
        *ANSWERED,
    ]
    assert [(each["requests"], each["answer"]) for each in find_patterns(rows)] == [
        (BYTES, "refused"), (ID, "server_error"), ("in chunks", "none"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [*refused(BYTES, count=1), *ANSWERED],
        [*refused(BYTES), *ANSWERED[:10]],
        [*refused(BYTES), row("", BYTES), *ANSWERED],
        [*refused(BYTES), row("OIP-ID", BYTES, answer=AnswerKind.WRONG), *ANSWERED],
        [*refused(BYTES), row("", JSON, ID), *refused(JSON, count=2), *ANSWERED],
        [*refused(BYTES, outcome="advisory"), *ANSWERED],
        [*refused(BYTES, answer=AnswerKind.WRONG), *ANSWERED],
        [result("json.x", "", "OIP-ID")],
    ],
    ids=["one-row", "few-others", "answered", "answered-wrongly", "unexplained", "advice", "wrong-answers", "unsent"],
)
def test_uncertain_pattern_is_not_reported(rows: list[CheckResult]) -> None:
    assert find_patterns(rows) == []


def test_pattern_may_leave_a_tenth_of_failures_unexplained() -> None:
    assert texts([*refused(BYTES, count=9), row("OIP-ID", JSON), *ANSWERED]) == [BYTES]


def test_each_transport_stands_for_itself() -> None:
    over_grpc = refused(ID, over="grpc", unmet="OIP-ANSWER/grpc")
    others = [row("", "in raw contents", over="grpc")] * 20
    (pattern,) = find_patterns([*over_grpc, row("", ID), *ANSWERED, *others])
    assert (pattern["requests"], pattern["requirement"], pattern["others"]) == (ID, "OIP-ANSWER/grpc", 20)


@pytest.mark.parametrize(
    ("feature", "unmet", "named"),
    [
        (BINARY, ["BIN-ORDER-I", "BIN-ORDER-I", "BIN-DATATYPES-I", "OIP-ANSWER"], "BIN-DATATYPES-I"),
        (BINARY, ["BIN-ORDER-I", "BIN-ORDER-I", "BIN-MIXED-I", "OIP-ANSWER"], "OIP-ANSWER"),
        (BYTES, ["OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-LISTED", "OIP-ANSWER"], "OIP-ANSWER"),
        (BYTES, ["OIP-ID", "OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-LISTED"], "OIP-OUTPUTS-LISTED"),
    ],
)
def test_a_pattern_stands_at_what_it_breaks(feature: str, unmet: list[str], named: str) -> None:
    (pattern,) = find_patterns([*(row(name, feature) for name in unmet), *[row("", JSON)] * 20])
    assert pattern["requirement"] == named


def order(rows: list[CheckResult]) -> list[str]:
    blocks = build_blocks(build_rows(rows), Outcome.FAIL, patterns=find_patterns(rows))
    return [block.requirement for block in blocks]


def test_failures_explained_by_pattern_come_last() -> None:
    rows = [*refused(BYTES, unmet="OIP-OUTPUTS-LISTED"), *refused(BYTES), *ANSWERED]
    other = result("headers.x", "", "BIN-HEADER-O")
    assert order([*rows, other]) == ["OIP-ANSWER", "BIN-HEADER-O", "OIP-OUTPUTS-LISTED"]


def test_a_small_pattern_is_not_pushed_to_the_head() -> None:
    many = [result("json.y", str(number), "OIP-ID") for number in range(9)]
    rows = [*refused(BINARY, unmet="BIN-DATATYPES-I"), *[row("", JSON)] * 20, *many]
    assert order(rows) == ["OIP-ID", "BIN-DATATYPES-I"]
