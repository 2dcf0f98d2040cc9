"""The server reads the same body wherever TCP segments or chunks split it, and in every format of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.checks.state.request_forms import (
    FORMS,
    LENGTH_REQUIRED,
    NEEDS,
    AnyForm,
    SaltedRequest,
    expect_correct_outputs,
    make_form_request,
    make_form_row,
    require_http_1_1,
    require_raw_answered,
)
from conformance.checks.support.changed_tensors import fill_strings
from conformance.checks.support.inputs import make_large_inputs
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.refusals import expect_refusal_status, is_refused
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


# --- bodies, and the offsets at which they are split ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A request and the offsets at which its body is split.

    Attributes:
        role: the role of the model that receives the request; None if only deployed models receive it.
        find_offsets: returns the offsets at which the body of a message is split.
        form: the form of the inputs: JSON, binary data or a raw request.
        fit: the deployed models that can receive the request; None for no deployed model.
    """

    name: str
    role: str | None
    build: Callable[[Model], SaltedRequest]
    find_offsets: Callable[[Message], Sequence[int]]
    form: AnyForm = "binary"
    fit: Fit | None = None

    def make_row(self) -> Row:
        """Return the row of a check that sends this request."""
        return Row(self.name, (self,), role=self.role, needs=NEEDS[self.form], fit=self.fit)


def make_split_rows(splits: Iterable[SplitRequest]) -> list[Row]:
    """Return a row for each split request."""
    return [split.make_row() for split in splits]


def _make_json_request(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, send="json")
    return request.message(), [item.tensor for item in request.inputs]


def _make_two_byte_characters_request(model: Model) -> SaltedRequest:
    """Return a JSON request with a string that has a character of two bytes."""
    return _make_json_request(model, fill_strings(model.sample(), ["é".encode()]) if model.is_deployed else None)


def _make_binary_request(model: Model, tensors: Sequence[Tensor] | None = None) -> SaltedRequest:
    request = model.request(tensors, want=model.plain_output_form)
    return request.message(), [item.tensor for item in request.inputs]


def _make_raw_request(model: Model) -> SaltedRequest:
    return make_form_request(model, "raw", 24, 1)


_JSON_WITH_STRINGS = Fit(some_input=frozenset({"BYTES"}), is_json=True)


def _make_large_raw_request(model: Model) -> SaltedRequest:
    tensors = make_large_inputs(model)
    return model.raw(bytes(tensors[0].to_bytes())), tensors


def _find_binary_data_offset(message: Message) -> int:
    """Return the offset of the first binary tensor in the body."""
    return message.spans[0][2]


def _split_every_16_bytes(message: Message) -> Sequence[int]:
    """Return offsets that split the JSON into pieces of 16 bytes, or into longer pieces if `MAX_PIECES` limits them."""
    return range(16, message.json_length, max(16, message.json_length // MAX_PIECES))


def _split_nowhere(message: Message) -> Sequence[int]:  # noqa: ARG001
    return ()


WHOLE: tuple[SplitRequest, ...] = (
    SplitRequest("whole-json", "identity_int32", _make_json_request, _split_nowhere, form="json", fit=JSON),
    SplitRequest("whole", "cast_int32_fp32", _make_binary_request, _split_nowhere, fit=ANY),
    SplitRequest("whole-raw", "identity_uint8", _make_raw_request, _split_nowhere, form="raw"),
)
SPLITS: tuple[SplitRequest, ...] = (
    SplitRequest("inside-the-json", "identity_int32", _make_json_request, lambda m: (m.json_length // 2,), form="json"),
    SplitRequest(
        "behind-the-first-byte", None, _make_json_request, lambda m: (1, m.json_length // 2), form="json", fit=JSON
    ),
    SplitRequest("every-16-bytes-of-json", "multi", _make_json_request, _split_every_16_bytes, form="json", fit=JSON),
    SplitRequest(
        "inside-a-character",
        "identity_bytes",
        _make_two_byte_characters_request,
        lambda m: (m.body.index(b"\xc3") + 1,),
        "json",
        fit=_JSON_WITH_STRINGS,
    ),
    SplitRequest(
        "inside-the-json-before-binary-data", "cast_int32_fp32", _make_binary_request, lambda m: (m.json_length // 2,)
    ),
    SplitRequest(
        "at-the-end-of-the-json", "cast_int32_fp32", _make_binary_request, lambda m: (m.json_length,), fit=ANY
    ),
    SplitRequest(
        "around-the-end-of-the-json",
        "string_length",
        _make_binary_request,
        lambda m: (_find_binary_data_offset(m) - 1, _find_binary_data_offset(m) + 1),
    ),
    SplitRequest(
        "inside-a-length-prefix", "string_length", _make_binary_request, lambda m: (_find_binary_data_offset(m) + 2,)
    ),
    SplitRequest(
        "after-a-length-prefix", "string_length", _make_binary_request, lambda m: (_find_binary_data_offset(m) + 4,)
    ),
    SplitRequest(
        "inside-an-element", "cast_int32_fp32", _make_binary_request, lambda m: (_find_binary_data_offset(m) + 6,)
    ),
    SplitRequest(
        "between-tensors", "raw_two_inputs", _make_binary_request, lambda m: [start for _, _, start, _ in m.spans]
    ),
    SplitRequest("inside-a-raw-body", "identity_uint8", _make_raw_request, lambda _: (7,), form="raw"),
    SplitRequest(
        "every-4-bytes-of-a-raw-body",
        "identity_uint8",
        _make_raw_request,
        lambda m: range(4, len(m.body), 4),
        form="raw",
    ),
    SplitRequest(
        "binary-data-byte-by-byte",
        "string_length",
        lambda model: _make_binary_request(model, [model.tensor(["ab", "", "c"])]),
        lambda m: range(_find_binary_data_offset(m), len(m.body)),
    ),
    SplitRequest(
        "json-byte-by-byte",
        "identity_int8",
        lambda model: _make_json_request(model, [model.tensor([-7])]),
        lambda m: range(1, len(m.body)),
        form="json",
    ),
    SplitRequest(
        "inside-large-raw-floats",
        None,
        _make_large_raw_request,
        lambda m: (len(m.body) // 2,),
        form="raw",
        fit=RAW_FLOATS,
    ),
)


# The offsets count from the end of the head, which is an empty line: CR LF CR LF.
HEAD_SPLITS: tuple[SplitRequest, ...] = (
    SplitRequest("inside-the-end-of-the-head", "identity_int32", _make_json_request, lambda _: (-2,), "json"),
    SplitRequest(
        "end-of-the-head-byte-by-byte", "identity_int32", _make_json_request, lambda _: range(-12, 0), "json", fit=JSON
    ),
)


# --- bodies in pieces -------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", requirements="HTTP-SEGMENTS")
@rows(*make_split_rows((*SPLITS, *HEAD_SPLITS)))
def body_in_segments_is_one_body(target: Target, model: Model, split: SplitRequest) -> None:
    """The server reads the whole head and body of a request, wherever TCP segments split them."""
    message, tensors = split.build(model)
    if split.form == "raw":
        require_raw_answered(target, model, message)
    reply = target.send_in_pieces(message, split.find_offsets(message))
    expect_correct_outputs(target, reply, model.expected(tensors), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", requirements="HTTP-CHUNKED")
@rows(*make_split_rows((*WHOLE, *SPLITS)))
def chunked_body_is_decoded(target: Target, model: Model, split: SplitRequest) -> str:
    """The server decodes a body in chunks of any size, or refuses the request; it may refuse JSON only with 411."""
    message, tensors = split.build(model)
    reply = target.send_in_pieces(message, split.find_offsets(message), chunks=PLAIN_CHUNKS)
    return _expect_read_or_refused(target, model, split.form, reply, tensors)


def _expect_read_or_refused(
    target: Target, model: Model, form: AnyForm, reply: Reply, tensors: Sequence[Tensor]
) -> str:
    """Expect the server to read a chunked request or to refuse it; return a note that says what it did.

    The server may refuse JSON only with status 411. It may refuse binary data with any status, unless it reads the same
    body in one chunk: then it does not refuse chunks, but cannot decode them all.
    """
    was_refused = form != "json" and is_refused(target, model, reply)
    if reply.status == LENGTH_REQUIRED or (was_refused and not _is_read_in_one_chunk(target, reply)):
        expect_refusal_status(reply)
        return f"refused with {reply.status}"
    _expect_chunks_read(target, reply, model.expected(tensors), "HTTP-CHUNKED")
    return "decoded"


def _is_read_in_one_chunk(target: Target, refusal: Reply) -> bool:
    """Say whether the server answers the body of a refused request in one plain chunk; if it is busy, return False."""
    if refusal.status in LIMIT_STATUSES:
        return False
    return target.send_in_pieces(refusal.exchange.message, (), chunks=PLAIN_CHUNKS, at_once=True).succeeded


def _expect_chunks_read(target: Target, reply: Reply, expected: Sequence[Tensor], requirement: str) -> None:
    """Expect the correct answer to a chunked request, unless the server answers in HTTP/1.0."""
    try:
        expect_correct_outputs(target, reply, expected, requirement)
    except UnmetError:
        require_http_1_1(target, reply)
        raise


# --- formats of chunks ------------------------------------------------------------------------------------------------

CHUNK_FORMATS: Mapping[str, ChunkFormat] = {
    "extension": ChunkFormat(extension=";name=value"),
    "extension-quoted": ChunkFormat(extension=';a="x; 5";b'),
    "capital-digits": ChunkFormat(capitals=True),
    "leading-zeros": ChunkFormat(zeros=6),
    "all-at-once": ChunkFormat(";name=value", capitals=True, zeros=6),
    "lines-in-two-segments": ChunkFormat(splits_lines=True),
}
TRAILERS = ChunkFormat(trailers=(("X-Sum", "5f3a"),))
SPLIT_OFFSET, LENGTH = 0xAB, 200


def _choose_split_offset(message: Message) -> int:
    """Return the offset that splits a body into two chunks whose hexadecimal sizes contain a letter.

    If the body is short, only the size of the first chunk is sure to contain a letter.
    """
    size = len(message.body)
    return SPLIT_OFFSET if size > SPLIT_OFFSET + 16 else size // 2 | 0xA


@check("state.chunks-are-read-however-written", requirements="HTTP-CHUNKED")
@rows(
    *[
        make_form_row(f"{name}-{form}", form, chunks, fits=name == "all-at-once")
        for name, chunks in CHUNK_FORMATS.items()
        for form in FORMS
    ]
)
def chunks_are_read_however_written(target: Target, model: Model, form: AnyForm, chunks: ChunkFormat) -> str:
    """The server reads chunks with extensions, capital letters, leading zeros, and lines that segments split."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    offsets = [_choose_split_offset(message)]
    reply = target.send_in_pieces(message, offsets, chunks=chunks, at_once=not chunks.splits_lines)
    return _expect_read_or_refused(target, model, form, reply, tensors)


@check("state.trailers-are-passed-over", requirements=("HTTP-CHUNKED-TRAILER", "HTTP-CHUNKED"))
@rows(*[make_form_row(form, form, fits=form == "json") for form in FORMS])
def trailers_are_passed_over(target: Target, model: Model, form: AnyForm) -> None:
    """The server gives a chunked request the same answer with and without trailer fields."""
    message, tensors = make_form_request(model, form, LENGTH, 1)
    message = message.with_header("Trailer", ", ".join(name for name, _ in TRAILERS.trailers))
    place = _choose_split_offset(message)
    reply = target.send_in_pieces(message, [place], chunks=TRAILERS, at_once=True)
    if reply.is_refusal and not target.send_in_pieces(message, [place], chunks=PLAIN_CHUNKS, at_once=True).succeeded:
        raise NotApplicableError(f"the server also refuses chunks without trailers: {escape_text(reply.outcome())}")
    _expect_chunks_read(
        target, reply, model.expected(tensors), "HTTP-CHUNKED" if reply.succeeded else "HTTP-CHUNKED-TRAILER"
    )


CHUNK_COUNT = 4000  # bytes, each in a separate chunk


@check("state.many-small-chunks-are-one-body", requirements="HTTP-CHUNKED")
@rows(
    make_form_row("json", "json", 400),
    make_form_row("binary", "binary", 1000),
    make_form_row("raw", "raw", CHUNK_COUNT),
    Row("json-behind-blanks", ("json", 3, b" " * (CHUNK_COUNT // 2)), fit=JSON),
)
def many_small_chunks_are_one_body(
    target: Target, model: Model, form: AnyForm, length: int, padding: bytes = b""
) -> str:
    """The server decodes a body in thousands of chunks of one byte, or refuses the request."""
    message, tensors = make_form_request(model, form, length, 1)
    message = message.with_body(padding + message.body)
    reply = target.send_in_pieces(message, range(1, len(message.body)), chunks=PLAIN_CHUNKS, at_once=True)
    return _expect_read_or_refused(target, model, form, reply, tensors)
