"""Heads of answers that are no HTTP, or more of it than anybody reads."""

from __future__ import annotations

from conformance.transport.exchange import FailureKind
from tests.hostile.misbehaviours.rows import add_row, comes_to, make_answer, make_head
from tests.hostile.proxy import Wire

BAD = FailureKind.MALFORMED
_SETTINGS_FRAME = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # of HTTP/2, empty: how each of its connections begins

add_row("http-2-preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS_FRAME, BAD)
add_row("http-2-frames", _SETTINGS_FRAME * 3, BAD)
add_row("http-2-in-the-status-line", b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200)
add_row("http-0-9", b"<html>it works</html>", BAD, FailureKind.BROKEN)
add_row("garbage", bytes(range(256)) * 4, BAD)
add_row("nothing-but-line-ends", b"\r\n" * 1000, BAD)
add_row("status-line-without-a-status", b"HTTP/1.1 OK\r\n\r\n", BAD)
add_row("status-of-four-digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}", BAD)
add_row("tls-where-http-is-spoken", b"\x15\x03\x01\x00\x02\x02\x46", BAD)
add_row("control-characters-in-a-name", b"HTTP/1.1 200 OK\r\nX\x01\x1b[31m: 1\r\nContent-Length: 2\r\n\r\n{}", BAD)
add_row("nul-in-a-value", b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}", BAD)
add_row("a-folded-header", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 200)
add_row("a-header-without-a-colon", b"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}", BAD)
add_row("length-that-is-negative", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", BAD)
add_row("length-in-words", b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", BAD)
add_row("two-lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", BAD)
add_row("length-of-5000-digits", b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}", BAD)
add_row(
    "length-and-chunks",
    make_head(200, "Transfer-Encoding: chunked", "Content-Length: 7") + b"2\r\n{}\r\n0\r\n\r\n",
    200,
)
add_row("an-unknown-transfer-coding", make_head(200, "Transfer-Encoding: gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n", BAD)
add_row("a-header-of-10-mb", make_head(200, "X: " + "x" * 10_000_000, length=2) + b"{}", BAD)
add_row("100000-headers", make_head(200, *["X: 1"] * 100_000, length=2) + b"{}", BAD)
add_row("interim-answers-in-a-row", make_head(103) * 50 + make_answer(), 200)
add_row("go-ahead-nobody-asked-for", make_head(100) + make_answer(), 200)


@comes_to(101, None, FailureKind.BROKEN, FailureKind.CLOSED, BAD, may_be_whole=True)
def switches_protocols(wire: Wire) -> None:
    """Say that it speaks something else from now on."""
    wire.send(make_head(101, "Upgrade: websocket", "Connection: Upgrade") + b"\x81\x05hello")
