"""What to fix, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.report.blocks import build_blocks
from conformance.spec.outcome import Outcome
from tests.support.small_reports import Report, check


def failed(identity: str, row: str, unmet: str, **more: Any) -> Report:
    return check(identity, row, "fail", unmet=unmet, **({"requirements": [unmet]} | more))


def names(*checks: Report) -> list[tuple[str, int]]:
    return [(block.requirement, block.count) for block in build_blocks(checks, Outcome.FAIL)]


HEADER, SIZE = failed("headers.x", "a", "BIN-HEADER-I"), failed("sizes.x", "a", "BIN-SIZE-O")


@pytest.mark.parametrize(
    ("rows", "first", "second"),
    [
        ([HEADER, failed("json.x", "a", "OIP-ID")], "OIP-ID", "BIN-HEADER-I"),
        ([HEADER, check("headers.x", "b", "pass", requirements=["BIN-HEADER-I"]), SIZE], "BIN-SIZE-O", "BIN-HEADER-I"),
        ([failed("odd.x", "a", "ODD"), HEADER], "BIN-HEADER-I", "ODD"),
        ([failed("golden.x", "a", "OIP-ANSWER"), SIZE], "BIN-SIZE-O", "OIP-ANSWER"),
    ],
    ids=["the protocol", "the larger share of rows", "what is known", "what a dedicated check fails"],
)
def test_what_comes_first(rows: list[Report], first: str, second: str) -> None:
    assert names(*rows) == [(first, 1), (second, 1)]


def test_a_row_that_ends_the_server_is_first() -> None:
    ended = failed("walk.x", "a", "OIP-ALIVE-LEGAL")
    ended["failure"]["ends_server"] = True
    rows = [failed("errors.x", "a", "OIP-ERROR"), check("walk.x", "b", "pass", requirements=["OIP-ALIVE-LEGAL"]), ended]
    assert names(*rows) == [("OIP-ALIVE-LEGAL", 1), ("OIP-ERROR", 1)]


def test_what_spreads_is_first_then_wrong_values_and_missing_refusals_last() -> None:
    wrong = failed("walk.x", "a", "BIN-DATATYPES-O")
    wrong["failure"]["wrong_values"] = True
    rows = [failed("json.x", "a", name) for name in ("OIP-REFUSAL", "OIP-ID", "OIP-ISOLATION", "HTTP-LENGTH")]
    expected = ["HTTP-LENGTH", "OIP-ISOLATION", "BIN-DATATYPES-O", "OIP-ID", "OIP-REFUSAL"]
    assert [name for name, _ in names(*rows, wrong)] == expected


def test_rows_of_several_checks_are_one_block() -> None:
    rows = [failed(f"headers.{name}", row, "BIN-HEADER-I") for name, row in (("x", "a"), ("y", "a"), ("x", "b"))]
    (block,) = build_blocks(rows, Outcome.FAIL)
    assert [(group.check, len(group.rows)) for group in block.groups] == [("headers.x", 2), ("headers.y", 1)]
    assert (block.count, block.judged) == (3, 3)


def test_an_odd_request_is_no_example_if_a_plain_one_fails() -> None:
    rows = [failed("errors.x", row, "OIP-ERROR") for row in ("multipart", "in-chunks", "plain", "plain-too")]
    lines = ("Content-Type: multipart/form-data", "(body in 2 chunks)", "content-type: application/json", "Accept: */*")
    for row, line in zip(rows, lines, strict=True):
        row["failure"]["evidence"] = {"request": {"head": ["POST /v2", line]}}
    (block,) = build_blocks(rows, Outcome.FAIL)
    assert [row["row"] for row in block.first.rows] == ["plain", "plain-too", "multipart", "in-chunks"]


def test_failed_golden_case_joins_block_of_dedicated_check() -> None:
    golden = failed("golden.x", "a", "OIP-ANSWER", requirements=["OIP-ANSWER", "BIN-SIZE-O"])
    dedicated = failed("sizes.x", "a", "BIN-SIZE-O")
    assert names(golden) == [("OIP-ANSWER", 1)]
    assert names(golden, dedicated) == [("BIN-SIZE-O", 2)]
    (block,) = build_blocks([golden, dedicated], Outcome.FAIL)
    assert (block.first.check, block.first.requirement) == ("sizes.x", "BIN-SIZE-O")
