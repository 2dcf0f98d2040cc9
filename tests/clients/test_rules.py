"""Requests made by hand: honest ones miss nothing, each fault is one miss of the right requirement."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from conformance.clients.rules.judging import CALL_RULES, RULES, judge_request
from conformance.clients.rules.rule import RuleResults
from conformance.spec.ledger import Party, load_for_party
from conformance.wire import codings
from conformance.wire.client_request import ClientRequest
from tests.clients.made_calls import BOOL, HONEST_CALLS, METHOD, WRONG_CALLS, call
from tests.clients.made_calls import raw as raw_contents
from tests.clients.made_requests import (
    BINARY,
    HONEST,
    I2,
    I2_BYTES,
    LENGTH,
    OCTETS,
    PLAIN,
    TEXT,
    TEXT_BYTES,
    TINY,
    TINY_BYTES,
    build_client_request,
    framed,
    inputs,
    list_ids,
    make_sized_input,
    plain,
    raw,
    rows,
)
from tests.clients.wrong_requests import WRONG


@pytest.mark.parametrize("received", rows([*HONEST, *HONEST_CALLS]))
def test_honest_requests_miss_nothing(received: ClientRequest) -> None:
    assert judge_request(received).violations == ()


@pytest.mark.parametrize(("received", "expected"), rows([*WRONG, *WRONG_CALLS]))
def test_a_fault_is_one_miss(received: ClientRequest, expected: list[str]) -> None:
    found = judge_request(received)
    assert [name.removesuffix("/grpc") for name in list_ids(found.violations)] == expected
    assert not set(found.met) & {miss.requirement for miss in found.violations}
    for miss in found.violations:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


def test_every_rule_is_of_the_ledger_and_has_a_row() -> None:
    known = {requirement.id for requirement in load_for_party(Party.CLIENT)}
    assert {rule.requirement for rule in RULES} <= known
    missed = {f"CLIENT-SENDS-{name}" for _, _, names in WRONG for name in names}
    assert missed == {rule.requirement for rule in RULES}


def test_every_rule_is_met_by_an_honest_request() -> None:
    met = {name for _, received in HONEST for name in judge_request(received).met}
    assert met == {rule.requirement for rule in RULES} - {"CLIENT-SENDS-FP16"}
    half = framed(inputs(make_sized_input("A", "FP16", "[2]", 4)), bytes(4))
    assert "CLIENT-SENDS-FP16" in judge_request(half).met


# name, request, what it says nothing about
SILENT: list[tuple[str, ClientRequest, set[str]]] = [
    (
        "json",
        plain(inputs(PLAIN)),
        {"HEADER", "HEADER-LENGTH", "SIZE", "SIZES-FILL", "ORDER", "BYTES", "RAW", "CODING"},
    ),
    ("binary", BINARY, {"DATA", "ORDER", "BYTES", "BOOL", "FP16", "CLASSIFICATION", "RAW"}),
    ("numbers-alone-tell-no-order", framed(inputs(I2, TINY), I2_BYTES + TINY_BYTES), {"ORDER"}),
    ("raw", raw(I2_BYTES), {"JSON", "MEMBERS", "SIZE", "SIZES-FILL", "HEADER-LENGTH", "HEADER"}),
    ("unreadable", plain("{"), {"MEMBERS", "DATA", "CONTENT-TYPE", "HEADER", "SIZES-FILL"}),
    ("cut-short", replace(BINARY, trouble="cut"), {"JSON", "MEMBERS", "HEADER", "SIZE", "CONTENT-TYPE"}),
]


@pytest.mark.parametrize(("received", "silent"), rows(SILENT))
def test_request_without_feature_neither_meets_nor_violates_rule(received: ClientRequest, silent: set[str]) -> None:
    found = judge_request(received)
    said = {*found.met, *(miss.requirement for miss in found.violations)}
    assert not said & {f"CLIENT-SENDS-{one_of}" for one_of in silent}


@pytest.mark.parametrize(
    "received",
    [
        ClientRequest("GET", "/v2/models/m"),
        ClientRequest("OPTIONS", "/v2/models/m/infer"),
        ClientRequest("HEAD", "/v2/models/m/infer"),
    ],
)
def test_other_http_request_is_not_judged(received: ClientRequest) -> None:
    assert judge_request(received).met == ()
    assert judge_request(received).violations == ()


def test_the_offset_is_that_of_the_body_before_its_coding() -> None:
    text = inputs(TEXT)
    body = gzip.compress(text.encode() + TEXT_BYTES[:-1] + b"\x09")
    received = build_client_request(body, (LENGTH, str(len(text))), ("Content-Encoding", "gzip"), kind=OCTETS)
    (miss,) = judge_request(received).violations
    assert miss.requirement == "CLIENT-SENDS-BYTES"
    assert miss.offset == len(text) + 7


def test_a_body_that_grows_without_end_is_not_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "MAX_DECODED_BYTES", 100_000)
    bomb = gzip.compress(bytes(100_001))
    assert judge_request(build_client_request(bomb, ("Content-Encoding", "gzip"))).violations == ()
    members = gzip.compress(b" ") * (codings.MAX_GZIP_MEMBERS + 1)
    assert judge_request(build_client_request(members, ("Content-Encoding", "gzip"))).violations == ()


# --- over gRPC --------------------------------------------------------------------------------------------------------


def test_every_rule_for_calls_is_of_the_ledger_and_has_a_row() -> None:
    known = {requirement.id for requirement in load_for_party(Party.CLIENT)}
    rules = {rule.requirement for rule in CALL_RULES}
    assert rules <= known
    assert {miss.requirement for _, received, _ in WRONG_CALLS for miss in judge_request(received).violations} == rules
    assert {name for _, received in HONEST_CALLS for name in judge_request(received).met} == rules


def test_other_grpc_call_is_not_judged() -> None:
    assert judge_request(ClientRequest("GRPC", "/inference.GRPCInferenceService/ServerLive")) == RuleResults()
    assert judge_request(ClientRequest("GRPC", METHOD, (), b"\xff\xff")) == RuleResults()


def test_the_offset_is_that_of_the_message() -> None:
    received = call(BOOL + raw_contents(r"\001\002\001"))
    (miss,) = judge_request(received).violations
    assert miss.offset is not None
    assert received.body[miss.offset] == 2
