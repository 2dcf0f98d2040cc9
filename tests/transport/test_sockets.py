"""Bytes that go out exactly as told: segments, chunks, several requests on one connection."""

from __future__ import annotations

import socket

import pytest

from conformance.transport.settings import Settings
from conformance.transport.sockets import chunk, cut
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLost
from conformance.wire.request import Message
from tests.support.scripted import Script, answers, read_request, scripted

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
POST = Message("/v2/models/m/infer", (("X-Id", "1"),), b"abcdef")


def target(url: str) -> Target:
    return Target(Settings(url, timeout=1.0))


def echo(seen: list[bytes]) -> Script:
    def script(connection: socket.socket) -> None:
        while data := read_request(connection):
            seen.append(data)
            connection.sendall(OK + b"%02d" % len(seen))

    return script


def test_pieces() -> None:
    assert cut(b"abcdef", [4, 1]) == [b"a", b"bcd", b"ef"]
    assert cut(b"abc", [0, 3]) == [b"abc"]
    assert chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"


def test_segments_arrive_as_one_body() -> None:
    seen: list[bytes] = []
    with scripted(echo(seen)) as url:
        reply = target(url).send_in_pieces(POST, [1, 4])
    assert (reply.status, reply.body) == (200, b"01")
    assert seen[0].startswith(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: 127.0.0.1:")
    assert seen[0].endswith(b"Content-Length: 6\r\nX-Id: 1\r\n\r\nabcdef")
    assert reply.exchange.note == "body in 3 TCP segments, cut at [1, 4]"


def test_chunks() -> None:
    seen: list[bytes] = []
    with scripted(echo(seen)) as url:
        target(url).send_in_pieces(POST, [2], chunked=True)
    assert seen[0].endswith(b"Transfer-Encoding: chunked\r\nX-Id: 1\r\n\r\n2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n")


@pytest.mark.parametrize("pipelined", [False, True])
def test_several_requests_on_one_connection(pipelined: bool) -> None:
    with scripted(echo([]) if not pipelined else _answer_all) as url:
        replies = target(url).send_on_one_connection([POST, POST, POST], pipelined=pipelined)
    assert [reply.body for reply in replies] == [b"01", b"02", b"03"]


def _answer_all(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(OK + b"01" + OK + b"02" + OK + b"03")


def test_a_closing_server_ends_the_list() -> None:
    closing = b"HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    with scripted(answers(OK + b"01", closing)) as url:
        replies = target(url).send_on_one_connection([POST, POST, POST])
    assert [reply.status for reply in replies] == [200, 400]


def test_an_answer_to_half_a_request_is_still_read() -> None:
    def refuse_early(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 16)

    with scripted(refuse_early) as url:
        assert target(url).send_in_pieces(POST, [1, 2, 3]).status == 413


def test_requests_in_flight_keep_their_order() -> None:
    def reflect(connection: socket.socket) -> None:
        body = read_request(connection)[-2:]
        connection.sendall(OK + body)

    with scripted(reflect) as url:
        messages = [POST.with_body(b"%02d" % number) for number in range(8)]
        judged = target(url)
        replies = judged.send_together(messages)
        judged.close()
    assert [reply.body for reply in replies] == [b"%02d" % number for number in range(8)]
    assert [exchange.number for exchange in judged.exchanges] == list(range(8))


def test_a_target_that_is_gone_stays_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        judged = Target(Settings(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.3))
    for _ in range(2):
        with pytest.raises(TargetLost, match="cannot connect"):
            judged.get("/v2")
    assert judged.lost is not None
