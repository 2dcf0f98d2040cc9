"""Heads of answers that are no HTTP, or more of it than anybody reads."""

from __future__ import annotations

from conformance.transport.exchange import FailureKind
from tests.hostile.misbehaviours.rows import comes_to, head, says, whole
from tests.hostile.proxy import Wire

BAD = FailureKind.MALFORMED
_SETTINGS_FRAME = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # of HTTP/2, empty: how each of its connections begins

says("http-2-preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS_FRAME, BAD)
says("http-2-frames", _SETTINGS_FRAME * 3, BAD)
says("http-2-in-the-status-line", b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200)
says("http-0-9", b"<html>it works</html>", BAD, FailureKind.BROKEN)
says("garbage", bytes(range(256)) * 4, BAD)
says("nothing-but-line-ends", b"\r\n" * 1000, BAD)
says("status-line-without-a-status", b"HTTP/1.1 OK\r\n\r\n", BAD)
says("status-of-four-digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}", BAD)
says("tls-where-http-is-spoken", b"\x15\x03\x01\x00\x02\x02\x46", BAD)
says("control-characters-in-a-name", b"HTTP/1.1 200 OK\r\nX\x01\x1b[31m: 1\r\nContent-Length: 2\r\n\r\n{}", BAD)
says("nul-in-a-value", b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{}", BAD)
says("a-folded-header", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 200)
says("a-header-without-a-colon", b"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\n{}", BAD)
says("length-that-is-negative", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", BAD)
says("length-in-words", b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", BAD)
says("two-lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", BAD)
says("length-of-5000-digits", b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}", BAD)
says("length-and-chunks", head(200, "Transfer-Encoding: chunked", "Content-Length: 7") + b"2\r\n{}\r\n0\r\n\r\n", 200)
says("an-unknown-transfer-coding", head(200, "Transfer-Encoding: gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n", BAD)
says("a-header-of-10-mb", head(200, "X: " + "x" * 10_000_000, length=2) + b"{}", BAD)
says("100000-headers", head(200, *["X: 1"] * 100_000, length=2) + b"{}", BAD)
says("interim-answers-in-a-row", head(103) * 50 + whole(), 200)
says("go-ahead-nobody-asked-for", head(100) + whole(), 200)


@comes_to(101, None, FailureKind.BROKEN, FailureKind.CLOSED, BAD, may_be_whole=True)
def switches_protocols(wire: Wire) -> None:
    """Say that it speaks something else from now on."""
    wire.send(head(101, "Upgrade: websocket", "Connection: Upgrade") + b"\x81\x05hello")
