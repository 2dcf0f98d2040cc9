"""Heads that are no HTTP, or more of it than anybody reads, or that want something of the client."""

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


# --- go elsewhere, show who you are, wait, keep something -------------------------------------------------------------

_BASIC = 'WWW-Authenticate: Basic realm="x"'

for _status in (301, 302, 303, 307, 308):
    add_row(f"redirects-to-itself-{_status}", make_answer(_status, "Location: /v2/models/m/infer"), _status)
    add_row(f"redirects-elsewhere-{_status}", make_answer(_status, "Location: http://127.0.0.1:9/steal"), _status)
add_row("redirects-to-a-file", make_answer(302, "Location: file:///etc/passwd"), 302)
add_row("redirects-nowhere", make_answer(302), 302)
add_row("redirects-by-refresh", make_answer(200, "Refresh: 0; url=http://127.0.0.1:9/"), 200)
add_row("wants-a-password", make_answer(401, _BASIC), 401)
add_row("wants-a-password-and-says-no-how", make_answer(401), 401)
add_row("wants-a-digest", make_answer(401, 'WWW-Authenticate: Digest realm="x", nonce="y"'), 401)
add_row("wants-negotiation", make_answer(401, "WWW-Authenticate: Negotiate"), 401)
add_row("forbids", make_answer(403), 403)
add_row("forbids-and-wants-a-password", make_answer(403, _BASIC), 403)
add_row("wants-a-password-for-a-proxy", make_answer(407, 'Proxy-Authenticate: Basic realm="x"'), 407)
add_row("wants-patience", make_answer(429, "Retry-After: 100000"), 429)
add_row("wants-patience-until-a-date", make_answer(429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), 429)
add_row("is-busy", make_answer(503, "Retry-After: 100000"), 503)
add_row("gives-cookies", make_answer(200, "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d"), 200)
add_row(
    "wants-other-services", make_answer(200, 'Alt-Svc: h2="127.0.0.1:9"', "Strict-Transport-Security: max-age=9"), 200
)
add_row("wants-an-upgrade", make_answer(426, "Upgrade: h2c", "Connection: Upgrade"), 426)
add_row("status-999", make_answer(999), 999)
