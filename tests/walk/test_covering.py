"""Covering arrays: every two values that can meet do meet, none that cannot, and the steps are the same each time."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import pytest

from conformance.checks.support.covering import Coverage, Step, StepSpace
from conformance.checks.walk.axes import KINDS, NEUTRAL, find_cost, is_excluded, is_invalid, is_needed
from conformance.checks.walk.covering_arrays import load_array
from conformance.checks.walk.exchanges import build_steps
from tests.support.covering_arrays import ALL_AXES, compute_arrays

AXES = {"size": ("none", "one", "many"), "form": ("json", "binary"), "way": ("plain", "chunks", "gzip")}


def never(_a: str, _v: str, _b: str, _w: str) -> bool:
    return False


def met(steps: list[Step]) -> set[tuple[tuple[str, str], ...]]:
    return {tuple(sorted(pair)) for step in steps for pair in combinations(step.items(), 2)}


def test_all_pairs_meet_in_few_steps() -> None:
    steps, coverage = StepSpace(AXES, never).build_array()
    assert len(met(steps)) == 3 * 2 + 3 * 3 + 2 * 3
    assert coverage == Coverage(21, 21)
    assert 9 <= len(steps) <= 12  # 18 steps would be all there are


def test_what_never_meets_is_in_no_step() -> None:
    def excluded(a: str, v: str, b: str, w: str) -> bool:
        return {(a, v), (b, w)} == {("size", "none"), ("way", "gzip")}

    steps, coverage = StepSpace(AXES, excluded).build_array()
    assert (("size", "none"), ("way", "gzip")) not in met(steps)
    assert len(met(steps)) == coverage.possible == 20


def test_a_pair_that_no_third_value_meets_is_no_possible_one() -> None:
    def excluded(a: str, v: str, b: str, w: str) -> bool:  # nothing of `form` meets many and gzip both
        pairs = [{("size", "many"), ("form", "json")}, {("way", "gzip"), ("form", "binary")}]
        return {(a, v), (b, w)} in pairs

    steps, coverage = StepSpace(AXES, excluded).build_array()
    assert coverage.possible == 21 - 2 - 1
    assert len(met(steps)) == coverage.possible


def test_a_pair_that_need_not_meet_costs_no_step() -> None:
    def is_needed(a: str, _v: str, b: str, _w: str) -> bool:
        return "size" in (a, b)

    def find_cost(axis: str, value: str) -> int:
        return int((axis, value) == ("way", "gzip"))

    steps, coverage = StepSpace(AXES, never, find_cost, is_needed).build_array()
    assert coverage == Coverage(3 * 2 + 3 * 3, 3 * 2 + 3 * 3)
    assert len(steps) == 9
    assert sum(step["way"] == "gzip" for step in steps) == 3  # once for each size


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_of_a_kind_are_valid_and_cover_what_they_can(kind: str) -> None:
    steps = build_steps(kind)
    assert [step for step in steps if is_invalid(step)] == []
    space = StepSpace(KINDS[kind], partial(is_excluded, kind), find_cost, is_needed)
    own = [{axis: step[axis] for axis in KINDS[kind]} for step in steps]
    assert space.measure_coverage(own).met == space.measure_coverage(own).possible


def test_the_arrays_of_the_file_are_those_of_the_axes() -> None:
    """If not: `python -m tests.support.covering_arrays`."""
    arrays = compute_arrays()
    assert {kind: load_array(kind, ALL_AXES[kind]) for kind in arrays} == arrays


@pytest.mark.parametrize("kind", KINDS)
def test_neutral_values_stand_first(kind: str) -> None:
    assert {axis: values[0] for axis, values in KINDS[kind].items() if axis not in ("role", "classes")}.items() <= (
        NEUTRAL.items()
    )
