"""Isolation: an answer contains nothing of an earlier or concurrent request, in JSON, binary or raw form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.checks.state.request_forms import (
    FORMS,
    AnyForm,
    expect_correct_outputs,
    expect_own_answer,
    is_closed_under_load,
    make_form_request,
    make_form_row,
    make_salted_request,
    make_salted_tensors,
    require_raw_answered,
)
from conformance.checks.support.changed_tensors import WIDE_FLOATS
from conformance.checks.support.classes import read_classes
from conformance.checks.support.inputs import make_large_inputs, require_distinct_answers
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.class_texts import find_highest
from conformance.expect.content_coding import compress_gzip
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import BINARY, CLASSES, HTTP, RAW
from conformance.spec.fit import ANY, JSON, RAW_FLOATS, VARIABLE_FLOATS, Fit
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import Form, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

# Large enough to need several reads and writes in any server.
LARGE_COUNT = 65_536
SMALL_COUNT = 3


CONCURRENT_COUNT = 32
OTHER_SALTS = (2, 3, 4, 5)  # salts to try until the answer differs from that for salt 1
SHRINKING_COUNTS = (1000, 999, 100, 2, 1)
BOTH_FORMS: tuple[Form, ...] = ("json", "binary")


# --- one answer for one request ----------------------------------------------------------------------------------------


@claim("state.answers-in-turn-are-their-own", requirements="OIP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{name}-{form}", (lengths, form), role=role, needs=BINARY if form == "binary" else ())
        for role in ("identity_int32", "identity_bytes")
        for name, lengths in {
            "big-small": (LARGE_COUNT, 1),
            "small-big": (1, LARGE_COUNT),
            "shrinking": SHRINKING_COUNTS,
            "growing": SHRINKING_COUNTS[::-1],
        }.items()
        for form in BOTH_FORMS
    ],
    Row("shrinking-json", (SHRINKING_COUNTS, "json"), fit=JSON),
    Row("growing-json", (SHRINKING_COUNTS[::-1], "json"), fit=JSON),
    Row("shrinking-binary", (SHRINKING_COUNTS, "binary"), needs=BINARY, fit=ANY),
)
def answers_in_turn_are_their_own(target: AnyTarget, model: Model, lengths: Sequence[int], form: Form) -> None:
    """An answer contains nothing of the longer or shorter answer before it."""
    require_distinct_answers(model, *(make_salted_tensors(model, length, salt) for salt, length in enumerate(lengths)))
    for salt, length in enumerate(lengths):
        expect_own_answer(
            target, target.infer(make_salted_request(model, form, length, salt)), model, length, salt, "OIP-ISOLATION"
        )


@claim("state.large-answers-leave-nothing-behind", requirements="OIP-ISOLATION")
@rows(
    Row("identity_fp32-binary", ("binary",), role="identity_fp32", needs=BINARY),
    Row("json", ("json",), fit=replace(VARIABLE_FLOATS, is_json=True)),
    Row("binary", ("binary",), needs=BINARY, fit=VARIABLE_FLOATS),
    Row("raw", ("raw",), needs=RAW, fit=RAW_FLOATS),
)
def large_answers_leave_nothing_behind(target: AnyTarget, model: Model, form: AnyForm) -> None:
    """The answer to a small request contains nothing of the large request before it."""
    large, small = make_large_inputs(model, LARGE_COUNT), _negate_floats(model.sample())
    expected = [model.expected(tensors) for tensors in (large, small)]
    messages = [_build_request_in_form(model, tensors, form) for tensors in (large, small)]
    if form == "raw":
        require_raw_answered(target, model, model.raw(bytes(small[0].to_bytes())))
    for message, right in zip(messages, expected, strict=True):
        expect_correct_outputs(target, target.infer(message), right, "OIP-ISOLATION")


def _negate_floats(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with the sign of every FP32 and FP64 element changed, which changes the bytes."""
    return [replace(each, array=-each.array) if each.datatype in WIDE_FLOATS else each for each in tensors]


def _build_request_in_form(model: Model, tensors: Sequence[Tensor], form: AnyForm) -> InferRequest | Message:
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes()))
    want: Form | None = "binary" if form == "binary" else None
    return model.request(tensors, send=form, want=want)


@claim("state.forms-in-turn-keep-apart", requirements="OIP-ISOLATION")
@rows(
    *[Row(role, role=role, needs=BINARY) for role in ("identity_int32", "identity_bytes")],
    Row("deployed", needs=BINARY, fit=JSON),
)
def forms_in_turn_keep_apart(target: AnyTarget, model: Model) -> None:
    """JSON and binary requests on one connection leave no trace in each other's answers."""
    forms: tuple[Form, ...] = ("json", "binary", "json", "binary", "binary", "json")
    require_distinct_answers(model, *(make_salted_tensors(model, 5 + salt, salt) for salt in range(len(forms))))
    for salt, form in enumerate(forms):
        reply = target.infer(make_salted_request(model, form, 5 + salt, salt))
        expect_own_answer(target, reply, model, 5 + salt, salt, "OIP-ISOLATION")


@claim("state.id-is-not-left-over", requirements="OIP-ISOLATION", role="identity_int32", fit=JSON)
def id_is_not_left_over(target: AnyTarget, model: Model) -> None:
    """The server does not put the id of an earlier request into the answer to a request without an id."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if (expect(reply).answered().reply.answer.document or {}).get("id") == "the-one-before":
        raise UnmetError("no id, or an id that the server chose", 'id "the-one-before"', reply)


@claim("state.like-requests-have-answers-of-their-own", requirements="OIP-ISOLATION")
@rows(
    Row("json", ("json",), role="identity_int32", fit=JSON),
    Row("binary", ("binary",), role="identity_int32", needs=BINARY, fit=ANY),
    Row("json-40KB", ("json", 10_000), role="identity_int32"),
    Row("binary-40KB", ("binary", 10_000), role="identity_int32", needs=BINARY),
    Row(
        "json-between-blanks",
        ("json", SMALL_COUNT, b" " * 8192),
        fit=JSON,
        only=Only(HTTP, "blanks around a document are a spelling of JSON"),
    ),
)
def like_requests_have_answers_of_their_own(
    target: AnyTarget, model: Model, form: Form, length: int = SMALL_COUNT, padding: bytes = b""
) -> None:
    """The server gives requests that differ only in their elements different answers."""
    first, second = _find_distinguishable_inputs(model, length)
    want: Form | None = "binary" if form == "binary" else None
    messages = [
        target.message(model.request(tensors, send=form, want=want, request_id="the-same"))
        for tensors in (first, second)
    ]
    if padding:
        longest = max(len(message.body) for message in messages)
        messages = [message.with_body(padding + message.body.ljust(longest) + padding) for message in messages]
    before, reply = (target.send(message) for message in messages)
    try:
        expect(reply).tensors(model.expected(second))
    except UnmetError as unmet:
        with block_if(lambda: form == "binary", "the answer to the first request is also wrong"):
            expect(before, "OIP-ANSWER").tensors(model.expected(first))
        if (reply.status, reply.body) == (before.status, before.body):
            raise
        raise BlockedError(
            "the answer to the second request is wrong, but differs from the first answer", unmet
        ) from None


def _find_distinguishable_inputs(model: Model, length: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return two sets of inputs from `_make_similar_inputs` that the model answers differently.

    Raises NotApplicableError: the model gives the same answer to all such inputs.
    """
    first = _make_similar_inputs(model, length, 1)
    for last_element in OTHER_SALTS:
        if model.can_distinguish(first, second := _make_similar_inputs(model, length, last_element)):
            return first, second
    raise NotApplicableError(f"{model.name} gives the same answer to all inputs of this length")


def _make_similar_inputs(model: Model, length: int, last_element: int) -> list[Tensor]:
    """Return inputs that differ from inputs with another `last_element`.

    Up to `SMALL_COUNT` elements, all elements are derived from `last_element`. In longer inputs, only the last element
    differs.
    """
    if length <= SMALL_COUNT:
        return model.build_salted_inputs(length, last_element)
    return [model.tensor([k * 7919 % 65_521 for k in range(length - 1)] + [last_element])]


@claim("state.answers-in-flight-are-their-own", requirements="OIP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role, needs=BINARY if form == "binary" else ())
        for role in ("identity_int32", "identity_bytes", "batching", "multi")
        for form in BOTH_FORMS
    ],
    Row("batching-of-any-length-json", ("json",), role="raw_batching_variable"),
    Row("batching-of-any-length-binary", ("binary",), role="raw_batching_variable", needs=BINARY),
    Row("json", ("json",), fit=JSON),
    Row("binary", ("binary",), needs=BINARY, fit=ANY),
)
def answers_in_flight_are_their_own(target: AnyTarget, model: Model, form: Form) -> None:
    """The server answers each of 32 concurrent requests with the id and the tensors of that request."""
    lengths = [1 + k % 4 if model.role.batching else 1 + 3 * k for k in range(CONCURRENT_COUNT)]
    require_distinct_answers(model, *(make_salted_tensors(model, length, k) for k, length in enumerate(lengths)))
    messages = [target.message(make_salted_request(model, form, length, k)) for k, length in enumerate(lengths)]
    for k, reply in enumerate(target.send_together(messages)):
        if not is_closed_under_load(target, reply):
            expect_own_answer(target, reply, model, lengths[k], k, "OIP-ISOLATION")


# --- interleaved bodies -----------------------------------------------------------------------------------------------

CONNECTION_COUNT = 3
PIECE_BYTES = 48
_ENCODINGS: Mapping[str, ChunkFormat | None] = {"chunks": PLAIN_CHUNKS, "segments": None}


@check(
    "state.bodies-in-turns-keep-apart",
    requirements="OIP-ISOLATION",
    only=Only(HTTP, "segments and chunks are pieces of a body of HTTP"),
)
@rows(
    *[
        make_form_row(f"{form}-{name}-{length}", form, chunks, length, fits=length == SMALL_COUNT)
        for form in FORMS
        for name, chunks in _ENCODINGS.items()
        for length in (SMALL_COUNT, 40)
    ]
)
def bodies_in_turns_keep_apart(
    target: Target, model: Model, form: AnyForm, chunks: ChunkFormat | None, length: int
) -> str:
    """The server does not mix up bodies whose pieces arrive alternately on several connections."""
    numbers = range(CONNECTION_COUNT)
    require_distinct_answers(model, *(make_salted_tensors(model, length, k) for k in numbers))
    messages = [make_form_request(model, form, length, k)[0] for k in numbers]
    offsets = range(PIECE_BYTES, max(len(message.body) for message in messages), PIECE_BYTES)
    if form == "raw":
        require_raw_answered(target, model, messages[0])
    if chunks:
        alone = target.send_in_pieces(messages[0], offsets, chunks=chunks)
        expected = model.expected(make_salted_tensors(model, length, 0))
        if not is_met(lambda: expect(alone).tensors(expected)):
            raise NotApplicableError("the server does not read the same request in chunks when it is sent alone")
    for k, reply in enumerate(target.send_interleaved(messages, offsets, chunks=chunks)):
        expect_own_answer(target, reply, model, length, k, "OIP-ISOLATION")
    return f"{len(offsets) + 1} pieces of each body"


# --- requests of every form together ----------------------------------------------------------------------------------

Tensors = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """How to build a request in one form, and how to judge its answer.

    Attributes:
        request: builds the request from a model, inputs and a unique number.
        expect: raises `UnmetError` if the answer is not correct for the inputs.
    """

    request: Callable[[Model, Tensors, int], InferRequest | Message]
    expect: Callable[[Reply, Model, Tensors], object]
    needs: tuple[str, ...] = ()


def _make_json_request(model: Model, tensors: Tensors, number: int) -> InferRequest:
    return model.request(tensors, send="json", request_id=f"request-{number}")


def _make_gzip_request(model: Model, tensors: Tensors, number: int) -> Message:
    message = _make_json_request(model, tensors, number).message()
    return message.with_body(compress_gzip(message.body)).with_header("Content-Encoding", "gzip")


def _make_binary_request(model: Model, tensors: Tensors, number: int) -> InferRequest:
    return model.request(tensors, want="binary", request_id=f"request-{number}")


def _make_raw_request(model: Model, tensors: Tensors, number: int) -> Message:  # noqa: ARG001 - a raw request has no id
    return model.raw(bytes(tensors[0].to_bytes()))


def _make_class_request(model: Model, tensors: Tensors, number: int) -> InferRequest:
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=1)]
    return model.request(tensors, send="json", outputs=wanted, request_id=f"request-{number}")


def _expect_tensors(reply: Reply, model: Model, tensors: Tensors) -> None:
    expect(reply).tensors(model.expected(tensors))


def _expect_top_class(reply: Reply, model: Model, tensors: Tensors) -> None:
    (tensor,) = tensors
    place = find_highest(tensor.array, 1)[0]
    found = read_classes(reply, model.role.outputs[0].name)[0]
    if (found.index, float(found.value)) != (place, float(tensor.array[place])):
        raise UnmetError(f"{tensor.array[place]}:{place}", f"{found.value}:{found.index}", reply)


REQUEST_FORMS: Mapping[str, RequestForm] = {
    "json": RequestForm(_make_json_request, _expect_tensors),
    "gzip": RequestForm(_make_gzip_request, _expect_tensors),
    "binary": RequestForm(_make_binary_request, _expect_tensors, BINARY),
    "raw": RequestForm(_make_raw_request, _expect_tensors, RAW),
    "classes": RequestForm(_make_class_request, _expect_top_class, CLASSES),
}
FORMS_WITHOUT_RAW = ("json", "gzip", "binary")
FORM_GROUPS = (
    ("raw",),
    ("classes",),
    ("json", "binary", "classes"),
    ("gzip",),
    ("raw", "json"),
    FORMS_WITHOUT_RAW,
    ("json", "binary", "raw", "classes"),
)


_FITS_OF_GROUPS: Mapping[Sequence[str], Fit] = {FORMS_WITHOUT_RAW: JSON, ("raw",): RAW_FLOATS}


def _list_needed_extensions(form_names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for request_form in form_names for name in REQUEST_FORMS[request_form].needs))


def _make_numbered_inputs(model: Model, number: int) -> Tensors:
    """Return inputs whose length and elements depend on the number of the request."""
    if model.is_deployed:
        return make_salted_tensors(model, 1 + number % 3, number)
    spec = model.role.inputs[0]
    return [make_sample_tensor(spec.name, spec.datatype, (3 + number % 3,), number * 7 % 256)]


@claim("state.forms-in-flight-keep-apart", requirements="OIP-ISOLATION", role="identity_int32")
@rows(
    *[
        Row(
            "-".join(form_names),
            (form_names,),
            needs=_list_needed_extensions(form_names),
            fit=_FITS_OF_GROUPS.get(form_names),
            only=Only(HTTP, "content codings are headers of HTTP") if "gzip" in form_names else None,
        )
        for form_names in FORM_GROUPS
    ]
)
def forms_in_flight_keep_apart(target: AnyTarget, model: Model, form_names: Sequence[str]) -> None:
    """The server answers each of 32 concurrent requests in different forms with the tensors of that request."""
    require_distinct_answers(model, *(_make_numbered_inputs(model, k) for k in range(CONCURRENT_COUNT)))
    for name in form_names:
        _expect_right_when_alone(target, model, name)
    sent = [
        (REQUEST_FORMS[form_names[k % len(form_names)]], _make_numbered_inputs(model, k))
        for k in range(CONCURRENT_COUNT)
    ]
    requests = [request_form.request(model, tensors, k) for k, (request_form, tensors) in enumerate(sent)]
    messages = [one if isinstance(one, Message) else target.message(one) for one in requests]
    for (request_form, tensors), reply in zip(sent, target.send_together(messages), strict=True):
        _expect_own_answer(target, model, request_form, tensors, reply)


def _expect_right_when_alone(target: AnyTarget, model: Model, name: str) -> None:
    """Send one request in this form, without concurrent requests, and require the correct answer.

    Raises:
        NotApplicableError: the server refuses the gzip request, or a deployed model may refuse the raw request.
        BlockedError: the answer is wrong.
    """
    request_form, tensors = REQUEST_FORMS[name], _make_numbered_inputs(model, CONCURRENT_COUNT)
    request = request_form.request(model, tensors, CONCURRENT_COUNT)
    reply = target.send(request if isinstance(request, Message) else target.message(request), fresh=True)
    if name == "gzip" and not reply.succeeded:
        raise NotApplicableError("the server accepts no compressed request")
    if name == "raw":
        require_raw_answered(target, model, reply.exchange.message)
    try:
        request_form.expect(reply, model, tensors)
    except UnmetError as unmet:
        raise BlockedError(f"one {name} request alone also gets a wrong answer", unmet) from None


def _expect_own_answer(
    target: AnyTarget, model: Model, request_form: RequestForm, tensors: Tensors, reply: Reply
) -> None:
    """Expect the correct answer to these tensors, unless the server refused the request because of load or size.

    An ended connection is a refusal as well: see `is_closed_under_load`.

    Raises BlockedError: the same request alone also gets a wrong answer.
    """
    if reply.status in LIMIT_STATUSES or is_closed_under_load(target, reply):
        return
    try:
        with attribute_to("OIP-ISOLATION"):
            request_form.expect(reply, model, tensors)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        if not is_met(lambda: request_form.expect(alone, model, tensors)):
            raise BlockedError("the same request alone also gets a wrong answer", unmet) from None
        raise
