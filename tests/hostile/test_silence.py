"""A server that goes silent costs a few waits, not one for each row."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from conformance.transport.exchange import FailureKind
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLost
from conformance.wire.request import Message
from tests.support.scripted import Script, read_request, scripted

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
        except TargetLost:
            return number + 1
    return times


def test_three_requests_and_a_plain_one_without_an_answer_are_enough() -> None:
    with scripted(silent_to(b"/v2")) as url:
        target = Target(Settings(url, timeout=0.3))
        assert asked(target, 10) == 3
        assert target.lost == f"{url} is silent: 3 requests in a row had no answer in 0.3 s, nor had GET /v2"
        assert not target.has_died
        with pytest.raises(TargetLost):
            target.send(INFER)
        target.close()


def test_a_server_that_answers_plain_requests_alone_is_lost_a_little_later() -> None:
    with scripted(silent_to(b"/infer")) as url:
        target = Target(Settings(url, timeout=0.2))
        assert asked(target, 100) == 20
        assert str(target.lost).endswith("20 requests in a row had no answer in 0.2 s, though GET /v2 had one")
        target.close()


def test_an_answer_between_gives_new_patience() -> None:
    with scripted(silent_to(b"/infer")) as url:
        target = Target(Settings(url, timeout=0.2))
        for _ in range(12):
            assert asked(target, 2) == 2
            assert target.get("/v2").status == 200
        assert target.lost is None
        target.close()
