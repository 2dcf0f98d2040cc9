"""Calls over gRPC: honest ones miss nothing, each fault is one miss of the right requirement."""

from __future__ import annotations

import pytest

from conformance.clients.rules import Judged, judged
from conformance.clients.rules.call_rules import CALL_RULES
from conformance.terms.ledger import Party, of_party
from conformance.wire.received import Received
from tests.clients.made_calls import BOOL, HONEST_CALLS, METHOD, WRONG_CALLS, call, raw
from tests.clients.made_requests import ids, rows


@pytest.mark.parametrize("received", rows(HONEST_CALLS))
def test_honest_calls_miss_nothing(received: Received) -> None:
    found = judged(received)
    assert found.misses == ()
    assert "CLIENT-SENDS-POST/grpc" in found.met


@pytest.mark.parametrize(("received", "expected"), rows(WRONG_CALLS))
def test_a_fault_is_one_miss(received: Received, expected: list[str]) -> None:
    found = judged(received)
    assert [name.removesuffix("/grpc") for name in ids(found.misses)] == expected
    assert not set(found.met) & {miss.requirement for miss in found.misses}
    for miss in found.misses:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


def test_every_rule_is_of_the_ledger_and_has_a_row() -> None:
    known = {requirement.id for requirement in of_party(Party.CLIENT)}
    rules = {rule.requirement for rule in CALL_RULES}
    assert rules <= known
    assert {miss.requirement for _, received, _ in WRONG_CALLS for miss in judged(received).misses} == rules
    assert {name for _, received in HONEST_CALLS for name in judged(received).met} == rules


def test_what_is_no_call_for_an_inference_is_not_judged() -> None:
    assert judged(Received("GRPC", "/inference.GRPCInferenceService/ServerLive")) == Judged()
    assert judged(Received("GRPC", METHOD, (), b"\xff\xff")) == Judged()


def test_the_offset_is_that_of_the_message() -> None:
    received = call(BOOL + raw(r"\001\002\001"))
    (miss,) = judged(received).misses
    assert miss.offset is not None
    assert received.body[miss.offset] == 2
