"""The walk for clients: few rows in which every two values meet, and failures named by the values that matter."""

from __future__ import annotations

from itertools import combinations
from zlib import crc32

import pytest

from conformance.checks.client.walk import list_possible_steps, reads_every_combination
from conformance.checks.client.walk_attribution import find_requirement
from conformance.checks.client.walk_axes import (
    GRPC_AXES,
    GRPC_SHRINKING,
    HTTP_AXES,
    HTTP_SHRINKING,
    AxisValues,
    build_steps,
    is_invalid,
)
from conformance.checks.support.step_shrinking import MinimalFailure
from conformance.expect.unmet import UnmetError
from conformance.spec.check import Case
from conformance.spec.extensions import GRPC
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor
from tests.clients import alterations
from tests.clients.sightings import SharedPeer, collect_rows
from tests.support.tables import on_each, own_name

COMBINED = {name: one for name, one in alterations.load("faults").items() if one.subject == "combined"}
CHECKS = (reads_every_combination.id, *[one.id for one in reads_every_combination.also])
BOTH = pytest.mark.parametrize(("axes", "most"), [(HTTP_AXES, 60), (GRPC_AXES, 40)], ids=["http", "grpc"])


def list_walk_rows(transports: tuple[str, ...]) -> list[Case]:
    return [case for case in collect_rows(transports) if case.check.id in CHECKS]


def list_some_walk_rows(variation: alterations.Alteration) -> list[Case]:
    """Return one row in 12, other ones for each variation; `tox -e matrix-clients` runs them all."""
    return list_walk_rows(variation.transports)[crc32(variation.name.encode()) % 12 :: 12]


@BOTH
def test_every_two_values_that_can_meet_do_meet_in_few_rows(axes: AxisValues, most: int) -> None:
    steps = build_steps(axes)
    met = {pair for step in steps for pair in combinations(step.items(), 2)}
    possible = {
        ((a, v), (b, w))
        for (a, vs), (b, ws) in combinations(axes.items(), 2)
        for v in vs
        for w in ws
        if not is_invalid({a: v, b: w})
    }
    assert len(steps) < most
    assert met <= possible
    assert len(possible - met) <= len(possible) // 100  # no third value goes with these


@BOTH
def test_the_steps_are_the_same_each_time(axes: AxisValues, most: int) -> None:
    assert build_steps(axes) == build_steps(dict(axes))
    assert not any(map(is_invalid, build_steps(axes))), most


@pytest.mark.parametrize("axes", [HTTP_SHRINKING, GRPC_SHRINKING], ids=["http", "grpc"])
def test_the_neutral_step_is_valid(axes: object) -> None:
    assert not is_invalid(getattr(axes, "neutral"))  # noqa: B009


def test_what_a_client_cannot_do_is_left_out_first_alone_and_then_together() -> None:
    step = {**HTTP_SHRINKING.neutral, "coding": "gzip", "accepts": "gzip", "id": "long"}
    changed = [{axis for axis in step if one[axis] != step[axis]} for one in list_possible_steps(step, HTTP_SHRINKING)]
    assert changed == [set(), {"coding"}, {"accepts"}, {"id"}, {"coding", "accepts"}, {"coding", "accepts", "id"}]


@pytest.mark.parametrize("fault", COMBINED.values(), ids=lambda fault: fault.name)
def test_a_fault_of_two_values_is_seen_and_the_first_name_is_right(
    fault: alterations.Alteration, stage: SharedPeer
) -> None:
    sighting = stage.see(fault, list_walk_rows(fault.transports))
    assert [miss.requirement for miss in sighting.misses][:1] == [fault.misses[0]]


SHOWN = {
    "deflate-in-chunks-unread": {"accepts deflate", "framing"},
    "chunks-unread-after-an-error": {"before error", "framing"},
    "mixed-forms-cut-in-order-of-asking": {"want mixed", "order"},
    "escapes-in-classes-unread": {"classes three", "escapes"},
    "version-of-raw-requests-lost": {"version 7", "send raw"},
    "version-of-typed-calls-lost": {"version 7", "send json"},
    "last-size-of-an-unpacked-shape": {"integers unpacked", "shape 2x3"},
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_message_names_the_values_that_matter(name: str, stage: SharedPeer) -> None:
    seen = stage.see(COMBINED[name], list_walk_rows(COMBINED[name].transports), until=bool).misses[0].message
    conditions = seen.partition("where the exchange has ")[2].partition(", got ")[0].split(", ")
    assert {word for word in SHOWN[name] if any(one.startswith(word) for one in conditions)} == SHOWN[name]
    assert len(conditions) <= 4  # of 25


@on_each(alterations.load("variations").values(), own_name)
def test_the_walk_accuses_no_honest_client(variation: alterations.Alteration, *, stage: SharedPeer) -> None:
    sighting = stage.see(variation, list_some_walk_rows(variation))
    assert [miss for miss in sighting.misses if miss.outcome != "not_applicable"] == []


def test_over_grpc_the_walk_has_a_check_of_its_own() -> None:
    assert {check.id: check.over for check, _ in list_walk_rows(("http", "grpc"))}[CHECKS[-1]] == (GRPC,)


SHORT = Reply(Exchange(0, Message("", (), b"", "POST"), "", None, (), b"", None))
VALUES = Tensor.from_values("OUT0", "INT32", [1, 2, 3])


@pytest.mark.parametrize(
    ("special", "unmet", "is_lasting", "expected"),
    [
        ({"before": "closed"}, UnmetError("a request", "none", requirement="CLIENT-SENDS-VALUES"), True, "GOES-ON"),
        ({"before": "error"}, UnmetError("outputs", "an error"), True, "GOES-ON"),
        ({"before": "larger"}, UnmetError("outputs", "others", tensor=VALUES), True, "READS-OWN"),
        ({"id": "long"}, UnmetError("a request", "none", requirement="CLIENT-SENDS-VALUES"), True, "SENDS-VALUES"),
        ({"before": "closed"}, UnmetError("5", "6", SHORT, requirement="CLIENT-SENDS-SIZE"), True, "SENDS-SIZE"),
        ({"beside": "one"}, UnmetError("JSON", "none", SHORT, requirement="CLIENT-SENDS-JSON"), True, "SENDS-VALUES"),
        ({"beside": "one"}, UnmetError("A, B", "B, A", SHORT, requirement="CLIENT-SENDS-ORDER"), True, "SENDS-ORDER"),
        ({"framing": "trailers"}, UnmetError("outputs", "an error"), False, "GOES-ON"),
        ({"framing": "trailers"}, UnmetError("outputs", "others", tensor=VALUES), False, "READS-OWN"),
        ({"framing": "trailers", "escapes": "every"}, UnmetError("outputs", "an error"), True, "READS-FRAMING"),
        ({"order": "reversed", "want": "binary"}, UnmetError("outputs", "an error"), True, "READS-ORDER"),
        ({"order": "reversed"}, UnmetError("outputs", "an error"), True, None),
    ],
)
def test_the_values_that_matter_select_the_requirement(
    special: dict[str, str], unmet: UnmetError, is_lasting: bool, expected: str | None
) -> None:
    found = MinimalFailure((), {**HTTP_SHRINKING.neutral, **special}, unmet, is_lasting)
    assert find_requirement(found, special) == (expected and f"CLIENT-{expected}")
