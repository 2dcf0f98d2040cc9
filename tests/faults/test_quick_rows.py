"""The rows of the profile quick: few, and yet some row of them fails for each fault that the suite knows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pytest

from conformance.judging.quick_rows import FILE
from conformance.judging.selection import CLIENTS, Subjects, list_profile_rows
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from reference_server import faults
from tests.clients.sightings import SEEN_BY as SEEN_BY_OF_CLIENTS
from tests.support.quick_record import Key, read_record
from tests.support.quick_rows import (
    BUDGETS_MS,
    COST_OF_A_ROW_MS,
    choose_rows,
    find_promises,
    list_named,
    list_unmet,
    sort_rows,
)
from tests.support.quick_share import count_seen, list_tenths
from tests.support.samples import read_seen_by

EVERYTHING = Subjects(robustness=True)
MIN_SHARE = 0.7  # of all tenths together four fifths
HINT = "run `python -m tests.support.quick_rows`"


def list_quick_rows() -> list[Key]:
    return [(check, row) for check, row in json.loads(FILE.read_text(encoding="utf-8"))]


def list_cases(subjects: Subjects, *, dangerous: bool = False) -> list[Case]:
    return list_profile_rows("certify", dangerous=dangerous, subjects=subjects, transports=TRANSPORTS)


def find_uncovered(wanted: Mapping[str, Collection[Key]]) -> list[str]:
    chosen = set(list_quick_rows())
    return [name for name, rows in wanted.items() if chosen.isdisjoint(rows)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_set_is_quick(transport: str) -> None:
    costs = read_record().costs
    rows = list_profile_rows("quick", transports=(transport,))
    assert sum(COST_OF_A_ROW_MS + costs[case.ids] for case in rows) <= BUDGETS_MS[transport]


def test_each_row_exists_and_is_named_once() -> None:
    rows = list_quick_rows()
    known = {(c.id, r.id) for subjects in (EVERYTHING, CLIENTS) for c, r in list_cases(subjects, dangerous=True)}
    assert set(rows) <= known, HINT
    assert len(rows) == len(set(rows))


def test_each_fault_is_seen() -> None:
    record = read_record().faults
    assert set(record) == set(faults.load()), HINT
    assert find_uncovered({name: one.rows for name, one in record.items()}) == [], HINT


def test_each_fault_of_a_client_is_seen() -> None:
    assert find_uncovered(read_seen_by(SEEN_BY_OF_CLIENTS)) == [], HINT


def test_each_unmet_requirement_of_a_real_server_is_seen() -> None:
    assert find_uncovered(list_unmet()) == [], HINT


@pytest.mark.parametrize("subjects", [EVERYTHING, CLIENTS], ids=["servers", "clients"])
def test_each_check_and_requirement_has_a_row(subjects: Subjects) -> None:
    rows = {case.ids: case for case in list_cases(subjects)}
    assert find_uncovered(list_named(rows)) == [], HINT


# --- how rows are chosen ----------------------------------------------------------------------------------------------

A, B, C, D = (("check", name) for name in "abcd")
OTHER = ("other", "a")


def test_few_and_cheap_rows_are_chosen() -> None:
    wanted = {"1": [A, B], "2": [A, B], "3": [C, D], "4": [A]}
    assert choose_rows(wanted, {A: 1, B: 1, C: 100, D: 1}) == [A, D]


def test_a_fault_is_seen_by_rows_of_several_checks() -> None:
    wanted = {"1": [A, B, OTHER], "2": [C]}
    costs = dict.fromkeys([A, B, C, OTHER], 1)
    cost = COST_OF_A_ROW_MS + 1
    assert sorted(choose_rows(wanted, costs, wanted.keys(), 3 * cost, costs.keys())) == [A, C, OTHER]
    assert sorted(choose_rows(wanted, costs, wanted.keys(), 3 * cost - 1, costs.keys())) == [A, C]


def test_what_nothing_else_covers_is_chosen_beyond_the_budget() -> None:
    assert sorted(choose_rows({"1": [A], "2": [B]}, {A: 1, B: 1000}, budget=1, more={A, B})) == [A, B]


def test_rows_beyond_the_budget_make_place_for_cheaper_ones() -> None:
    costs = {A: 1, B: 1000, C: 2}
    assert sorted(choose_rows({"1": [A]}, costs, budget=100, more=costs.keys())) == [A, C]


def test_a_check_whose_rows_each_see_another_fault_promises_more() -> None:
    promises = find_promises([[A], [B], [C, D, OTHER, ("other", "b")]], [A, B, C, D, OTHER, ("other", "b")])
    assert promises["check"] > 1 > promises["other"]


def test_the_row_that_sees_most_faults_is_first_and_others_keep_their_order() -> None:
    seen = {"1": [C], "2": [C], "3": [B]}
    assert sort_rows([A, B, C, D], seen, {}, {A: 0, B: 1, C: 2, D: 3}) == [C, B, A, D]


# --- what is not known yet --------------------------------------------------------------------------------------------


def test_rows_that_were_chosen_without_a_tenth_of_the_faults_see_most_of_it() -> None:
    record = read_record()
    unknown = list_tenths(record.faults)["tenth 0"]
    seen, _ = count_seen(record, unknown)
    assert seen >= MIN_SHARE * len(unknown)
