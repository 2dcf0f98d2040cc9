"""What a run looks like, by patterns that are made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from conformance.fault_hints import hint_selection
from conformance.fault_hints.hint_selection import find_fault_hints, format_hints
from conformance.fault_hints.patterns import Patterns, from_dict
from tests.support.made_reports import HOSTILE, Report, check, failure

ROWS = ["a", "b", "c", "d"]
ALL, FIRST_TWO = "f", "3"


def fault(*breaks: str, unmet: Mapping[str, Mapping[str, str]], met: str = "http") -> dict[str, Any]:
    return {"summary": "It is wrong.", "breaks": breaks, "met": [met], "unmet": unmet, "stuck": {}}


PATTERNS = from_dict(
    {
        "rows": {
            "http": {"ordering.answer": ROWS, "sizes.answer": ROWS, "raw.body": ROWS, "json.text": ROWS},
            "grpc": {"grpc.answer": ROWS},
            "walk": {"walk.everything": ROWS},
        },
        "faults": {
            "reversed": fault("BIN-ORDER-O", unmet={"ordering.answer": {"BIN-ORDER-O": ALL}}),
            "two-reversed": fault("BIN-ORDER-O", unmet={"ordering.answer": {"BIN-ORDER-O": FIRST_TWO}}),
            "half-a-size": fault("BIN-SIZE-O", unmet={"sizes.answer": {"BIN-SIZE-O": ALL}}),
            "raw-refused": fault("RAW-ANSWER", unmet={"raw.body": {"RAW-ANSWER": ALL}}),
            "id-forgotten": fault("OIP-ID", unmet={"json.text": {"OIP-ID": ALL}}),
            "long-way": fault("OIP-ISOLATION", unmet={"walk.everything": {"OIP-ISOLATION": ALL}}, met="walk"),
        },
    }
)


def unmet(check_id: str, requirement: str, rows: str, outcome: str = "fail") -> list[Report]:
    return [check(check_id, row, outcome, failure=failure(requirement)) for row in rows]


def met(check_id: str, rows: str = "abcd", outcome: str = "pass") -> list[Report]:
    return [check(check_id, row, outcome) for row in rows]


def named(*checks: list[Report], patterns: Patterns = PATTERNS) -> list[tuple[str, int, int]]:
    entries = [entry for part in checks for entry in part]
    return [(found.fault, found.explains, found.of) for found in find_fault_hints(entries, patterns)]


def test_a_fault_is_named_by_its_rows() -> None:
    assert named(unmet("ordering.answer", "BIN-ORDER-O", "abcd")) == [("reversed", 4, 4)]
    assert named(unmet("ordering.answer", "BIN-ORDER-O", "ab"), met("ordering.answer", "cd")) == [
        ("two-reversed", 2, 2)
    ]


def test_what_is_named_is_described() -> None:
    (found,) = find_fault_hints(unmet("sizes.answer", "BIN-SIZE-O", "abcd"), PATTERNS)
    assert found.to_dict() == {
        "fault": "half-a-size",
        "requirement": "BIN-SIZE-O",
        "summary": "It is wrong.",
        "explains": 4,
        "of": 4,
    }


def test_rows_that_pass_speak_against_a_fault() -> None:
    assert named(unmet("sizes.answer", "BIN-SIZE-O", "a"), met("sizes.answer", "bcd")) == []


@pytest.mark.parametrize("outcome", ["not_applicable", "blocked", "error", "observed"])
def test_rows_that_were_not_judged_say_nothing(outcome: str) -> None:
    assert named(unmet("sizes.answer", "BIN-SIZE-O", "a"), met("sizes.answer", "bcd", outcome)) == [
        ("half-a-size", 1, 1)
    ]


@pytest.mark.parametrize("outcome", ["fail", "known_failure", "advisory"])
def test_whatever_is_not_met_counts(outcome: str) -> None:
    assert named(unmet("sizes.answer", "BIN-SIZE-O", "abcd", outcome)) == [("half-a-size", 4, 4)]


def test_two_faults_are_named_both() -> None:
    both = named(unmet("ordering.answer", "BIN-ORDER-O", "abcd"), unmet("sizes.answer", "BIN-SIZE-O", "abcd"))
    assert sorted(both) == [("half-a-size", 4, 8), ("reversed", 4, 8)]


def test_two_faults_that_fit_equally_well_are_named_once_each() -> None:
    both = named(unmet("raw.body", "RAW-ANSWER", "abcd"), unmet("json.text", "OIP-ID", "abcd"))
    assert both == [("id-forgotten", 4, 8), ("raw-refused", 4, 8)]


def test_three_are_named_at_most() -> None:
    everything = [
        unmet("ordering.answer", "BIN-ORDER-O", "abcd"),
        unmet("sizes.answer", "BIN-SIZE-O", "abcd"),
        unmet("raw.body", "RAW-ANSWER", "abcd"),
        unmet("json.text", "OIP-ID", "abcd"),
    ]
    assert len(named(*everything)) == hint_selection.MAX_HINTS == 3


def test_faults_that_no_row_tells_apart_are_named_both() -> None:
    twin = {**PATTERNS.of, "twin": replace(PATTERNS.of["raw-refused"], fault="twin")}
    found = named(unmet("raw.body", "RAW-ANSWER", "abcd"), patterns=replace(PATTERNS, of=twin))
    assert found == [("raw-refused", 4, 4), ("twin", 4, 4)]


def test_nothing_is_named_where_another_requirement_fails() -> None:
    assert named(unmet("sizes.answer", "BIN-PACKED-O", "abcd")) == []
    assert named(unmet("datatypes.unheard-of", "BIN-DATATYPES-O", "abcd")) == []


def test_a_fault_is_named_only_where_it_explains_something() -> None:
    """The requirement alone, in a check that the fault passes, is no likeness."""
    assert named(unmet("json.text", "BIN-SIZE-O", "ab")) == []


def test_a_row_that_the_patterns_do_not_know_is_like_the_others() -> None:
    new = [check("sizes.answer", "a new row", "fail", failure=failure("BIN-SIZE-O"))]
    assert named(unmet("sizes.answer", "BIN-SIZE-O", "abcd"), new) == [("half-a-size", 5, 5)]


def test_rows_of_a_kind_that_the_fault_never_met_do_not_speak_against_it() -> None:
    walked = unmet("walk.everything", "BIN-SIZE-O", "ab")
    called = [check("grpc.answer", "a", "fail", failure=failure("OIP-ID/grpc"))]
    assert named(unmet("sizes.answer", "BIN-SIZE-O", "abcd"), walked) == [("half-a-size", 6, 6)]
    assert named(unmet("json.text", "OIP-ID", "abcd"), called) == [("id-forgotten", 5, 5)]


def test_a_fault_of_the_walk_is_named_by_the_walk() -> None:
    assert named(unmet("walk.everything", "OIP-ISOLATION", "abc")) == [("long-way", 3, 3)]


def test_a_row_on_a_deployed_model_counts_as_that_of_the_roles() -> None:
    assert [PATTERNS.place("sizes.answer", row) for row in ("b", "b@resnet", "own@resnet")] == [1, 1, None]
    assert named([check("sizes.answer", "b@resnet", "fail", failure=failure("BIN-SIZE-O"))]) == [("half-a-size", 1, 1)]


def test_nothing_is_read_where_everything_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hint_selection, "load", lambda: pytest.fail("the patterns are read"))
    assert find_fault_hints([*met("sizes.answer"), *met("raw.body", outcome="observed")]) == []


def test_a_line_for_a_terminal() -> None:
    (found,) = find_fault_hints(unmet("sizes.answer", "BIN-SIZE-O", "abcd"), PATTERNS)
    assert format_hints([found.to_dict()]) == [
        "possible cause  half-a-size: It is wrong (explains 4 of 4 unmet rows; `oip-conformance explain half-a-size`)"
    ]
    assert format_hints([]) == []


def test_a_line_of_a_report_from_anywhere_is_one_printable_line() -> None:
    (line,) = format_hints([{"fault": HOSTILE, "requirement": "X", "summary": HOSTILE, "explains": 1, "of": 1}])
    assert line.isprintable()
