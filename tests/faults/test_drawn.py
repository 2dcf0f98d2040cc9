"""The checks that draw what they send: each sees a fault, by its requirement, and an honest server passes them."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest

from conformance.judging.selection import list_profile_rows
from conformance.spec.outcome import Outcome
from reference_server import faults
from tests.support.sightings import Server, judge_rows, run_server, see

EXPLORING = [case for case in list_profile_rows("explore") if case[0].explores]
# Of the walk a few rows do: each draws from the same axes.
WALK = "walk.drawn-exchanges-are-right"
FEW = [case for case in EXPLORING if case[0].id != WALK or case[1].role in ("multi", "raw_variable", "scores_labelled")]
SEEN = {
    "datatypes.drawn-inputs-are-read": "int64-read-through-doubles",
    "datatypes.drawn-outputs-are-written": "fp64-written-through-single-precision",
    "datatypes.drawn-tensors-survive": "fp32-subnormals-read-as-zero",
    "bytes.drawn-shapes-are-read": "inputs-read-column-by-column",
    "bytes.drawn-shapes-are-written": "outputs-written-column-by-column",
    WALK: "ids-lose-their-second-surrogate",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


@pytest.fixture(autouse=True)
def the_same_each_time() -> Iterator[None]:
    before = hypothesis.settings.default
    hypothesis.settings.register_profile("drawn", derandomize=True, database=None, deadline=None, max_examples=15)
    hypothesis.settings.load_profile("drawn")
    yield
    hypothesis.settings.register_profile("before", before)
    hypothesis.settings.load_profile("before")


def test_there_are_no_others() -> None:
    assert {check.id for check, _ in EXPLORING} == set(SEEN)


def test_the_honest_server_passes(server: Server) -> None:
    results = list(judge_rows(server.url, FEW))
    assert [(result.label, result.message) for result in results if result.outcome is not Outcome.PASS] == []


@pytest.mark.parametrize(("check", "name"), SEEN.items())
def test_a_drawn_fault_is_found(check: str, name: str, server: Server) -> None:
    fault = faults.load()[name]
    sighting = see(server, fault, [case for case in FEW if case[0].id == check], until=())
    found = {miss.requirement for miss in sighting.select("fail")}
    assert found
    assert found <= set(fault.breaks)
    assert not sighting.select("error")
