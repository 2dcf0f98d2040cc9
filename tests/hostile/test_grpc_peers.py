"""A gRPC server that means harm: each call of the judge ends within its limit, in little memory, and says what it met.

The limit is the patience where nothing comes of the call, and a multiple of it where something does.
"""

from __future__ import annotations

import time
import tracemalloc

import pytest

from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.transport import grpc_client
from conformance.transport import settings as settings_of_targets
from conformance.transport.exchange import FailureKind
from conformance.transport.settings import make_settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from tests.support.hostile_calls import (
    CALL,
    HTML,
    MAX_CALL_S,
    WAIT_BUDGET_S,
    Act,
    answer_with_trailers,
    begin_answer,
    make_call,
    nothing_is_left,
)
from tests.support.http2_frames import (
    ANSWER_HEADERS,
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    OK_TRAILERS,
    PING,
    RESET,
    SETTINGS,
    WINDOW,
    Peer,
    add_prefix,
    block,
    data,
    frame,
    headers,
)
from tests.support.scripted_server import serve_scripts

__all__ = ["nothing_is_left"]  # a fixture that every test has

TIMEOUT, BROKEN, MALFORMED = FailureKind.TIMEOUT, FailureKind.BROKEN, FailureKind.MALFORMED
ENDLESS, STATUSLESS = FailureKind.ENDLESS, FailureKind.STATUSLESS


@pytest.fixture(autouse=True)
def a_deadline_far_behind_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine tell one from the other, however small both are here."""
    monkeypatch.setattr(settings_of_targets, "DEADLINE_TIMEOUTS", 3)


# --- nothing comes, or not enough ------------------------------------------------------------------------------------


def silent_after_accept(peer: Peer) -> None:
    peer.wait()


def silent_after_settings(peer: Peer) -> None:
    peer.greet()
    peer.wait()


def silent_after_the_call(peer: Peer) -> None:
    peer.call()
    peer.wait()


def silent_after_headers(peer: Peer) -> None:
    peer.send(headers(peer.call(), *ANSWER_HEADERS))
    peer.wait()


def silent_within_a_frame(peer: Peer) -> None:
    peer.send(headers(peer.call(), *ANSWER_HEADERS)[:12])
    peer.wait()


def headers_byte_by_byte(peer: Peer) -> None:
    peer.send(frame(HEADERS, stream=peer.call(), flags=END_HEADERS, length=10_000))
    peer.flood(b"\x00", pause=0.02)


def no_streams_at_once(peer: Peer) -> None:
    peer.greet((3, 0))
    peer.wait()


def no_window(peer: Peer) -> None:
    peer.greet((4, 0))
    peer.wait()


def pings(peer: Peer) -> None:
    peer.call()
    peer.flood(frame(PING, bytes(8)) * 100, pause=0.01)


def pings_without_reading(peer: Peer) -> None:
    peer.greet()
    peer.flood(frame(PING, bytes(8)) * 1000)


def settings(peer: Peer) -> None:
    peer.call()
    peer.flood(frame(SETTINGS, bytes.fromhex("0004 00010000")) * 100, pause=0.01)


def frames_of_no_known_kind(peer: Peer) -> None:
    peer.call()
    peer.flood(frame(200, bytes(1000)), pause=0.01)


def empty_data(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS))
    peer.flood(data(stream, b"") * 100, pause=0.01)


NOTHING = [
    *(silent_after_accept, silent_after_settings, silent_after_the_call, silent_after_headers, silent_within_a_frame),
    *(headers_byte_by_byte, no_streams_at_once, no_window, pings, pings_without_reading, settings),
    *(frames_of_no_known_kind, empty_data),
]


@pytest.mark.parametrize("act", NOTHING)
def test_silent_call_ends_after_wait_budget(act: Act) -> None:
    started = time.monotonic()
    reply = make_call(act)
    assert time.monotonic() - started < MAX_CALL_S
    assert (reply.status, reply.outcome()) == (None, f"no answer within {WAIT_BUDGET_S:g} s")
    assert reply.has_failed(TIMEOUT)


# --- no end ----------------------------------------------------------------------------------------------------------


def a_message_byte_by_byte(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS), data(stream, add_prefix(b"", length=1_000_000)))
    peer.flood(data(stream, b"x"), pause=0.02)


def interim_answers(peer: Peer) -> None:
    stream = peer.call()
    peer.flood(headers(stream, (":status", "103")), pause=0.02)


def a_window_of_one_byte(peer: Peer) -> None:
    peer.greet((4, 1))
    stream = peer.call(END_HEADERS)
    peer.flood(frame(WINDOW, b"\0\0\0\1", stream=stream), pause=0.02)


@pytest.mark.parametrize("act", [a_message_byte_by_byte, interim_answers, a_window_of_one_byte])
def test_where_something_comes_again_and_again_the_call_ends_at_the_deadline(act: Act) -> None:
    started = time.monotonic()
    reply = make_call(act, timeout=1.0)
    took = time.monotonic() - started
    assert (reply.status, reply.outcome()) == (None, "answer not complete within 3 s")
    assert reply.has_failed(ENDLESS)
    assert took < MAX_CALL_S


def test_all_attempts_at_a_call_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_of_targets, "DEADLINE_TIMEOUTS", 1.5)
    attempts: list[int] = []

    def not_begun(peer: Peer) -> None:
        attempts.append(peer.call())
        time.sleep(1.0)
        peer.send(frame(RESET, (7).to_bytes(4, "big"), stream=attempts[-1]))
        peer.wait()

    make_call(not_begun, timeout=2.0)
    assert 1 < len(attempts) <= 3  # of five, were it not for the deadline


# --- too much --------------------------------------------------------------------------------------------------------


def four_gigabytes_are_declared(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS), data(stream, add_prefix(b"", length=2**32 - 1)))
    peer.wait()


def data_without_an_end(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS), data(stream, add_prefix(b"a")))
    peer.flood(data(stream, bytes(16384)) * 10)


def messages_without_an_end(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS))
    peer.flood(data(stream, add_prefix(bytes(1000)) * 16) * 10)


def a_bomb(peer: Peer) -> None:
    stream = peer.call()
    message = add_prefix(bytes.fromhex("1f8b0800000000000003") + bytes(1000), compressed=True)
    peer.send(
        headers(stream, *ANSWER_HEADERS, ("grpc-encoding", "gzip")),
        data(stream, message),
        headers(stream, *OK_TRAILERS, end=True),
    )
    peer.wait()


def a_frame_of_16_megabytes(peer: Peer) -> None:
    peer.send(frame(DATA, stream=peer.call(), length=2**24 - 1))
    peer.flood(bytes(65536))


def one_header_of_a_megabyte(peer: Peer) -> None:
    stream, octets = peer.call(), block(*ANSWER_HEADERS, ("x-long", "x" * 1_000_000))
    first, *more, last = [octets[at : at + 16384] for at in range(0, len(octets), 16384)]
    peer.send(frame(HEADERS, first, stream=stream), *(frame(CONTINUATION, one, stream=stream) for one in more))
    peer.send(frame(CONTINUATION, last, stream=stream, flags=END_HEADERS))
    peer.wait()


def continuations(peer: Peer) -> None:
    stream = peer.call()
    peer.send(frame(HEADERS, block(*ANSWER_HEADERS), stream=stream))
    peer.flood(frame(CONTINUATION, block(("x", "y")), stream=stream))


def empty_continuations(peer: Peer) -> None:
    stream = peer.call()
    peer.send(frame(HEADERS, block(*ANSWER_HEADERS), stream=stream))
    peer.flood(frame(CONTINUATION, stream=stream))


def one_header_named_again_and_again(peer: Peer) -> None:
    stream = peer.call()
    octets = block(*ANSWER_HEADERS, ("x-long", "x" * 3000)) + b"\xbe" * 10_000  # the newest entry of the table
    peer.send(frame(HEADERS, octets, stream=stream, flags=END_HEADERS))
    peer.wait()


def trailers_again_and_again(peer: Peer) -> None:
    stream = peer.call()
    peer.send(headers(stream, *ANSWER_HEADERS))
    peer.flood(headers(stream, ("why", "because")))


TOO_MUCH: list[tuple[Act, FailureKind, str]] = [
    (four_gigabytes_are_declared, ENDLESS, "a message of 4294967295 bytes; the suite reads at most 1000000"),
    (data_without_an_end, ENDLESS, "answer longer than 1000000 bytes"),
    (messages_without_an_end, ENDLESS, "answer longer than 1000000 bytes"),
    (a_bomb, MALFORMED, "the status OK with a compressed message, although the request accepts none"),
    (a_frame_of_16_megabytes, MALFORMED, "the server does not speak HTTP/2 (a frame of 16777215 bytes"),
    (one_header_of_a_megabyte, MALFORMED, "the server does not speak HTTP/2 ("),
    (continuations, MALFORMED, "the server does not speak HTTP/2 ("),
    (empty_continuations, MALFORMED, "the server does not speak HTTP/2 ("),
    (one_header_named_again_and_again, MALFORMED, "the server does not speak HTTP/2 ("),
    (trailers_again_and_again, MALFORMED, "the server does not speak HTTP/2 ("),
]


@pytest.mark.parametrize(("act", "kind", "told"), TOO_MUCH, ids=[row[0].__name__ for row in TOO_MUCH])
def test_oversized_answer_ends_call_at_once(
    act: Act, kind: FailureKind, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_client, "MAX_ANSWER_BYTES", 1_000_000)
    reply = make_call(act, timeout=60)
    assert reply.has_failed(kind)
    assert reply.outcome().startswith(told)


@pytest.mark.parametrize("act", [a_frame_of_16_megabytes, continuations, one_header_named_again_and_again])
def test_too_much_takes_little_memory(act: Act) -> None:
    tracemalloc.start()
    make_call(act, timeout=MAX_CALL_S)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000


# --- the run ---------------------------------------------------------------------------------------------------------


def lost(act: Act, *, most: int) -> tuple[int, str]:
    """Make calls of a server until it counts as lost; return how many, and why."""
    with serve_scripts(lambda connection: act(Peer(connection))) as url:
        target = Target(make_settings("", grpc=url.removeprefix("http://"), timeout=0.1))
        for number in range(most):
            try:
                target.send(CALL)
            except TargetLostError as error:
                target.close()
                return number + 1, str(error)
        target.close()
    return most, ""


@pytest.mark.parametrize("act", [silent_after_the_call, pings, headers_byte_by_byte, no_window])
def test_three_calls_of_which_nothing_comes_and_a_plain_one_are_enough(act: Act) -> None:
    count, why = lost(act, most=10)
    assert count == 3
    waits = "3 requests, with no answered inference between them, had no complete answer in 0.1 s"
    assert f"{waits}, nor had GRPC" in why


@pytest.mark.parametrize(
    "act",
    [
        answer_with_trailers(("grpc-status", "0")),
        begin_answer(*HTML),
        a_bomb,
        four_gigabytes_are_declared,
        begin_answer((":status", "204")),
    ],
)
def test_malformed_answer_is_unmet(act: Act) -> None:
    reply = make_call(act, timeout=MAX_CALL_S)
    with pytest.raises(UnmetError):
        expect(reply).answered().output("OUTPUT")
