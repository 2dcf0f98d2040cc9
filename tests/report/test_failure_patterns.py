"""What failed requests share: patterns over rows written by hand."""

from __future__ import annotations

import pytest

from conformance.report.blocks import build_blocks
from conformance.report.failure_patterns import FailurePattern, find_patterns, format_pattern
from conformance.spec.outcome import Outcome
from tests.support.small_reports import Report, check

JSON, BYTES, BINARY, ID = "in JSON", "with BYTES in JSON", "as binary data", "with an id"
REQUIREMENTS = {BINARY: "BIN-DATATYPES-I"}


def row(unmet: str, *features: str, answer: str = "refused", over: str = "http", **more: str) -> Report:
    """A row whose one request has these features; one without an unmet requirement passed."""
    sent = {"features": [(name, REQUIREMENTS.get(name, "")) for name in features], "answer": answer, "over": over}
    outcome = more.get("outcome", "fail" if unmet else "pass")
    return check("json.x", "", outcome, unmet=unmet, sent=sent if unmet else {**sent, "answer": "right"})


def refused(*features: str, count: int = 4, unmet: str = "OIP-ANSWER", **more: str) -> list[Report]:
    return [row(unmet, *features, **more) for _ in range(count)]


ANSWERED = [row("", JSON), row("", BINARY)] * 10


def texts(rows: list[Report]) -> list[str]:
    return [pattern.requests for pattern in find_patterns(rows)]


def test_a_pattern_is_what_all_failed_requests_have_and_no_other() -> None:
    (pattern,) = find_patterns([*refused(JSON, BYTES), *ANSWERED])
    assert pattern == FailurePattern(BYTES, "refused", "OIP-ANSWER", {"OIP-ANSWER": 4}, 4, 20)
    assert format_pattern(pattern.to_dict()) == f"Every request {BYTES} is refused (4 of 4 rows; 0 of 20 other rows)"


def test_the_plainest_feature_is_named() -> None:
    assert texts([*refused(BYTES, ID), *ANSWERED]) == [BYTES]


def test_two_features_are_named_where_one_alone_is_answered() -> None:
    assert texts([*refused(JSON, ID), row("", ID), *ANSWERED]) == [f"{JSON} and {ID}"]
    assert texts([*refused(JSON, ID, count=3), row("", ID), *ANSWERED]) == []


def test_failures_of_two_reasons_have_two_patterns() -> None:
    assert texts([*refused(BYTES, count=3), *refused(ID, count=5), *ANSWERED]) == [ID, BYTES]


def test_requests_that_failed_differently_are_told_apart() -> None:
    rows = [*refused(BYTES), *refused(ID, answer="server_error"), *refused("in chunks", answer="none"), *ANSWERED]
    assert [(each.requests, each.answer) for each in find_patterns(rows)] == [
        (BYTES, "refused"), (ID, "server_error"), ("in chunks", "none"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [*refused(BYTES, count=1), *ANSWERED],
        [*refused(BYTES), *ANSWERED[:10]],
        [*refused(BYTES), row("", BYTES), *ANSWERED],
        [*refused(BYTES), row("OIP-ID", BYTES, answer="wrong"), *ANSWERED],
        [*refused(BYTES), row("", JSON, ID), *refused(JSON, count=2), *ANSWERED],
        [*refused(BYTES, outcome="advisory"), *ANSWERED],
        [*refused(BYTES, answer="wrong"), *ANSWERED],
        [check("json.x", "", "fail", unmet="OIP-ID")],
    ],
    ids=["one-row", "few-others", "answered", "answered-wrongly", "unexplained", "advice", "wrong-answers", "unsent"],
)
def test_uncertain_pattern_is_not_reported(rows: list[Report]) -> None:
    assert find_patterns(rows) == []


def test_pattern_may_leave_a_tenth_of_failures_unexplained() -> None:
    assert texts([*refused(BYTES, count=9), row("OIP-ID", JSON), *ANSWERED]) == [BYTES]


def test_each_transport_stands_for_itself() -> None:
    over_grpc = refused(ID, over="grpc", unmet="OIP-ANSWER/grpc")
    others = [row("", "in raw contents", over="grpc")] * 20
    (pattern,) = find_patterns([*over_grpc, row("", ID), *ANSWERED, *others])
    assert (pattern.requests, pattern.requirement, pattern.others) == (ID, "OIP-ANSWER/grpc", 20)


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
    assert pattern.requirement == named


def order(rows: list[Report]) -> list[str]:
    patterns = [pattern.to_dict() for pattern in find_patterns(rows)]
    return [block.requirement for block in build_blocks(rows, Outcome.FAIL, patterns=patterns)]


def test_failures_explained_by_pattern_come_last() -> None:
    rows = [*refused(BYTES, unmet="OIP-OUTPUTS-LISTED"), *refused(BYTES), *ANSWERED]
    other = check("headers.x", "", "fail", unmet="BIN-HEADER-O")
    assert order([*rows, other]) == ["OIP-ANSWER", "BIN-HEADER-O", "OIP-OUTPUTS-LISTED"]


def test_a_small_pattern_is_not_pushed_to_the_head() -> None:
    many = [check("json.y", str(number), "fail", unmet="OIP-ID", requirements=["OIP-ID"]) for number in range(9)]
    rows = [*refused(BINARY, unmet="BIN-DATATYPES-I"), *[row("", JSON)] * 20, *many]
    assert order(rows) == ["OIP-ID", "BIN-DATATYPES-I"]
