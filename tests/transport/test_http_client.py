"""How requests are sent and answers read: kept connections, and every way in which a server can misbehave."""

from __future__ import annotations

import gzip
import socket
import struct
import time

import pytest

from conformance.transport.exchange import FailureKind
from conformance.transport.http_client import HttpClient
from conformance.transport.settings import Settings
from conformance.transport.unreachable import UnreachableError
from conformance.wire.request import Message
from tests.support.scripted_server import make_answers, read_request, serve_scripts
from tests.support.servers import reserve_closed_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno"
POST = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b"{}")


def sender(url: str, **settings: float) -> HttpClient:
    return HttpClient(
        Settings(url, timeout=settings.pop("timeout", 2.0), max_answer=int(settings.pop("max_answer", 1000)))
    )


def test_a_kept_connection_is_used_again() -> None:
    with serve_scripts(make_answers(OK, OK), make_answers(BAD)) as url:
        client = sender(url)
        assert [client.send(POST).status, client.send(POST).status] == [200, 200]
        client.close()


def test_an_error_ends_the_connection() -> None:
    with serve_scripts(make_answers(BAD, OK), make_answers(OK)) as url:
        client = sender(url)
        assert [client.send(POST).status, client.send(POST).body] == [400, b"ok"]
        client.close()


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/v2/models/two words/infer", "/v2/models/two%20words/infer"),
        ("/v2/models/größe/infer", "/v2/models/gr%C3%B6%C3%9Fe/infer"),
        ("/v2/models/a%2Fb/infer", "/v2/models/a%2Fb/infer"),
        ("/v2/models/5%/infer", "/v2/models/5%25/infer"),
        ("//v2/../x?y=ü", "//v2/../x?y=%C3%BC"),
    ],
)
def test_path_is_escaped_only_where_required(path: str, sent: str) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(OK)

    with serve_scripts(script) as url:
        client = sender(url)
        assert client.send(Message(path, method="GET")).status == 200
        client.close()
    assert seen[0].startswith(f"GET {sent} HTTP/1.1\r\nHost: {url.removeprefix('http://')}\r\n".encode())


def test_request_line_headers_and_body_are_sent() -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(read_request(connection))
        connection.sendall(OK)

    with serve_scripts(script) as url:
        client = HttpClient(Settings(url + "/base", (("Host", "gateway"), ("Authorization", "t"))))
        client.send(POST, fresh=True)
        client.close()
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert (lines[0], body) == (b"POST /base/v2/models/m/infer HTTP/1.1", b"{}")
    assert {b"Host: gateway", b"Authorization: t", b"Accept-Encoding: identity", b"Content-Length: 2"} < set(lines)
    assert b"Content-Type: application/json" in lines


def test_coded_body_is_returned_undecoded() -> None:
    packed = gzip.compress(b"0" * 100_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with serve_scripts(make_answers(head + packed)) as url:
        client = sender(url)
        assert client.send(POST).body == packed
        client.close()


def _hang(connection: socket.socket) -> None:
    read_request(connection)
    connection.recv(1)  # until the client goes


def _dribble(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b".")
        time.sleep(0.05)


def _reset_behind_the_head(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_a_reset_while_the_body_is_sent_is_no_close() -> None:
    with serve_scripts(_reset_behind_the_head) as url:
        client = sender(url)
        failure = client.send(Message(POST.path, POST.headers, bytes(1 << 25))).failure
        client.close()
    assert failure is not None
    assert (failure.kind, failure.text) == (FailureKind.BROKEN, "connection broken while the request was sent")


@pytest.mark.parametrize(
    ("script", "status", "kind", "text"),
    [
        (make_answers(b""), None, FailureKind.CLOSED, "connection closed without an answer"),
        (_hang, None, FailureKind.TIMEOUT, "no answer within 1 s"),
        (_dribble, 200, FailureKind.ENDLESS, "answer not complete within 1.5 s"),
        (
            make_answers(OK.replace(b"2\r\n", b"9\r\n")),
            200,
            FailureKind.MALFORMED,
            "malformed HTTP answer: peer closed connection",
        ),
        (make_answers(b"nonsense\r\n\r\n"), None, FailureKind.MALFORMED, "malformed HTTP answer: illegal status line"),
        (
            make_answers(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000),
            200,
            FailureKind.ENDLESS,
            "answer longer than 1000 bytes",
        ),
    ],
    ids=["silent", "hanging", "dribbling", "cut", "nonsense", "endless"],
)
def test_malformed_answer_is_returned_as_failure(
    script: object, status: int | None, kind: FailureKind, text: str
) -> None:
    with serve_scripts(script) as url:  # type: ignore[arg-type]
        client = sender(url, timeout=1.0)
        exchange = client.send(POST)
        client.close()
    assert exchange.status == status
    assert exchange.failure is not None
    assert exchange.failure.kind is kind
    assert str(exchange.failure).startswith(text)


def test_closed_port_is_unreachable() -> None:
    with reserve_closed_port() as port, pytest.raises(UnreachableError, match=f"cannot connect to .*:{port}"):
        sender(f"http://127.0.0.1:{port}").send(POST)
