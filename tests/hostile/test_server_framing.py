"""Requests that HTTP does not allow, and those that could be taken for two things: refused with the status of HTTP.

RFC 9112, 2 "Message", 3 "Request Line", 6 "Message Body", 7.1 "Chunked Transfer Coding"; RFC 9110, 9 "Methods", 10.1.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.serving import Server, read_answer, run_server

BODY = b'{"inputs":[{"name":"INPUT","shape":[1],"datatype":"INT32","data":[7]}]}'
SIZE = b"%x" % len(BODY)
HOST = b"Host: test\r\n"
POST = b"POST /v2/models/identity_int32/infer HTTP/1.1\r\n" + HOST
GET = b"GET /v2 HTTP/1.1\r\n" + HOST


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve with little patience."""
    with run_server("--patience", "1", "--max-head", "8000") as started:
        yield started


def sized(value: bytes, *more: bytes) -> bytes:
    return POST + b"Content-Length: " + value + b"\r\n" + b"".join(more) + b"\r\n" + BODY


def chunked(line: bytes, trailer: bytes = b"") -> bytes:
    """Return a request whose body is one chunk, with this line in front."""
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + line + b"\r\n" + BODY + b"\r\n0\r\n" + trailer + b"\r\n"


def line(method: bytes, target: bytes, version: bytes = b"HTTP/1.1") -> bytes:
    return b"%b %b %b\r\n%b\r\n" % (method, target, version, HOST)


REFUSED = {
    "chunk-of-2^64": (chunked(b"F" * 16), 413),
    "chunk-beyond-the-body": (chunked(b"4000001"), 413),
    "chunk-of-more-than-64-bits": (chunked(b"F" * 17), 400),
    "chunk-with-plus": (chunked(b"+" + SIZE), 400),
    "chunk-with-minus": (chunked(b"-" + SIZE), 400),
    "chunk-with-0x": (chunked(b"0x" + SIZE), 400),
    "chunk-with-blank": (chunked(SIZE + b" "), 400),
    "chunk-without-size": (chunked(b""), 400),
    "endless-extension": (chunked(SIZE + b";" + b"a" * 2_000_000), 431),
    "endless-trailer": (chunked(SIZE, b"X: " + b"a" * 2_000_000 + b"\r\n"), 431),
    "length-with-plus": (sized(b"+71"), 400),
    "length-with-blank": (sized(b"7 1"), 400),
    "length-as-list": (sized(b"71, 71"), 400),
    "two-lengths": (sized(b"71", b"Content-Length: 3\r\n"), 400),
    "length-and-chunks": (sized(b"71", b"Transfer-Encoding: chunked\r\n"), 400),
    "chunked-twice": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n", 400),
    "garbage": (b"\x16\x03\x01\x02\x00\x01" + bytes(100), 400),
    "authority-form": (line(b"GET", b"test:80"), 400),
    "asterisk-of-get": (line(b"GET", b"*"), 400),
    "fragment": (line(b"GET", b"/v2#x"), 400),
    "connect": (line(b"CONNECT", b"test:80"), 501),
    "unknown-method": (line(b"FOO", b"/v2"), 501),
    "method-in-lower-case": (line(b"get", b"/v2"), 501),
    "http-0.9": (b"GET /v2\r\n\r\n", 505),
    "http-1.2": (line(b"GET", b"/v2", b"HTTP/1.2"), 505),
    "http-2": (line(b"GET", b"/v2", b"HTTP/2.0"), 505),
    "preface-of-http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "rtsp": (line(b"GET", b"/v2", b"RTSP/1.0"), 400),
    "host-with-path": (b"GET /v2 HTTP/1.1\r\nHost: test/x\r\n\r\n", 400),
    "nul-in-a-value": (GET + b"X: a\0b\r\n\r\n", 400),
    "bare-lf": (GET + b"X: a\nY: b\r\n\r\n", 400),
    "bare-cr": (GET + b"X: a\rb\r\n\r\n", 400),
    "folded": (GET + b"X: a\r\n b\r\n\r\n", 400),
    "blank-before-the-colon": (GET + b"X : a\r\n\r\n", 400),
    "expectation": (sized(b"71", b"Expect: 200-ok\r\n"), 417),
    "expectations": (sized(b"71", b"Expect: 100-continue, more\r\n"), 417),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_framed_is_refused_and_the_connection_closed(server: Server, name: str) -> None:
    octets, status = REFUSED[name]
    with server.connection() as connection:
        connection.sendall(octets[:300_000])
        answer = read_answer(connection)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert isinstance(json.loads(answer.body)["error"], str)


UNKNOWN = [
    "//v2",
    "/v2%00",
    "/v2/../v2",
    "/v2/%2e%2e/v2",
    "/%",
    "/v2/models/a%2fb",
    "/v2/models/%0d%0aX:%201",
    "/" + "a" * 5000,
]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "M-SEARCH"])
def test_unknown_path_is_404_with_error_object(server: Server, method: str) -> None:
    with server.connection() as connection:
        for path in UNKNOWN:
            connection.sendall(line(method.encode(), path.encode()))
            answer = read_answer(connection, method)
            known = path.startswith("/v2/models/%0d") and method != "GET"  # a model's path, which takes GET alone
            assert answer.status == (405 if known else 404)
            assert ("allow" in answer.headers) == known
            assert isinstance(json.loads(answer.body)["error"], str)


@pytest.mark.parametrize("target", [b"http://test/v2", b"http://other:80/v2"])
def test_a_target_with_a_host_is_taken(server: Server, target: bytes) -> None:
    assert server.exchange(line(b"GET", target), "GET").status == 200


def test_chunk_sizes_are_known_wherever_the_bytes_are_cut(server: Server) -> None:
    octets = chunked(b"1;a=b\r\n{\r\n46")
    octets = octets.replace(b"46\r\n{", b"46\r\n")
    for cut in (-len(BODY) - 12, -len(BODY) - 10, -len(BODY) - 8, -3):
        with server.connection() as connection:
            connection.sendall(octets[:cut])
            connection.sendall(octets[cut:])
            assert read_answer(connection).status == 200


def test_no_go_ahead_in_http_1_0(server: Server) -> None:
    octets = sized(b"71", b"Expect: 100-continue\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    with server.connection() as connection:
        connection.sendall(octets)
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_thousands_of_pipelined_requests_are_answered(server: Server) -> None:
    count = 3000
    last = line(b"GET", b"/v2/health/live").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with server.connection() as connection:
        connection.sendall(line(b"GET", b"/v2/health/live") * count + last)
        received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    assert received.count(b"HTTP/1.1 200 OK") == count + 1


def test_a_body_that_nobody_reads_has_to_come_in_time(server: Server) -> None:
    with server.connection() as connection:
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nx")
        assert read_answer(connection).status == 404
        assert connection.recv(1) == b""
