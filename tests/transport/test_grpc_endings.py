"""How a gRPC call ends: a status of the server is an answer, and nothing is made up where there is none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import pytest

from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.grpc_client import GrpcClient
from conformance.transport.settings import make_settings
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from tests.support.http2_frames import ANSWER_HEADERS, RESET, Peer, data, frame, headers
from tests.support.scripted_server import Script, serve_scripts

ASK = Message("/inference.GRPCInferenceService/ModelInfer", body=b"abc", method=GRPC_METHOD)
ONE = b"\0\0\0\0\1a"
# Called with the connection and the number of the stream on which a whole request has come.
End = Callable[[Peer, int], None]


def end_calls(end: End) -> Script:
    """Return a script that ends every call of a connection alike."""

    def script(connection: socket.socket) -> None:
        peer = Peer(connection)
        while True:
            end(peer, peer.call())

    return script


def make_reset(code: int, *begun: bytes) -> End:
    """Return an end without a status: a RST_STREAM, at once or behind the headers and data of an answer."""

    def end(peer: Peer, stream: int) -> None:
        if begun:
            peer.send(headers(stream, *ANSWER_HEADERS), data(stream, b"".join(begun)))
        peer.send(frame(RESET, code.to_bytes(4, "big"), stream=stream))

    return end


def make_answer(*trailers: tuple[str, str], octets: bytes = b"", status: str = "200") -> End:
    """Return an answer of headers, data, and trailers; without trailers the data end it."""

    def end(peer: Peer, stream: int) -> None:
        peer.send(headers(stream, (":status", status), *ANSWER_HEADERS[1:]), data(stream, octets, end=not trailers))
        if trailers:
            peer.send(headers(stream, *trailers, end=True))

    return end


def make_trailers_only(*more: tuple[str, str], status: str = "200") -> End:
    """Return an answer of one block of headers."""
    return lambda peer, stream: peer.send(headers(stream, (":status", status), *ANSWER_HEADERS[1:], *more, end=True))


def asked(*ends: End, calls: int = 1) -> list[Reply]:
    """Make calls, each on a kept connection where there is one; the n-th connection ends its calls as told."""
    with serve_scripts(*map(end_calls, ends)) as url:
        client = GrpcClient(make_settings("", grpc=url.removeprefix("http://"), timeout=2.0))
        replies = [Reply(client.send(ASK)) for _ in range(calls)]
        client.close()
    return replies


@pytest.mark.parametrize(
    ("end", "kind", "told"),
    [
        (make_reset(2), "statusless", "the stream was reset (INTERNAL_ERROR) without a status"),
        (make_reset(8), "statusless", "the stream was reset (CANCEL) without a status"),
        (make_reset(2, b""), "statusless", "the stream was reset (INTERNAL_ERROR) without a status"),
        (make_reset(0, ONE), "statusless", "the stream was reset (NO_ERROR) without a status"),
        (make_answer(octets=ONE), "statusless", "the stream ended without a status"),
        (make_answer(("why", "because"), octets=ONE), "statusless", "the stream ended without a status"),
        (make_trailers_only(), "statusless", "the stream ended without a status"),
        (make_trailers_only(("grpc-status", "0")), "malformed", "the status OK with no message"),
        (make_answer(("grpc-status", "0"), octets=ONE[:4]), "malformed", "the status OK with a message cut short"),
        (make_answer(("grpc-status", "0"), octets=ONE[:5]), "malformed", "the status OK with a message cut short"),
        (
            make_answer(("grpc-status", "0"), octets=b"\1" + ONE[1:]),
            "malformed",
            "the status OK with a compressed message",
        ),
        (
            make_answer(("grpc-status", "0"), octets=ONE + ONE),
            "malformed",
            "the status OK with 6 bytes after the message",
        ),
    ],
)
def test_answer_without_valid_status_or_message_is_failure(end: End, kind: str, told: str) -> None:
    (reply,) = asked(end)
    assert reply.status is None
    assert reply.has_failed(FailureKind(kind))
    assert reply.outcome().startswith(told)
    assert not reply.is_refusal
    assert not reply.succeeded


@pytest.mark.parametrize(
    ("end", "status", "told"),
    [
        (make_trailers_only(("grpc-status", "13"), ("grpc-message", "a%20b %C3%A9")), 500, "INTERNAL: a b é"),
        (make_trailers_only(("grpc-status", "1")), 499, "CANCELLED"),
        (make_answer(("grpc-status", "2")), 500, "UNKNOWN"),
        (make_answer(("grpc-status", "3"), octets=ONE), 400, "INVALID_ARGUMENT"),
        (make_trailers_only(("grpc-status", "99")), 500, "UNKNOWN"),
        (make_trailers_only(("grpc-status", "x")), 500, "UNKNOWN"),
        (make_trailers_only(("grpc-status", "5"), status="404"), 404, "NOT_FOUND"),
        (make_answer(octets=b"<html>", status="413"), 413, "UNKNOWN: HTTP status 413"),
        (make_trailers_only(status="502"), 502, "UNAVAILABLE: HTTP status 502"),
    ],
)
def test_grpc_status_is_refusal(end: End, status: int, told: str) -> None:
    (reply,) = asked(end)
    assert (reply.status, reply.outcome(), reply.is_refusal) == (status, told, True)


def test_repeated_trailers_end_the_call() -> None:
    """A server of gRPC's C++ library does so where a message is none; HTTP/2 forbids it."""
    ended = bytes.fromhex("000001 01 05 00000001 88") + bytes.fromhex("000004 03 00 00000001 00000000")

    def again(connection: socket.socket) -> None:
        peer = Peer(connection)
        make_trailers_only(("grpc-status", "13"))(peer, peer.call())
        peer.send(ended * 3)
        peer.wait()

    with serve_scripts(again) as url:
        client = GrpcClient(make_settings("", grpc=url.removeprefix("http://"), timeout=2.0))
        outcomes_of_two = [Reply(client.send(ASK)).outcome() for _ in range(2)]
        client.close()
    assert outcomes_of_two == ["INTERNAL", "INTERNAL"]


@pytest.mark.parametrize("message", [b"", b"a"])
def test_message_with_status_ok_succeeds(message: bytes) -> None:
    (reply,) = asked(make_answer(("grpc-status", "0"), octets=b"\0\0\0\0" + bytes([len(message)]) + message))
    assert (reply.succeeded, reply.body) == (True, message)


def closing(_peer: Peer, _stream: int) -> None:
    raise OSError


def outcomes(replies: Sequence[Reply]) -> list[str]:
    return [reply.outcome() for reply in replies]


NOT_FOUND = make_trailers_only(("grpc-status", "5"))


@pytest.mark.parametrize("then", [closing, make_reset(7)], ids=["closed", "refused"])
def test_second_call_on_a_kept_connection_is_repeated_on_a_new_one(then: End) -> None:
    ends = iter((NOT_FOUND, then))

    def end(peer: Peer, stream: int) -> None:
        next(ends)(peer, stream)

    assert outcomes(asked(end, NOT_FOUND, calls=2)) == ["NOT_FOUND", "NOT_FOUND"]


def test_reset_call_is_not_repeated() -> None:
    told = "the stream was reset (INTERNAL_ERROR) without a status"
    assert outcomes(asked(make_reset(2), NOT_FOUND, calls=2)) == [told, "NOT_FOUND"]


def test_broken_connection_is_failure() -> None:
    (reply,) = asked(closing)
    assert reply.outcome() == "connection broken (closed by the server)"


def test_missing_status_is_unmet_grpc_status() -> None:
    (reply,) = asked(make_reset(2))
    with pytest.raises(UnmetError) as found:
        expect(reply).refused("a wrong size")
    assert found.value.requirement == "GRPC-STATUS"


@pytest.mark.parametrize(("error", "code"), [(7, "UNAVAILABLE"), (11, "RESOURCE_EXHAUSTED")])
def test_reset_for_overload_is_refusal_with_status(error: int, code: str) -> None:
    (reply,) = asked(make_reset(error), make_reset(error), make_reset(error))
    assert (reply.is_refusal, reply.exchange.code) == (True, code)


def test_concurrent_calls_get_their_own_answers() -> None:
    def echo(peer: Peer, stream: int) -> None:
        make_answer(("grpc-status", "0"), octets=b"\0\0\0\0\1" + bytes([stream]))(peer, stream)

    with serve_scripts(end_calls(echo)) as url:
        client = GrpcClient(make_settings("", grpc=url.removeprefix("http://"), timeout=2.0))
        exchanges = client.send_together([ASK] * 5)
        client.close()
    assert [exchange.body for exchange in exchanges] == [bytes([number]) for number in (1, 3, 5, 7, 9)]
