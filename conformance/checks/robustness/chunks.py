"""Chunks of sizes that no memory holds, and what has no end beside their data."""

from __future__ import annotations

from conformance.checks.robustness.octets import CHUNKED, CRLF, LAST_CHUNK, make_head, make_plain_request, wrap_in_chunk
from conformance.checks.robustness.survival import expect_declined, expect_still_serving, is_declined
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.exchange import FailureKind
from conformance.transport.hostile_sending import Octets
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER

KIB = 1024


def _row(identity: str, *values: object) -> Row:
    return Row(identity, (identity.replace("-", " "), *values))


@check("robustness.chunk-size-keeps-its-digits", answers="ROBUST-CHUNK-SIZE", role="identity_int32", infers=False)
@rows(
    _row("2-to-the-64-less-1", 2**64 - 1),
    _row("right-in-64-bits", 2**64),
    _row("right-in-32-bits", 2**32),
    _row("2-to-the-63", 2**63),
    _row("right-in-the-last-of-1000-digits", 16**999),
)
def chunk_size_keeps_its_digits(target: Target, model: Model, name: str, more: int) -> None:
    """A chunk of a size beyond all memory is refused, or the connection closed; no digit of the size is dropped."""
    message = make_plain_request(model)
    size = more if more in (2**64 - 1, 2**63) else more + len(message.body)
    tail = wrap_in_chunk(message.body, b"%X" % size)
    octets = Octets(make_head(target, message, CHUNKED), f"a chunk of a size {name}", tail=tail)
    with expect_still_serving(target, model):
        reply = target.send_octets(message, octets)[0]
        if not (size < 2**33 and reply.has_failed(FailureKind.TIMEOUT)):  # there are bodies of 4 GiB to wait for
            expect_declined(reply, f"a chunk of a size {name}")


@check("robustness.chunk-size-is-a-number", answers="ROBUST-CHUNK-SIZE", role="identity_int32", infers=False)
@rows(
    _row("negative", "-{:X}"), _row("with-a-plus", "+{:X}"), _row("with-a-prefix", "0x{:X}"), _row("of-letters", "xyz")
)
def chunk_size_is_a_number(target: Target, model: Model, name: str, text: str) -> None:
    """A chunk whose size is not written in hexadecimal digits alone is refused, or the connection closed."""
    message = make_plain_request(model)
    tail = wrap_in_chunk(message.body, text.format(len(message.body)).encode())
    octets = Octets(make_head(target, message, CHUNKED), f"a chunk of a size {name}", tail=tail)
    with expect_still_serving(target, model):
        expect_declined(target.send_octets(message, octets)[0], f"a chunk of a size {name}")


@check(
    "robustness.endless-line-beside-chunks-is-refused",
    answers="ROBUST-CHUNK-EXTENSION",
    role="identity_int32",
    infers=False,
)
@rows(
    _row("chunk-extension", b"1;"),
    _row("chunk-extensions-without-number", b"1", b";x=1"),
    _row("trailer", LAST_CHUNK.removesuffix(CRLF) + b"X-Long: "),
    _row("trailers-without-number", LAST_CHUNK.removesuffix(CRLF), b"X: 1\r\n"),
)
def endless_line_beside_chunks_is_refused(
    target: Target, model: Model, name: str, start: bytes, filling: bytes = b"x"
) -> None:
    """An extension of a chunk or a trailer of 16 MiB is refused, or the connection closed."""
    message = make_plain_request(model)
    tail = b"%X\r\n%b\r\n" % (len(message.body), message.body) if start[:1] == b"0" else b""
    head = make_head(target, message, CHUNKED) + tail + start
    octets = Octets(head, f"{name} of 16 MiB", filling * KIB, 16 * KIB // len(filling))
    with expect_still_serving(target, model):
        expect_declined(target.send_octets(message, octets)[0], f"{name} of 16 MiB")


FALSE_TRAILER = ChunkFormat(trailers=((INFERENCE_HEADER, "0"),))


@check("robustness.trailer-is-no-header", answers="ROBUST-TRAILER", role="identity_uint8", infers=False)
@rows(("in-one-segment", True), ("in-several", False))
def trailer_is_no_header(target: Target, model: Model, at_once: bool) -> None:
    """A trailer named like the inference header does not make a raw request of a JSON one."""
    message, expected = make_plain_request(model), model.expected(model.sample())

    def is_wrong_without() -> bool:
        reply = target.send_in_pieces(message, [], chunks=PLAIN_CHUNKS, at_once=at_once)
        return not is_met(lambda: expect(reply).tensors(expected))

    with expect_still_serving(target, model):
        reply = target.send_in_pieces(message, [], chunks=FALSE_TRAILER, at_once=at_once)
        if not is_declined(reply):
            with block_if(is_wrong_without, "the request is answered wrongly in chunks without a trailer, too"):
                expect(reply).tensors(expected)
