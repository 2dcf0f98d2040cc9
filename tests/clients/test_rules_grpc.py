"""Calls over gRPC: honest ones miss nothing, each fault is one miss of the right requirement."""

from __future__ import annotations

import pytest

from conformance.clients.rules.judging import CALL_RULES, judge_request
from conformance.clients.rules.rule import RuleResults
from conformance.spec.ledger import Party, load_for_party
from conformance.wire.client_request import ClientRequest
from tests.clients.made_calls import BOOL, HONEST_CALLS, METHOD, WRONG_CALLS, call, raw
from tests.clients.made_requests import list_ids, rows


@pytest.mark.parametrize("received", rows(HONEST_CALLS))
def test_honest_calls_miss_nothing(received: ClientRequest) -> None:
    found = judge_request(received)
    assert found.misses == ()
    assert "CLIENT-SENDS-POST/grpc" in found.met


@pytest.mark.parametrize(("received", "expected"), rows(WRONG_CALLS))
def test_a_fault_is_one_miss(received: ClientRequest, expected: list[str]) -> None:
    found = judge_request(received)
    assert [name.removesuffix("/grpc") for name in list_ids(found.misses)] == expected
    assert not set(found.met) & {miss.requirement for miss in found.misses}
    for miss in found.misses:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


def test_every_rule_is_of_the_ledger_and_has_a_row() -> None:
    known = {requirement.id for requirement in load_for_party(Party.CLIENT)}
    rules = {rule.requirement for rule in CALL_RULES}
    assert rules <= known
    assert {miss.requirement for _, received, _ in WRONG_CALLS for miss in judge_request(received).misses} == rules
    assert {name for _, received in HONEST_CALLS for name in judge_request(received).met} == rules


def test_what_is_no_call_for_an_inference_is_not_judged() -> None:
    assert judge_request(ClientRequest("GRPC", "/inference.GRPCInferenceService/ServerLive")) == RuleResults()
    assert judge_request(ClientRequest("GRPC", METHOD, (), b"\xff\xff")) == RuleResults()


def test_the_offset_is_that_of_the_message() -> None:
    received = call(BOOL + raw(r"\001\002\001"))
    (miss,) = judge_request(received).misses
    assert miss.offset is not None
    assert received.body[miss.offset] == 2
