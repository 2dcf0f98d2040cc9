"""An exchange ends at a stated limit, one and a half times the patience, however a server keeps it going."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from conformance.transport import sockets
from conformance.transport.exchange import Exchange, FailureKind
from conformance.transport.settings import Settings
from conformance.wire.request import Message
from tests.hostile.hostile_methods import SendMethod, send_over_bare_socket, send_over_httpcore
from tests.support.scripted_server import read_request, serve_scripts

PATIENCE = 2.0  # a busy machine may keep a server of these from its next piece for a second
POST = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b"{}")
Dribble = Callable[[socket.socket], None]


def for_ever(connection: socket.socket, piece: bytes, pause: float = 0.05) -> None:
    """Send a piece again and again, until the other side has had enough."""
    with suppress(OSError):
        while True:
            connection.sendall(piece)
            time.sleep(pause)


def interim_answers(connection: socket.socket) -> None:
    for_ever(connection, b"HTTP/1.1 103 Early Hints\r\n\r\n")


def go_ahead_again_and_again(connection: socket.socket) -> None:
    for_ever(connection, b"HTTP/1.1 100 Continue\r\n\r\n")


def a_header_byte_by_byte(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for_ever(connection, b"x")


def headers_one_by_one(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for_ever(connection, b"X-More: 1\r\n")


def a_body_byte_by_byte(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for_ever(connection, b"x")


def chunks_byte_by_byte(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for_ever(connection, b"1\r\nx\r\n")


def a_chunk_size_byte_by_byte(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for_ever(connection, b"0")


ENDLESS = (
    interim_answers,
    a_header_byte_by_byte,
    headers_one_by_one,
    a_body_byte_by_byte,
    chunks_byte_by_byte,
    a_chunk_size_byte_by_byte,
)


def over_a_bare_socket_held_back(settings: Settings, message: Message) -> Exchange:
    return sockets.send_after_go_ahead(settings, message, None)


SENT = (send_over_httpcore, send_over_bare_socket, over_a_bare_socket_held_back)


def expect_given_up(send: SendMethod, dribble: Dribble) -> None:
    def script(connection: socket.socket) -> None:
        if send is not over_a_bare_socket_held_back:
            read_request(connection)
        dribble(connection)

    with serve_scripts(script) as url:
        started = time.monotonic()
        exchange = send(Settings(url, timeout=PATIENCE), POST)
        took = time.monotonic() - started
    assert exchange.failure is not None, dribble.__name__
    assert exchange.failure.kind in (FailureKind.ENDLESS, FailureKind.MALFORMED), dribble.__name__
    assert took < 5 * PATIENCE, dribble.__name__


@pytest.mark.parametrize("send", SENT)
def test_an_answer_without_an_end_is_given_up(send: SendMethod) -> None:
    dribbles = (*ENDLESS, go_ahead_again_and_again)
    with ThreadPoolExecutor(len(dribbles)) as side_by_side:  # each takes one and a half times the patience
        list(side_by_side.map(partial(expect_given_up, send), dribbles))
