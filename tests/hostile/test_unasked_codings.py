"""A content coding that nobody asked for is named: it is not that nothing is offered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest

from conformance.judging.run_start import discover_subjects
from conformance.judging.session import Session
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import Message
from tests.hostile.misbehaviours.rows import make_answer
from tests.hostile.proxy import Wire, run_hostile_proxy

TENSOR = {"name": "OUTPUT", "datatype": "INT32", "shape": [1], "data": [1]}
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip, gzip": lambda body: gzip.compress(gzip.compress(body)),
    "br": lambda body: b"\x0b" + body,
    "zstd": lambda body: b"\x28\xb5\x2f\xfd" + body,
}


def json_only(coding: str, *, is_coded: Callable[[bytes], bool]) -> Callable[[Wire], None]:
    """Return a server that knows the JSON of one model, and codes some of its answers."""

    def does(wire: Wire) -> None:
        line = wire.request.partition(b"\r\n")[0]
        is_plain = b"inference-header" not in wire.request.lower()
        known = b"GET /v2 " in line or (b"/identity_int32" in line and is_plain)
        document = {"name": "x", "extensions": [], "outputs": [TENSOR]} if known else {"error": "unknown"}
        body, lines = json.dumps(document).encode(), ["Connection: close"]
        if is_coded(line):
            body, lines = CODINGS[coding](body), [*lines, f"Content-Encoding: {coding}"]
        wire.send(make_answer(200 if known else 404, *lines, body=body))

    return does


def nothing_to_judge(does: Callable[[Wire], None]) -> str:
    with run_hostile_proxy(None, does) as peer, Session(Target(Settings(peer.url, timeout=2.0))) as session:
        _, nothing = discover_subjects(session)
    assert nothing is not None
    return nothing.text().replace(peer.url, "URL")


@pytest.mark.parametrize("coding", CODINGS)
def test_unrequested_coding_of_every_answer_is_named(coding: str) -> None:
    def refusing(wire: Wire) -> None:
        wire.send(make_answer(404, "Connection: close", f"Content-Encoding: {coding}", body=CODINGS[coding](b"{}")))

    assert nothing_to_judge(refusing).startswith(f"URL answers in the content coding {coding}, although requests have")


def test_unrequested_coding_of_metadata_is_named() -> None:
    said = nothing_to_judge(json_only("br", is_coded=lambda line: b"GET /v2 " in line))
    assert said.startswith("URL answers in the content coding br, although requests have")


def test_uncoded_answers_name_no_coding() -> None:
    said = nothing_to_judge(json_only("br", is_coded=lambda _: False))
    assert "offers none of the extensions" in said
    assert "coding" not in said


@pytest.mark.parametrize(
    ("asked", "named", "found"),
    [((), "gzip", "gzip"), ((), "identity", ""), ((), None, ""), ((("accept-encoding", "gzip"),), "gzip", "")],
)
def test_only_what_was_not_asked_for_counts(asked: tuple[tuple[str, str], ...], named: str | None, found: str) -> None:
    headers = (("content-encoding", named),) if named else ()
    assert Reply(Exchange(0, Message("/v2", asked), "http://h", 200, headers)).unrequested_coding == found
