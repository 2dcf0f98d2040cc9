"""A body is read the same wherever TCP segments or chunks split it, and however the chunks are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.checks.state.request_forms import (
    FORMS,
    LENGTH_REQUIRED,
    NEEDS,
    AnyForm,
    SaltedRequest,
    expect_new_http,
    expect_right,
    make_form_request,
    make_form_row,
    require_raw,
)
from conformance.checks.support.changed_tensors import fill_texts
from conformance.checks.support.control_sides import make_large_inputs
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, JSON, RAW_FLOATS, Fit
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

MAX_PIECES = 64  # after each of which there is a pause


# --- bodies, and the places at which they are cut ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """A request and the offsets at which its body is split.

    Attributes:
        name: the row's id.
        role: the role of the model that it goes to; None if it only goes to deployed models.
        sent: returns the request and its inputs.
        places: returns the offsets in the body.
        form: the form of the inputs.
        fit: the deployed models that it can be sent to.
    """

    name: str
    role: str | None
    sent: Callable[[Model], SaltedRequest]
    places: Callable[[Message], Sequence[int]]
    form: AnyForm = "binary"
    fit: Fit | None = None

    def row(self) -> Row:
        """Return the row of a check that sends it."""
        return Row(self.name, (self,), role=self.role, needs=NEEDS[self.form], fit=self.fit)


def make_cut_rows(cuts: Iterable[Cut]) -> list[Row]:
    """Return a row for each cut."""
    return [cut.row() for cut in cuts]


def _as_json(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, send="json")
    return request.message(), [item.tensor for item in request.inputs]


def _as_accents(model: Model) -> SaltedRequest:
    """Return a request whose strings have a character of two bytes."""
    return _as_json(model, fill_texts(model.sample(), ["é".encode()]) if model.is_own_oracle else None)


def _as_binary(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, want=model.plain_want)
    return request.message(), [item.tensor for item in request.inputs]


def _as_raw(model: Model) -> SaltedRequest:
    return make_form_request(model, "raw", 24, 1)


_TEXTS = Fit(some_input=frozenset({"BYTES"}), is_json=True)


def _as_large_raw(model: Model) -> SaltedRequest:
    tensors = make_large_inputs(model)
    return model.raw(bytes(tensors[0].to_bytes())), tensors


def _first(message: Message) -> int:
    """Return the offset of the first binary tensor."""
    return message.spans[0][2]


def _every_16_bytes(message: Message) -> Sequence[int]:
    """Return offsets of pieces of 16 bytes; of longer pieces if there were more than `MAX_PIECES`."""
    return range(16, message.json_length, max(16, message.json_length // MAX_PIECES))


def _nowhere(message: Message) -> Sequence[int]:  # noqa: ARG001
    return ()


WHOLE: tuple[Cut, ...] = (
    Cut("whole-json", "identity_int32", _as_json, _nowhere, form="json", fit=JSON),
    Cut("whole", "cast_int32_fp32", _as_binary, _nowhere, fit=ANY),
    Cut("whole-raw", "identity_uint8", _as_raw, _nowhere, form="raw"),
)
CUTS: tuple[Cut, ...] = (
    Cut("inside-the-json", "identity_int32", _as_json, lambda m: (m.json_length // 2,), form="json"),
    Cut("behind-the-first-byte", None, _as_json, lambda m: (1, m.json_length // 2), form="json", fit=JSON),
    Cut("every-16-bytes-of-json", "multi", _as_json, _every_16_bytes, form="json", fit=JSON),
    Cut(
        "inside-a-character", "identity_bytes", _as_accents, lambda m: (m.body.index(b"\xc3") + 1,), "json", fit=_TEXTS
    ),
    Cut("inside-the-json-before-binary-data", "cast_int32_fp32", _as_binary, lambda m: (m.json_length // 2,)),
    Cut("at-the-end-of-the-json", "cast_int32_fp32", _as_binary, lambda m: (m.json_length,), fit=ANY),
    Cut("around-the-end-of-the-json", "string_length", _as_binary, lambda m: (_first(m) - 1, _first(m) + 1)),
    Cut("inside-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 2,)),
    Cut("after-a-length-prefix", "string_length", _as_binary, lambda m: (_first(m) + 4,)),
    Cut("inside-an-element", "cast_int32_fp32", _as_binary, lambda m: (_first(m) + 6,)),
    Cut("between-tensors", "raw_two_inputs", _as_binary, lambda m: [start for _, _, start, _ in m.spans]),
    Cut("inside-a-raw-body", "identity_uint8", _as_raw, lambda _: (7,), form="raw"),
    Cut("every-4-bytes-of-a-raw-body", "identity_uint8", _as_raw, lambda m: range(4, len(m.body), 4), form="raw"),
    Cut(
        "binary-data-byte-by-byte",
        "string_length",
        lambda model: _as_binary(model, [model.tensor(["ab", "", "c"])]),
        lambda m: range(_first(m), len(m.body)),
    ),
    Cut(
        "json-byte-by-byte",
        "identity_int8",
        lambda model: _as_json(model, [model.tensor([-7])]),
        lambda m: range(1, len(m.body)),
        form="json",
    ),
    Cut("inside-large-raw-floats", None, _as_large_raw, lambda m: (len(m.body) // 2,), form="raw", fit=RAW_FLOATS),
)


# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*make_cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """The server reads a whole body, wherever TCP splits it."""
    message, tensors = cut.sent(model)
    if cut.form == "raw":
        require_raw(target, model, message)
    reply = target.send_in_pieces(message, cut.places(message))
    expect_right(target, reply, model.expected(tensors), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*make_cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> str:
    """The server decodes a chunked body, however it is split, or declines it (JSON: only with 411)."""
    message, tensors = cut.sent(model)
    reply = target.send_in_pieces(message, cut.places(message), chunks=PLAIN_CHUNKS)
    return _expect_read_or_declined(target, model, cut.form, reply, tensors)


def _expect_read_or_declined(
    target: Target, model: Model, form: AnyForm, reply: Reply, tensors: Sequence[Tensor]
) -> str:
    """Expect that a chunked request is read or refused: JSON with status 411, binary data with any status."""
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
    """Return an offset for chunks with a letter in their hexadecimal size, at least the first of a short body."""
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
    """The server skips chunk extensions and reads sizes with capitals and leading zeros."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    reply = target.send_in_pieces(message, [_place(message)], chunks=chunks, at_once=True)
    return _expect_read_or_declined(target, model, form, reply, tensors)


@check("state.trailers-are-passed-over", answers=("HTTP-CHUNKED-TRAILER", "HTTP-CHUNKED"))
@rows(*[make_form_row(form, form, fits=form == "json") for form in FORMS])
def trailers_are_passed_over(target: Target, model: Model, form: AnyForm) -> None:
    """The server answers a chunked request with trailer fields as it answers one without."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    message = message.with_header("Trailer", ", ".join(name for name, _ in TRAILERS.trailers))
    place = _place(message)
    reply = target.send_in_pieces(message, [place], chunks=TRAILERS, at_once=True)
    if reply.is_refusal and not target.send_in_pieces(message, [place], chunks=PLAIN_CHUNKS, at_once=True).succeeded:
        raise NotApplicableError(f"chunks are declined without trailers, too: {escape_text(reply.outcome())}")
    expect_right(target, reply, model.expected(tensors), "HTTP-CHUNKED" if reply.succeeded else "HTTP-CHUNKED-TRAILER")


CHUNK_COUNT = 4000  # bytes, each in a separate chunk


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
    """The server decodes a body in thousands of chunks of one byte, or declines it."""
    message, tensors = make_form_request(model, form, length, 1)
    message = message.with_body(padding + message.body)
    reply = target.send_in_pieces(message, range(1, len(message.body)), chunks=PLAIN_CHUNKS, at_once=True)
    return _expect_read_or_declined(target, model, form, reply, tensors)
