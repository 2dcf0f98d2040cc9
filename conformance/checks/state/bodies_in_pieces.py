"""A body is one, wherever TCP segments or chunks cut it, and however the chunks are written."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.state.own_answers import expect_right
from conformance.checks.state.pieces import CUTS, WHOLE, Cut, cut_rows
from conformance.checks.state.three_forms import FORMS, LENGTH_REQUIRED, AnyForm, answered, form_row, salted
from conformance.expect.expectation import expect
from conformance.expect.unmet import blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.chunks import PLAIN, Chunks
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER

# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """A body is read as a whole, wherever TCP cuts it."""
    message, tensors = cut.sent(model)
    reply = target.send_in_pieces(message, cut.places(message))
    expect_right(target, reply, model.expected(tensors), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> None:
    """A chunked body is decoded, wherever its chunks begin, or declined with 411."""
    message, tensors = cut.sent(model)
    reply = target.send_in_pieces(message, cut.places(message), chunks=PLAIN)
    if reply.status != LENGTH_REQUIRED:
        expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED")


# --- how chunks are written --------------------------------------------------------------------------------------------

SPELLINGS: Mapping[str, Chunks] = {
    "extension": Chunks(extension=";name=value"),
    "extension-quoted": Chunks(extension=';a="x; 5";b'),
    "trailer": Chunks(trailers=(("X-Checksum", "5f3a"), ("X-Note", "behind the body"))),
    "capital-digits": Chunks(capitals=True),
    "leading-zeros": Chunks(zeros=6),
    "all-at-once": Chunks(";name=value", (("X-Checksum", "5f3a"),), capitals=True, zeros=6),
}
# Where a body is cut: both chunks have a size with a letter in it, whatever the form.
PLACE, LENGTH = 0xAB, 200


@check("state.chunks-are-read-however-written", answers="HTTP-CHUNKED")
@rows(*[form_row(f"{name}-{form}", form, chunks) for name, chunks in SPELLINGS.items() for form in FORMS])
def chunks_are_read_however_written(target: Target, model: Model, form: AnyForm, chunks: Chunks) -> None:
    """Extensions and trailers of a chunked body are passed over, and the sizes may have capitals and zeros in front."""
    message, tensors = salted(model, form, LENGTH, 1)
    if chunks.trailers:
        message = message.with_header("Trailer", ", ".join(name for name, _ in chunks.trailers))
    reply = target.send_in_pieces(message, [PLACE], chunks=chunks, at_once=True)
    if reply.status != LENGTH_REQUIRED:
        expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED")


MANY = 4000  # bytes, each a chunk of its own


@check("state.many-small-chunks-are-one-body", answers="HTTP-CHUNKED")
@rows(form_row("json", "json", 400), form_row("binary", "binary", 1000), form_row("raw", "raw", MANY))
def many_small_chunks_are_one_body(target: Target, model: Model, form: AnyForm, length: int) -> None:
    """A body in thousands of chunks of one byte each is decoded, or declined with 411."""
    message, tensors = salted(model, form, length, 1)
    reply = target.send_in_pieces(message, range(1, len(message.body)), chunks=PLAIN, at_once=True)
    if reply.status != LENGTH_REQUIRED:
        expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED")


FALSE_TRAILER = Chunks(trailers=((INFERENCE_HEADER, "0"),))


@check("state.trailer-is-no-header", answers="HTTP-CHUNKED", role="identity_uint8")
@rows(("in-one-segment", True), ("in-several", False))
def trailer_is_no_header(target: Target, model: Model, at_once: bool) -> str:
    """A trailer named like the inference header does not make a raw request of a JSON one."""
    message, expected = answered(target, model, "json", 5)
    reply = target.send_in_pieces(message, [], chunks=FALSE_TRAILER, at_once=at_once)

    def is_wrong_without() -> bool:
        plain = target.send_in_pieces(message, [], chunks=PLAIN, at_once=at_once)
        return not holds(lambda: expect(plain).tensors(expected))

    if reply.is_refusal:  # no client has cause to send it
        return f"refused with {reply.status}"
    with blocked_where(is_wrong_without, "in chunks without a trailer it is answered wrongly, too"):
        expect(reply, "HTTP-CHUNKED").tensors(expected)
    return "passed over"
