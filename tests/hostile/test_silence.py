"""A server that goes silent costs a few waits, not one for each row."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import replace

import pytest

from conformance.transport.exchange import FailureKind
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message
from tests.support.scripted_server import Script, read_request, serve_scripts

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
INFER = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b"{}")


def silent_to(*words: bytes) -> Script:
    """Return a script that never answers a request with one of the words in its first line."""

    def script(connection: socket.socket) -> None:
        while request := read_request(connection):
            if any(word in request.partition(b"\r\n")[0] for word in words):
                with suppress(OSError):
                    connection.recv(1)  # until the other side has gone
                return
            connection.sendall(OK)

    return script


def asked(target: Target, times: int) -> int:
    """Ask for inferences until the target is lost; return how many were asked for."""
    for number in range(times):
        try:
            assert target.send(INFER).has_failed(FailureKind.TIMEOUT)
        except TargetLostError:
            return number + 1
    return times


def test_three_requests_and_a_plain_one_without_an_answer_are_enough() -> None:
    with serve_scripts(silent_to(b"/v2")) as url:
        target = Target(Settings(url, timeout=1.0))
        assert asked(target, 10) == 3
        waits = "3 requests, with no answered inference between them, had no complete answer in 1 s"
        assert target.lost == f"{url} is silent: {waits}, nor had GET /v2"
        assert not target.has_died
        with pytest.raises(TargetLostError):
            target.send(INFER)
        target.close()


def test_a_server_that_answers_plain_requests_alone_is_lost_a_little_later() -> None:
    with serve_scripts(silent_to(b"/infer")) as url:
        target = Target(Settings(url, timeout=1.0))
        assert asked(target, 100) == 3
        assert str(target.lost).endswith(
            "3 requests, with no answered inference between them, had no complete answer in 1 s, though GET /v2 had one"
        )
        target.close()


def test_answered_inference_resets_silence() -> None:
    with serve_scripts(silent_to(b"/m/infer")) as url:
        target = Target(Settings(url, timeout=1.0))
        for _ in range(4):
            assert asked(target, 2) == 2
            assert target.send(replace(INFER, path="/v2/models/good/infer")).status == 200
        assert target.lost is None
        target.close()


def test_requests_that_are_never_answered_end_nothing_while_an_earlier_inference_is() -> None:
    """A server that hangs at one kind of request is judged to the end: the others are none of that."""
    with serve_scripts(silent_to(b"/m/infer")) as url:
        target = Target(Settings(url, timeout=1.0))
        assert target.send(replace(INFER, path="/v2/models/good/infer")).status == 200
        assert asked(target, 7) == 7
        assert target.lost is None
        target.close()


def test_answered_metadata_does_not_reset_silence() -> None:
    with serve_scripts(silent_to(b"/infer")) as url:
        target = Target(Settings(url, timeout=1.0))
        for _ in range(2):
            assert asked(target, 1) == 1
            assert target.get("/v2").status == 200
        with pytest.raises(TargetLostError, match="3 requests, with no answered inference between them"):
            target.send(INFER)
        target.close()
