"""A body is one, wherever TCP segments or chunks cut it, and however the chunks are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.checks.state.pieces import CUTS, WHOLE, Cut, make_cut_rows
from conformance.checks.state.salted_requests import expect_right
from conformance.checks.state.three_forms import (
    FORMS,
    LENGTH_REQUIRED,
    AnyForm,
    expect_new_http,
    make_form_request,
    make_form_row,
)
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import JSON
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*make_cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """A body is read as a whole, wherever TCP cuts it."""
    message, tensors = cut.sent(model)
    reply = target.send_in_pieces(message, cut.places(message))
    expect_right(target, reply, model.expected(tensors), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*make_cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> str:
    """A chunked body is decoded, wherever its chunks begin, or declined as its form allows."""
    message, tensors = cut.sent(model)
    reply = target.send_in_pieces(message, cut.places(message), chunks=PLAIN_CHUNKS)
    return _expect_read_or_declined(target, model, cut.form, reply, tensors)


def _expect_read_or_declined(
    target: Target, model: Model, form: AnyForm, reply: Reply, tensors: Sequence[Tensor]
) -> str:
    """Expect that a chunked request is read: JSON may be declined with 411, binary data, which want a length, anyhow."""
    if reply.status == LENGTH_REQUIRED or (form != "json" and is_refused(target, model, reply)):
        return f"declined with {reply.status}"
    try:
        expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED")
    except UnmetError:
        expect_new_http(target, reply)
        raise
    return "decoded"


# --- how chunks are written --------------------------------------------------------------------------------------------

SPELLINGS: Mapping[str, ChunkFormat] = {
    "extension": ChunkFormat(extension=";name=value"),
    "extension-quoted": ChunkFormat(extension=';a="x; 5";b'),
    "capital-digits": ChunkFormat(capitals=True),
    "leading-zeros": ChunkFormat(zeros=6),
    "all-at-once": ChunkFormat(";name=value", capitals=True, zeros=6),
}
TRAILERS = ChunkFormat(trailers=(("X-Sum", "5f3a"),))
PLACE, LENGTH = 0xAB, 200


def _place(message: Message) -> int:
    """Return where a body is cut: the chunks have sizes with a letter in them, the first one of a short body at least."""
    size = len(message.body)
    return PLACE if size > PLACE + 16 else size // 2 | 0xA


@check("state.chunks-are-read-however-written", answers="HTTP-CHUNKED")
@rows(
    *[
        make_form_row(f"{name}-{form}", form, chunks, fits=name == "all-at-once")
        for name, chunks in SPELLINGS.items()
        for form in FORMS
    ]
)
def chunks_are_read_however_written(target: Target, model: Model, form: AnyForm, chunks: ChunkFormat) -> str:
    """Extensions of chunks are passed over, and their sizes may have capitals and zeros in front."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    reply = target.send_in_pieces(message, [_place(message)], chunks=chunks, at_once=True)
    return _expect_read_or_declined(target, model, form, reply, tensors)


@check("state.trailers-are-passed-over", answers=("HTTP-CHUNKED-TRAILER", "HTTP-CHUNKED"))
@rows(*[make_form_row(form, form, fits=form == "json") for form in FORMS])
def trailers_are_passed_over(target: Target, model: Model, form: AnyForm) -> None:
    """A chunked request with trailer fields is answered as it is without them."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    message = message.with_header("Trailer", ", ".join(name for name, _ in TRAILERS.trailers))
    place = _place(message)
    reply = target.send_in_pieces(message, [place], chunks=TRAILERS, at_once=True)
    if reply.is_refusal and not target.send_in_pieces(message, [place], chunks=PLAIN_CHUNKS, at_once=True).succeeded:
        raise NotApplicableError(f"chunks are declined without trailers, too: {escape_text(reply.outcome())}")
    expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED" if reply.succeeded else "HTTP-CHUNKED-TRAILER")


CHUNK_COUNT = 4000  # bytes, each a chunk of its own


@check("state.many-small-chunks-are-one-body", answers="HTTP-CHUNKED")
@rows(
    make_form_row("json", "json", 400),
    make_form_row("binary", "binary", 1000),
    make_form_row("raw", "raw", CHUNK_COUNT),
    Row("json-behind-blanks", ("json", 3, b" " * (CHUNK_COUNT // 2)), fit=JSON),
)
def many_small_chunks_are_one_body(
    target: Target, model: Model, form: AnyForm, length: int, padding: bytes = b""
) -> str:
    """A body in thousands of chunks of one byte each is decoded, or declined as its form allows."""
    message, tensors = make_form_request(model, form, length, 1)
    message = message.with_body(padding + message.body)
    reply = target.send_in_pieces(message, range(1, len(message.body)), chunks=PLAIN_CHUNKS, at_once=True)
    return _expect_read_or_declined(target, model, form, reply, tensors)
