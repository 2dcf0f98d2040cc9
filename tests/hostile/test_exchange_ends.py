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
from conformance.transport.http_client import HttpClient
from conformance.transport.settings import Settings
from conformance.wire.request import Message
from tests.support.scripted_server import read_request, serve_scripts

PATIENCE = 2.0  # a busy machine may keep a server of these from its next piece for a second
POST = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b"{}")


PAUSE_S = 0.05  # between two pieces
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# How an answer begins, and the piece that follows again and again.
ENDLESS = {
    "interim-answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "go-ahead-again-and-again": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a-header-byte-by-byte": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "headers-one-by-one": (b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
    "a-body-byte-by-byte": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    "chunks-byte-by-byte": (CHUNKED, b"1\r\nx\r\n"),
    "a-chunk-size-byte-by-byte": (CHUNKED, b"0"),
}


def send_as_usual(settings: Settings) -> Exchange:
    return HttpClient(settings).send(POST, fresh=True)


def hold_body_back(settings: Settings) -> Exchange:
    return sockets.send_after_go_ahead(settings, POST, None)


def expect_given_up(send: Callable[[Settings], Exchange], name: str) -> None:
    begin, piece = ENDLESS[name]

    def script(connection: socket.socket) -> None:
        if send is send_as_usual:
            read_request(connection)
        with suppress(OSError):  # until the other side has had enough
            connection.sendall(begin)
            while True:
                connection.sendall(piece)
                time.sleep(PAUSE_S)

    with serve_scripts(script) as url:
        started = time.monotonic()
        exchange = send(Settings(url, timeout=PATIENCE))
        took = time.monotonic() - started
    assert exchange.failure is not None, name
    assert exchange.failure.kind in (FailureKind.ENDLESS, FailureKind.MALFORMED), name
    assert took < 5 * PATIENCE, name


@pytest.mark.parametrize("send", [send_as_usual, hold_body_back])
def test_an_answer_without_an_end_is_given_up(send: Callable[[Settings], Exchange]) -> None:
    with ThreadPoolExecutor(len(ENDLESS)) as side_by_side:  # each takes one and a half times the patience
        list(side_by_side.map(partial(expect_given_up, send), ENDLESS))
