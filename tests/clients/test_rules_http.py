"""Requests over HTTP, made by hand: honest ones miss nothing, each fault is one miss of the right requirement."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from conformance.clients.rules import judged
from conformance.clients.rules.http_rules import RULES
from conformance.terms.ledger import Party, of_party
from conformance.wire import codings
from conformance.wire.received import Received
from tests.clients.honest_requests import HONEST
from tests.clients.made_requests import (
    BINARY,
    I2,
    I2_BYTES,
    LENGTH,
    OCTETS,
    PLAIN,
    TEXT,
    TEXT_BYTES,
    TINY,
    TINY_BYTES,
    framed,
    ids,
    inputs,
    one,
    plain,
    raw,
    rows,
    sent,
)
from tests.clients.wrong_requests import WRONG


@pytest.mark.parametrize("received", rows(HONEST))
def test_honest_requests_miss_nothing(received: Received) -> None:
    assert judged(received).misses == ()


@pytest.mark.parametrize(("received", "expected"), rows(WRONG))
def test_a_fault_is_one_miss(received: Received, expected: list[str]) -> None:
    found = judged(received)
    assert ids(found.misses) == expected
    assert not set(found.met) & {miss.requirement for miss in found.misses}
    for miss in found.misses:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


def test_every_rule_is_of_the_ledger_and_has_a_row() -> None:
    known = {requirement.id for requirement in of_party(Party.CLIENT)}
    assert {rule.requirement for rule in RULES} <= known
    missed = {f"CLIENT-SENDS-{name}" for _, _, names in WRONG for name in names}
    assert missed == {rule.requirement for rule in RULES}


def test_every_rule_is_met_by_an_honest_request() -> None:
    met = {name for _, received in HONEST for name in judged(received).met}
    assert met == {rule.requirement for rule in RULES} - {"CLIENT-SENDS-FP16"}
    half = framed(inputs(one("A", "FP16", "[2]", 4)), bytes(4))
    assert "CLIENT-SENDS-FP16" in judged(half).met


# name, request, what it says nothing about
SILENT: list[tuple[str, Received, set[str]]] = [
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
def test_of_some_requirements_a_request_says_nothing(received: Received, silent: set[str]) -> None:
    found = judged(received)
    said = {*found.met, *(miss.requirement for miss in found.misses)}
    assert not said & {f"CLIENT-SENDS-{one_of}" for one_of in silent}


@pytest.mark.parametrize(
    "received",
    [
        Received("GET", "/v2/models/m"),
        Received("OPTIONS", "/v2/models/m/infer"),
        Received("HEAD", "/v2/models/m/infer"),
    ],
)
def test_what_asks_for_no_inference_is_not_judged(received: Received) -> None:
    assert judged(received).met == ()
    assert judged(received).misses == ()


def test_the_offset_is_that_of_the_body_before_its_coding() -> None:
    text = inputs(TEXT)
    body = gzip.compress(text.encode() + TEXT_BYTES[:-1] + b"\x09")
    received = sent(body, (LENGTH, str(len(text))), ("Content-Encoding", "gzip"), kind=OCTETS)
    (miss,) = judged(received).misses
    assert miss.requirement == "CLIENT-SENDS-BYTES"
    assert miss.offset == len(text) + 7


def test_a_body_that_grows_without_end_is_not_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "LIMIT", 100_000)
    bomb = gzip.compress(bytes(100_001))
    assert judged(sent(bomb, ("Content-Encoding", "gzip"))).misses == ()
    members = gzip.compress(b" ") * (codings.MEMBERS + 1)
    assert judged(sent(members, ("Content-Encoding", "gzip"))).misses == ()
