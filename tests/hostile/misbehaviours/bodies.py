"""Bodies that are not what the head says, or hold what no reader of JSON likes."""

from __future__ import annotations

import time
import zlib

from conformance.transport.exchange import FailureKind
from tests.hostile.misbehaviours.rows import add_row, comes_to, make_answer, make_head
from tests.hostile.proxy import Wire

BAD, ENDLESS, BROKEN = FailureKind.MALFORMED, FailureKind.ENDLESS, FailureKind.BROKEN
_CHUNKED = make_head(200, "Transfer-Encoding: chunked")
MEGABYTE = bytes(1_000_000)

add_row("a-body-with-204", make_head(204) + b"{}", 204)
add_row("a-body-with-304", make_head(304, length=2) + b"{}", 304)
add_row("length-too-long", make_head(200, length=1000) + b"{}", 200, BAD, BROKEN)
add_row("length-too-short", make_head(200, length=1) + b"{}", 200)
add_row("two-answers", make_answer() + make_answer(body=b'{"stale":1}'), 200)
add_row("half-an-answer-more", make_answer() + make_head(200, length=20), 200)
add_row("a-chunk-of-a-negative-size", _CHUNKED + b"-1\r\n{}\r\n0\r\n\r\n", 200, BAD)
add_row("a-chunk-of-no-size", _CHUNKED + b"\r\n{}\r\n0\r\n\r\n", 200, BAD)
add_row("a-chunk-with-more-than-its-size", _CHUNKED + b"2\r\n{}{}\r\n0\r\n\r\n", 200, BAD)
add_row("a-chunk-with-a-size-of-1000-digits", _CHUNKED + b"0" * 1000 + b"2\r\n{}\r\n0\r\n\r\n", 200, BAD)
add_row("chunks-without-a-last-one", _CHUNKED + b"2\r\n{}\r\n", 200, BAD, BROKEN)
add_row("trailers", _CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 9\r\nSet-Cookie: a=b\r\n\r\n", 200)
add_row("gzip-that-is-none", make_answer(200, "Content-Encoding: gzip"), 200)


def flood(wire: Wire, piece: bytes) -> None:
    """Send a piece for as long as the other side reads."""
    while True:
        wire.send(piece)


@comes_to(200, ENDLESS)
def endless_body(wire: Wire) -> None:
    """Send without an end, as fast as can be."""
    wire.send(make_head(200, "Connection: close"))
    flood(wire, MEGABYTE)


@comes_to(200, ENDLESS)
def endless_chunks(wire: Wire) -> None:
    """Send chunk after chunk."""
    wire.send(_CHUNKED)
    flood(wire, b"f4240\r\n" + MEGABYTE + b"\r\n")


@comes_to(200, ENDLESS)
def a_chunk_of_all_the_bytes_there_are(wire: Wire) -> None:
    """Send a chunk of the size FFFFFFFFFFFFFFFF."""
    wire.send(_CHUNKED + b"FFFFFFFFFFFFFFFF\r\n")
    flood(wire, MEGABYTE)


@comes_to(200, BAD)
def an_endless_chunk_extension(wire: Wire) -> None:
    """Never end the line that gives the size of a chunk."""
    wire.send(_CHUNKED + b"2;x=")
    flood(wire, b"x" * 100_000)


@comes_to(200, BAD)
def endless_trailers(wire: Wire) -> None:
    """Never end the trailers."""
    wire.send(_CHUNKED + b"2\r\n{}\r\n0\r\n")
    flood(wire, b"X: 1\r\n" * 1000)


@comes_to(200, ENDLESS)
def a_byte_at_a_time(wire: Wire) -> None:
    """Send the body so slowly that it never ends."""
    wire.send(make_head(200, length=1_000_000))
    while True:
        wire.send(b"x")
        time.sleep(0.05)


@comes_to(200, FailureKind.TIMEOUT)
def a_body_that_stalls(wire: Wire) -> None:
    """Send part of the body, and nothing more."""
    wire.send(make_head(200, length=1000) + b"{")
    wire.await_end()


@comes_to(FailureKind.TIMEOUT)
def silence(wire: Wire) -> None:
    """Say nothing."""
    wire.await_end()


@comes_to(FailureKind.TIMEOUT)
def a_head_that_stalls(wire: Wire) -> None:
    """Send part of the head, and nothing more."""
    wire.send(b"HTTP/1.1 200 OK\r\nX")
    wire.await_end()


def make_bomb() -> bytes:
    """Return 10 GB of zeros as gzip of gzip: a file of gzip may have many members, and these are alike."""
    member = zlib.compress(bytes(10_000_000), wbits=31)
    return zlib.compress(member * 1000, wbits=31)


add_row("a-gzip-bomb", make_answer(200, "Content-Encoding: gzip, gzip", body=make_bomb()), 200)


@comes_to(200)
def deflate_nobody_asked_for(wire: Wire) -> None:
    """Send a body in deflate."""
    wire.send(make_answer(200, "Content-Encoding: deflate", body=zlib.compress(b"{}")))


@comes_to(200)
def brotli_nobody_asked_for(wire: Wire) -> None:
    """Send a body in a coding that we do not know."""
    wire.send(make_answer(200, "Content-Encoding: br", body=b"\x0b\x00\x80{}\x03"))


@comes_to(200)
def zstd_nobody_asked_for(wire: Wire) -> None:
    """Send a body in another coding that we do not know."""
    wire.send(make_answer(200, "Content-Encoding: zstd", body=b"\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00{}"))


@comes_to(200)
def codes_its_honest_answer(wire: Wire) -> None:
    """Answer rightly, in a coding nobody asked for."""
    status, headers, body = wire.answer() if wire.upstream else (200, [], b"{}")
    kept = [f"{name}: {value}" for name, value in headers if name.lower() not in ("content-length", "connection")]
    wire.send(
        make_answer(status, *kept, "Content-Encoding: gzip", "Connection: close", body=zlib.compress(body, wbits=31))
    )


# --- whole bodies, and what is to run where it is shown ---------------------------------------------------------------

_JSON = "Content-Type: application/json"
# Names and messages that would change a terminal, a page or a report in which they stood as they are.
NASTY = "\x1b[31m\x07<script>alert(1)</script>\u202egnp.exe](javascript:1)|`&amp;\"'\x00\u2028"

TEXTS = {
    "json-of-nan": b'{"outputs":[{"name":"O","datatype":"FP32","shape":[1],"data":[NaN]}]}',
    "json-of-infinity": b'{"outputs":[{"name":"O","datatype":"FP32","shape":[-Infinity],"data":[1e999]}]}',
    "deep-json": b"[" * 100_000,
    "deep-objects": b'{"outputs":' * 50_000 + b"1" + b"}" * 50_000,
    "huge-integers": b'{"outputs":[{"name":"O","datatype":"INT32","shape":[%s],"data":[1]}]}' % (b"9" * 5000),
    "members-twice": b'{"outputs":[],"outputs":[{"name":"O","name":"P"}],"error":1,"error":2}',
    "a-byte-order-mark": b'\xef\xbb\xbf{"outputs":[]}',
    "utf-16": '{"outputs":[]}'.encode("utf-16"),
    "lone-surrogates": b'{"error":"\\ud800 \\udfff","outputs":[{"name":"\\ud800"}]}',
    "not-utf-8": b'{"error":"\xff\xfe"}',
    "nasty-names": ('{"error":"%s","outputs":[{"name":"%s"}]}' % (NASTY, NASTY)).encode(),  # noqa: UP031
    "a-number-in-place-of-an-object": b"1e400",
    "nothing": b"",
    "a-hundred-dimensions": b'{"outputs":[{"name":"O","datatype":"INT8","shape":[%s1],"data":[1]}]}' % (b"1," * 99),
    "shapes-beyond-all": b'{"outputs":[{"name":"O","datatype":"INT8","shape":[9223372036854775808,0,-1],"data":[]}]}',
}
for _name, _text in TEXTS.items():
    add_row(_name, make_answer(200, _JSON, body=_text), 200)
    add_row(f"{_name}-refusing", make_answer(400, _JSON, body=_text), 400)
add_row("a-length-header-of-5000-digits", make_answer(200, "Inference-Header-Content-Length: " + "9" * 5000), 200)
add_row("a-length-header-that-is-negative", make_answer(200, "Inference-Header-Content-Length: -5"), 200)
