"""Answers over gRPC that are none, or come with more: each is told as what it is, and harms no other call."""

from __future__ import annotations

import time

import pytest

from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.settings import make_settings
from tests.support.hostile_calls import CALL, HTML, Act, answer_with_trailers, begin_answer, make_call, nothing_is_left
from tests.support.http2_frames import (
    ANSWER_HEADERS,
    GOAWAY,
    OK_TRAILERS,
    PING,
    RESET,
    WINDOW,
    Peer,
    add_prefix,
    answer,
    data,
    frame,
    headers,
)
from tests.support.scripted_server import serve_scripts

__all__ = ["nothing_is_left"]  # a fixture that every test has

TIMEOUT, BROKEN, MALFORMED = FailureKind.TIMEOUT, FailureKind.BROKEN, FailureKind.MALFORMED
ENDLESS, STATUSLESS = FailureKind.ENDLESS, FailureKind.STATUSLESS


# --- something else --------------------------------------------------------------------------------------------------


def closed_within_a_message(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS), data(stream, add_prefix(b"abc", length=100)))


def gone_away(*, last: int = 0, code: int = 0) -> bytes:
    return frame(GOAWAY, last.to_bytes(4, "big") + code.to_bytes(4, "big"))


def gone_away_before_a_call(peer: Peer) -> None:
    peer.greet()
    peer.send(gone_away(code=11))
    peer.wait()


def gone_away_cut_short(peer: Peer) -> None:
    peer.call()
    peer.send(frame(GOAWAY, b"\0\0"))
    peer.wait()


def http1(peer: Peer) -> None:
    peer.connection.recv(10)
    peer.connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    peer.wait()


def tls(peer: Peer) -> None:
    peer.connection.recv(10)
    peer.connection.sendall(bytes.fromhex("15 0301 0002 0246"))  # fatal, protocol version
    peer.wait()


def noise(peer: Peer) -> None:
    peer.connection.sendall(bytes(range(1, 200)))
    peer.wait()


def windows_beyond_all(peer: Peer) -> None:
    peer.call()
    peer.flood(frame(WINDOW, b"\x7f\xff\xff\xff"))


LONG = "1" * 6000
ELSE: dict[str, tuple[Act, FailureKind, str]] = {
    "closed-within-a-message": (closed_within_a_message, BROKEN, "connection broken (closed by the server)"),
    "goaway-before": (gone_away_before_a_call, BROKEN, "connection broken (GOAWAY, error code 11)"),
    "goaway-cut-short": (
        gone_away_cut_short,
        MALFORMED,
        "the server does not speak HTTP/2 (a GOAWAY frame of 2 bytes)",
    ),
    "http-1": (http1, MALFORMED, "the server does not speak HTTP/2 (an HTTP/1 answer)"),
    "tls": (tls, MALFORMED, "the server does not speak HTTP/2 (a TLS record)"),
    "noise": (noise, MALFORMED, "the server does not speak HTTP/2 (a frame of 66051 bytes"),
    "windows": (windows_beyond_all, MALFORMED, "the server does not speak HTTP/2 ("),
    "html": (begin_answer(*HTML, ends=False), STATUSLESS, "an answer of the content type text/html without a status"),
    "html-and-a-status": (begin_answer(*HTML), MALFORMED, "the status OK with the content type text/html"),
    "http-204": (begin_answer((":status", "204"), ends=False), STATUSLESS, "HTTP status 204 without a gRPC status"),
    "http-0": (begin_answer((":status", "000"), ends=False), MALFORMED, "no valid HTTP status: 000"),
    "http-of-many-digits": (
        begin_answer((":status", "4" + LONG), ends=False),
        MALFORMED,
        "no valid HTTP status: 41111",
    ),
    "http-of-no-digits": (begin_answer((":status", "ok"), ends=False), MALFORMED, "no valid HTTP status: ok"),
    "two-statuses": (answer_with_trailers(("grpc-status", "13"), *OK_TRAILERS), MALFORMED, "more than one gRPC status"),
    "no-http-status": (begin_answer(("a", "b"), ends=False), MALFORMED, "no valid HTTP status"),
}


@pytest.mark.parametrize(("act", "kind", "told"), ELSE.values(), ids=ELSE)
def test_invalid_grpc_answer_has_failure_kind(act: Act, kind: FailureKind, told: str) -> None:
    reply = make_call(act)
    assert reply.has_failed(kind)
    assert reply.outcome().startswith(told)
    assert not reply.succeeded
    assert not reply.is_refusal


STATUSES = {
    "of-many-digits": (("grpc-status", LONG),),
    "negative": (("grpc-status", "-1"),),
    "no-number": (("grpc-status", "zero"),),
    "a-digit-of-another-script": (("grpc-status", "\u00b2"),),
    "empty": (("grpc-status", ""),),
    "unknown": (("grpc-status", "99"),),
}


@pytest.mark.parametrize("trailers", STATUSES.values(), ids=STATUSES)
def test_invalid_grpc_status_is_refusal(trailers: tuple[tuple[str, str], ...]) -> None:
    reply = make_call(answer_with_trailers(*trailers))
    assert (reply.succeeded, reply.is_refusal) == (False, True)
    assert reply.exchange.code in ("UNKNOWN", "INTERNAL")


MESSAGES = ("\x1b[2J\x07\r\nPASS", "%1b%5b2J%0d%0aPASS", "%" * 15_000, "%ff%fe%80", "%zz%0", "\xff\xfe", "%e2%80%ae")


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_of_a_status_does_no_harm(message: str) -> None:
    reply = make_call(answer_with_trailers(("grpc-status", "3"), ("grpc-message", message)))
    assert (reply.exchange.code, reply.is_refusal) == ("INVALID_ARGUMENT", True)
    assert len(reply.outcome()) < 300


# --- an answer all the same ------------------------------------------------------------------------------------------


def goes_away_within_a_call(peer: Peer) -> None:
    stream = peer.call()
    peer.send(
        gone_away(last=2**31 - 1), frame(PING, bytes(8)), headers(stream, *ANSWER_HEADERS), gone_away(last=stream)
    )
    time.sleep(0.05)
    peer.send(data(stream, add_prefix(b"a")), headers(stream, *OK_TRAILERS, end=True))
    peer.wait()


def resets_after_the_end(peer: Peer) -> None:
    stream = peer.call()
    peer.send(answer(stream), frame(RESET, bytes(4), stream=stream))
    answers(peer)


def says_more_after_the_end(peer: Peer) -> None:
    stream = peer.call()
    peer.send(answer(stream))
    time.sleep(0.05)
    peer.send(data(stream, add_prefix(b"b"), end=True), headers(stream, ("grpc-status", "13"), end=True))
    peer.wait()


def goes_away_after_the_end(peer: Peer) -> None:
    stream = peer.call()
    peer.send(answer(stream))
    time.sleep(0.05)
    peer.send(gone_away(last=stream))
    peer.wait()


def answers(peer: Peer) -> None:
    while True:
        peer.send(answer(peer.call()))


@pytest.mark.parametrize(
    "act", [goes_away_within_a_call, resets_after_the_end, says_more_after_the_end, goes_away_after_the_end]
)
def test_what_comes_beside_an_answer_harms_neither_it_nor_the_next(act: Act) -> None:
    with serve_scripts(lambda connection: act(Peer(connection)), lambda connection: answers(Peer(connection))) as url:
        client = GrpcClient(make_settings("", grpc=url.removeprefix("http://"), timeout=2.0))
        first = Reply(client.send(CALL))
        time.sleep(0.1)
        second = Reply(client.send(CALL))
        client.close()
    assert [reply.outcome() for reply in (first, second)] == ["OK: 1 bytes", "OK: 1 bytes"]
