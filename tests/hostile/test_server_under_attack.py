"""The bundled server as people leave it running: what a client may cost it is limited, and said in OIP's own form."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.support.serving import Server, make_infer_request, read_answer, run_server

BODY = b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"INT32","data":[7]}]}'
GOOD = make_infer_request("identity_int32", BODY)
PATH = b"POST /v2/models/identity_int32/infer HTTP/1.1\r\n"
HOST = b"Host: test\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve with little patience and small heads."""
    with run_server("--patience", "2", "--max-head", "8000") as started:
        yield started


@pytest.mark.parametrize(
    ("octets", "status", "said"),
    [
        (PATH + b"\r\n", 400, "an HTTP/1.1 request needs a Host header"),
        (PATH + HOST + HOST + b"\r\n", 400, "the request has more than one Host header"),
        (
            PATH + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + LAST_CHUNK,
            501,
            "the only supported transfer coding",
        ),
        (
            PATH.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + LAST_CHUNK,
            400,
            "HTTP/1.0 does not allow Transfer-Encoding",
        ),
    ],
    ids=["no-host", "two-hosts", "gzip-and-chunked", "chunked-in-http-1.0"],
)
def test_a_head_that_could_be_taken_for_another_is_refused(
    server: Server, octets: bytes, status: int, said: str
) -> None:
    answer = server.exchange(octets)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert json.loads(answer.body)["error"].startswith(said)


@pytest.mark.parametrize("piece", [b"x" * 1000, b"\r\nX-More: 1" * 80], ids=["one-header", "many-headers"])
def test_a_head_without_an_end_is_refused(server: Server, piece: bytes) -> None:
    sent = 0
    with server.connection() as connection, suppress(OSError):
        connection.sendall(PATH + HOST + b"X-Long: ")
        for _ in range(1000):
            connection.sendall(piece)
            sent += len(piece)
            time.sleep(0.001)
    assert sent < 500_000


def test_a_head_of_the_largest_size_is_taken(server: Server) -> None:
    head, _, body = GOOD.partition(b"\r\n\r\n")
    octets = head + b"\r\nX-Long: " + b"x" * 7000 + b"\r\n\r\n" + body
    assert server.exchange(octets).status == 200


@pytest.mark.parametrize(
    "octets", [GOOD[:30], GOOD[:-5], PATH + HOST + CHUNKED + b"\r\nFFFF\r\nabc"], ids=["head", "body", "chunk"]
)
def test_a_request_that_does_not_go_on_is_refused(server: Server, octets: bytes) -> None:
    with server.connection() as connection:
        connection.sendall(octets)
        answer = read_answer(connection)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert json.loads(answer.body)["error"].endswith(" is incomplete after the timeout")


def test_a_connection_without_a_byte_is_closed(server: Server) -> None:
    with server.connection() as connection:
        assert connection.recv(1) == b""


def test_many_slow_connections_keep_nobody_waiting_and_end(server: Server) -> None:
    slow = [socket.create_connection(server.address, 10) for _ in range(200)]
    try:
        for one in slow:
            one.sendall(GOOD[:40])
        assert server.exchange(GOOD).status == 200
        assert all(read_answer(one).status == 408 for one in slow)
    finally:
        for one in slow:
            one.close()
    assert server.exchange(GOOD).status == 200
