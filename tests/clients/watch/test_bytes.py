"""What a recording peer forwards: every byte as it came, in both directions, however odd."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from queue import Queue

import pytest
import trustme

from conformance.clients.recording.forwarding import Upstream
from conformance.clients.recording.http_tap import HttpTap
from conformance.clients.recording.proxy import Proxy, Route
from conformance.clients.recording.records import RecordedExchange
from tests.support.bare_requests import BINARY, TIMEOUT, make_request, read_to_end, send_and_read
from tests.support.recorder import ListenerLog, run_recorder
from tests.support.scripted_server import make_answers, read_request, serve_scripts

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

SENT = {
    "a binary request": make_request(),
    "odd spelling of headers": b"POST /a HTTP/1.1\r\nhOsT:h\r\ncontent-LENGTH: \t2 \r\nX:\r\nX: \xe4\xff\r\n\r\nab",
    "folded header": b"GET /a HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
    "bare line feeds": b"POST /a HTTP/1.1\nHost: h\nContent-Length: 2\n\nab",
    "odd chunks": CHUNKED + b'0002;x="y"\r\nab\r\nA\r\n0123456789\r\n000\r\nTrailer: t\r\n\r\n',
    "HTTP/1.0": b"POST /a HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/0.9": b"GET /a\r\n",
    "several in one piece": make_request() + make_request() + b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n",
    "empty lines between": b"\r\n\r\n" + make_request() + b"\r\n" + make_request(),
    "no Host": b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nab",
    "a head that cannot be read": b"POST /\xff a HTTP/1.1\r\nBad Name: x\r\n\0: \r\n\r\nrest",
    "two lengths": b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "a chunk that is none": CHUNKED + b"xyz\r\nab\r\n0\r\n\r\n",
    "a body too short": make_request(length=9999),
    "a body too long": make_request(length=10),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0",
    "a head without end": b"POST /a HTTP/1.1\r\nX: " + b"x" * 600_000,
    "noise": os.urandom(100_000),
    "nothing": b"",
}
CAME = {
    "an answer": OK,
    "odd spelling": b"HTTP/1.1 200\r\ncontent-LENGTH:2\r\nSet-Cookie: a\r\nX:\xff\r\n\r\n{}",
    "until the end": b"HTTP/1.0 500 No\r\n\r\n" + b"x" * 100_000,
    "interim answers": b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK,
    "odd chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n002;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
    "chunks that are none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    "two for one": OK + OK,
    "no HTTP": b"\0\1\2 hello",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n\0\1\2",
    "noise": os.urandom(100_000),
    "nothing": b"",
}


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
@pytest.mark.parametrize("size", [1 << 20, 7])
def test_what_a_client_sends_arrives_as_it_is(sent: bytes, size: int) -> None:
    if size == 7:
        sent = sent[:2000]  # every place of a head or a chunk is cut somewhere
    arrived: list[bytes] = []
    with (
        serve_scripts(lambda connection: arrived.append(read_to_end(connection))) as url,
        run_recorder(url, ListenerLog()) as address,
    ):
        came = send_and_read(address, *[sent[at : at + size] for at in range(0, len(sent), size)])
    assert b"".join(arrived) == sent
    assert came == b""


@pytest.mark.parametrize("came", CAME.values(), ids=CAME)
def test_what_a_server_answers_arrives_as_it_is(came: bytes) -> None:
    def script(connection: socket.socket) -> None:
        read_to_end(connection)
        connection.sendall(came)

    with serve_scripts(script) as url, run_recorder(url, ListenerLog()) as address:
        assert send_and_read(address, make_request()) == came


def test_large_bodies_pass_unchanged_both_ways() -> None:
    sent, came = make_request(os.urandom(3_000_000)), OK[:-2] + os.urandom(3_000_000)
    arrived: list[bytes] = []

    def script(connection: socket.socket) -> None:
        arrived.append(read_to_end(connection))
        connection.sendall(came)

    with serve_scripts(script) as url, run_recorder(url, ListenerLog()) as address:
        assert send_and_read(address, sent) == came
    assert arrived == [sent]


def test_a_body_is_held_back_behind_100_continue() -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        seen.append(connection.recv(65536))
        connection.sendall(OK)

    notes = ListenerLog()
    whole = make_request(BINARY, "Expect: 100-continue")
    head, body = whole[: -len(BINARY)], whole[-len(BINARY) :]
    with (
        serve_scripts(script) as url,
        run_recorder(url, notes) as address,
        socket.create_connection(address, TIMEOUT) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65536) == OK
    assert seen == [head, body]
    assert [one.received.body for one in notes.asked_for] == [BINARY]


def test_half_close_is_forwarded_and_other_direction_stays_open() -> None:
    def script(connection: socket.socket) -> None:
        connection.sendall(b"first")
        assert read_to_end(connection) == b"x"
        connection.sendall(b" and last")

    with (
        serve_scripts(script) as url,
        run_recorder(url, ListenerLog()) as address,
        socket.create_connection(address, TIMEOUT) as connection,
    ):
        assert connection.recv(5) == b"first"
        connection.sendall(b"x")
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection) == b" and last"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def end_of(connection: socket.socket) -> str:
    try:
        read_to_end(connection)
    except ConnectionResetError:
        return "reset"
    return "closed"


@pytest.mark.parametrize(("end", "expected"), [(reset, "reset"), (socket.socket.close, "closed")])
def test_a_reset_of_the_server_is_one_for_the_client(end: Callable[[socket.socket], None], expected: str) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        end(connection)

    with (
        serve_scripts(script) as url,
        run_recorder(url, ListenerLog()) as address,
        socket.create_connection(address, TIMEOUT) as connection,
    ):
        connection.sendall(make_request())
        assert end_of(connection) == expected


def test_a_reset_of_the_client_is_one_for_the_server() -> None:
    ends: Queue[str] = Queue()

    def script(connection: socket.socket) -> None:
        connection.sendall(b"go")
        ends.put(end_of(connection))

    with serve_scripts(script) as url, run_recorder(url, ListenerLog()) as address:
        connection = socket.create_connection(address, TIMEOUT)
        assert connection.recv(2) == b"go"
        reset(connection)
        assert ends.get(timeout=TIMEOUT) == "reset"


def test_a_server_behind_tls_is_reached() -> None:
    authority = trustme.CA()
    served, trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.configure_trust(trusted)
    arrived: list[bytes] = []

    def script(connection: socket.socket) -> None:
        with suppress(OSError), served.wrap_socket(connection.dup(), server_side=True) as wrapped:
            arrived.append(wrapped.recv(65536))
            wrapped.sendall(OK)
            wrapped.unwrap()

    with (
        serve_scripts(script) as url,
        run_recorder(url, ListenerLog(), trusted) as address,
        socket.create_connection(address, TIMEOUT) as connection,
    ):
        connection.sendall(make_request())
        assert read_to_end(connection) == OK
    assert arrived == [make_request()]


class FailingLog(ListenerLog):
    """A listener whose disk is full."""

    def handle_request(self, recorded: RecordedExchange) -> None:
        raise OSError(f"no room for request {recorded.number}")


def test_bytes_are_forwarded_if_listener_fails() -> None:
    with serve_scripts(make_answers(OK, OK)) as url:
        proxy = Proxy([Route(0, Upstream("127.0.0.1", int(url.rpartition(":")[2]), url=url), HttpTap)])
        proxy.listen()
        proxy.serve(FailingLog())
        with socket.create_connection(("127.0.0.1", proxy.ports[0]), TIMEOUT) as connection:
            for _ in range(2):
                connection.sendall(make_request())
                assert connection.recv(65536) == OK
        proxy.close()
    assert str(proxy.fault) == "no room for request 1"
    proxy.close()  # once is enough


class WaitingLog(ListenerLog):
    """A listener that is busy until the recording has begun to end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ending = threading.Event()

    def handle_request(self, recorded: RecordedExchange) -> None:
        assert self.is_ending.wait(TIMEOUT)
        super().handle_request(recorded)


def test_requests_that_wait_for_the_listener_are_handled_after_the_end() -> None:
    notes, sent, arrived = WaitingLog(), make_request() * 3, threading.Event()

    def read_all(connection: socket.socket) -> None:
        connection.recv(len(sent), socket.MSG_WAITALL)
        arrived.set()
        assert read_to_end(connection) == b""  # until the proxy leaves
        notes.is_ending.set()

    with serve_scripts(read_all) as url:
        with run_recorder(url, notes) as address:
            connection = socket.create_connection(address, TIMEOUT)
            connection.sendall(sent)
            assert arrived.wait(TIMEOUT)
        connection.close()
    assert [one.number for one in notes.asked_for] == [1, 2, 3]
    assert [one.number for one in notes.answers] == [1, 2, 3]


class BrokenTap:
    """A tap that cannot read."""

    def read_from_client(self, data: bytes) -> None:
        raise ZeroDivisionError(len(data))

    def read_from_server(self, data: bytes) -> None:
        raise ZeroDivisionError(len(data))

    def handle_reset(self) -> None:
        raise ZeroDivisionError

    def handle_end(self) -> None:
        raise ZeroDivisionError


def test_bytes_are_forwarded_if_tap_fails() -> None:
    notes = ListenerLog()
    with serve_scripts(make_answers(OK)) as url:
        proxy = Proxy([Route(0, Upstream("127.0.0.1", int(url.rpartition(":")[2]), url=url), lambda _: BrokenTap())])
        proxy.listen()
        proxy.serve(notes)
        with socket.create_connection(("127.0.0.1", proxy.ports[0]), TIMEOUT) as connection:
            connection.sendall(make_request())
            assert connection.recv(65536) == OK
        proxy.close()
    assert notes.reasons == [f"a connection is not recorded any further: ZeroDivisionError: {len(make_request())}"]


def test_two_hundred_connections_at_once_are_forwarded_and_told_apart() -> None:
    notes = ListenerLog()
    with serve_scripts(make_answers(OK)) as url, run_recorder(url, notes) as address, ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address, TIMEOUT)) for _ in range(200)]
        for number, connection in enumerate(opened):
            connection.sendall(make_request(path=f"/v2/models/m{number}/infer"))
        assert [connection.recv(65536) for connection in opened] == [OK] * 200
    assert {one.received.path for one in notes.asked_for} == {f"/v2/models/m{number}/infer" for number in range(200)}
    assert {one.number for one in notes.answers if one.answer and one.answer.status == 200} == {*range(1, 201)}


def answer_once_and_stay(connection: socket.socket) -> None:
    """Answer one request, and keep the connection until the client ends it."""
    read_request(connection)
    connection.sendall(OK)
    with suppress(OSError):
        while connection.recv(65536):
            pass


@pytest.mark.parametrize(("sent", "count"), [(make_request(), 1), (make_request() * 2, 0)], ids=["answered", "waiting"])
def test_a_reset_after_the_last_answer_is_told(sent: bytes, count: int) -> None:
    notes = ListenerLog()
    with serve_scripts(answer_once_and_stay) as url, run_recorder(url, notes) as address:
        connection = socket.create_connection(address, TIMEOUT)
        connection.sendall(sent)
        assert connection.recv(65536) == OK
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        notes.wait_for_resets(count)
    assert len(notes.resets) == count
