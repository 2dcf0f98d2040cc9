"""Isolation: an answer contains nothing of an earlier or concurrent request, whatever their forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.checks.state.request_forms import (
    FORMS,
    AnyForm,
    expect_correct_outputs,
    expect_own,
    make_form_request,
    make_form_row,
    make_salted_request,
    make_salted_tensors,
    require_raw,
)
from conformance.checks.support.changed_tensors import WIDE_FLOATS
from conformance.checks.support.classes import read_classes
from conformance.checks.support.control_sides import make_large_inputs
from conformance.checks.support.deployed_models import require_distinct_answers
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.class_texts import find_highest
from conformance.expect.content_coding import compress_gzip
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, GRPC, RAW
from conformance.spec.fit import ANY, JSON, RAW_FLOATS, VARIABLE_FLOATS, Fit
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import Form, Message, RequestedOutput
from conformance.wire.tensor import Tensor

# Large enough to need several reads and writes in any server.
LARGE_COUNT = 65_536
SMALL_COUNT = 3


IN_FLIGHT = 32
OTHER_SALTS = (2, 3, 4, 5)  # salts to try until the answer differs from that for salt 1
SHRINKING_COUNTS = (1000, 999, 100, 2, 1)
BOTH_FORMS: tuple[Form, ...] = ("json", "binary")


# --- one answer for one request ----------------------------------------------------------------------------------------


@check("state.answers-in-turn-are-their-own", answers="OIP-ISOLATION")
@rows(
    *[
        Row(
            f"{role}-{name}-{form}",
            (lengths, form),
            role=role,
            needs=BINARY if form == "binary" else (),
        )
        for role in ("identity_int32", "identity_bytes")
        for name, lengths in {
            "big-small": (LARGE_COUNT, 1),
            "small-big": (1, LARGE_COUNT),
            "shrinking": SHRINKING_COUNTS,
            "growing": SHRINKING_COUNTS[::-1],
        }.items()
        for form in ("json", "binary")
    ],
    Row("shrinking-json", (SHRINKING_COUNTS, "json"), fit=JSON),
    Row("growing-json", (SHRINKING_COUNTS[::-1], "json"), fit=JSON),
    Row("shrinking-binary", (SHRINKING_COUNTS, "binary"), needs=BINARY, fit=ANY),
)
@check("grpc.answers-in-turn-are-their-own", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(
    *[
        Row(f"{role}-{name}-{form}", (lengths, form), role=role)
        for role in ("identity_int32", "identity_bytes")
        for name, lengths in {
            "big-small": (LARGE_COUNT, 1),
            "shrinking": SHRINKING_COUNTS,
            "growing": SHRINKING_COUNTS[::-1],
        }.items()
        for form in BOTH_FORMS
        if (role, name, form) != ("identity_bytes", "big-small", "json")
    ],
    Row("shrinking-json", (SHRINKING_COUNTS, "json"), fit=JSON),
    Row("shrinking-binary", (SHRINKING_COUNTS, "binary"), fit=ANY),
)
def answers_in_turn_are_their_own(target: Peer, model: Model, lengths: Sequence[int], form: Form) -> None:
    """An answer contains nothing of the longer or shorter one before it."""
    require_distinct_answers(model, *(make_salted_tensors(model, length, salt) for salt, length in enumerate(lengths)))
    for salt, length in enumerate(lengths):
        expect_own(
            target, target.infer(make_salted_request(model, form, length, salt)), model, length, salt, "OIP-ISOLATION"
        )


@check("state.large-answers-leave-nothing-behind", answers="OIP-ISOLATION")
@rows(
    Row("identity_fp32-binary", ("binary",), role="identity_fp32", needs=BINARY),
    Row("json", ("json",), fit=replace(VARIABLE_FLOATS, is_json=True)),
    Row("binary", ("binary",), needs=BINARY, fit=VARIABLE_FLOATS),
    Row("raw", ("raw",), needs=RAW, fit=RAW_FLOATS),
)
def large_answers_leave_nothing_behind(target: Target, model: Model, form: AnyForm) -> None:
    """The answer to a small request contains nothing of a large one before it."""
    large, small = make_large_inputs(model, LARGE_COUNT), _negate_floats(model.sample())
    expected = [model.expected(tensors) for tensors in (large, small)]
    messages = [_make_form_message(model, tensors, form) for tensors in (large, small)]
    if form == "raw":
        require_raw(target, model, messages[1])
    for message, right in zip(messages, expected, strict=True):
        expect_correct_outputs(target, target.send(message), right, "OIP-ISOLATION")


def _negate_floats(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with negative floats, whose bytes differ from those of positive ones."""
    return [replace(each, array=-each.array) if each.datatype in WIDE_FLOATS else each for each in tensors]


def _make_form_message(model: Model, tensors: Sequence[Tensor], form: AnyForm) -> Message:
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes()))
    want: Form | None = "binary" if form == "binary" else None
    return model.request(tensors, send=form, want=want).message()


@check("state.forms-in-turn-keep-apart", answers="OIP-ISOLATION")
@rows(
    *[Row(role, role=role, needs=BINARY) for role in ("identity_int32", "identity_bytes")],
    Row("own", needs=BINARY, fit=JSON),
)
@check("grpc.forms-in-turn-keep-apart", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(*[Row(role, role=role) for role in ("identity_int32", "identity_bytes")], Row("own", fit=JSON))
def forms_in_turn_keep_apart(target: Peer, model: Model) -> None:
    """JSON and binary requests on one connection leave no trace in each other's answers."""
    forms: tuple[Form, ...] = ("json", "binary", "json", "binary", "binary", "json")
    require_distinct_answers(model, *(make_salted_tensors(model, 5 + salt, salt) for salt in range(len(forms))))
    for salt, form in enumerate(forms):
        reply = target.infer(make_salted_request(model, form, 5 + salt, salt))
        expect_own(target, reply, model, 5 + salt, salt, "OIP-ISOLATION")


@check("state.id-is-not-left-over", answers="OIP-ISOLATION", role="identity_int32", fit=JSON)
def id_is_not_left_over(target: Target, model: Model) -> None:
    """The server does not answer a request without an id with the id of the one before."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if (expect(reply).answered().reply.answer.document or {}).get("id") == "the-one-before":
        raise UnmetError("no id, or one of its own", 'id "the-one-before"', reply)


@check("state.like-requests-have-answers-of-their-own", answers="OIP-ISOLATION")
@rows(
    Row("json", ("json",), role="identity_int32", fit=JSON),
    Row("binary", ("binary",), role="identity_int32", needs=BINARY, fit=ANY),
    Row("json-40KB", ("json", 10_000), role="identity_int32"),
    Row("binary-40KB", ("binary", 10_000), role="identity_int32", needs=BINARY),
    Row("json-between-blanks", ("json", SMALL_COUNT, b" " * 8192), fit=JSON),
)
@check("grpc.like-calls-have-answers-of-their-own", answers="OIP-ISOLATION/grpc", role="identity_int32", over=(GRPC,))
@rows(Row("json", ("json",), fit=JSON), "binary", ("json-40KB", "json", 10_000), ("binary-40KB", "binary", 10_000))
def like_requests_have_answers_of_their_own(
    target: Peer, model: Model, form: Form, length: int = SMALL_COUNT, padding: bytes = b""
) -> None:
    """The server gives requests that differ only in their elements different answers."""
    first, second = _find_similar_inputs(model, length)
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
        with block_if(lambda: form == "binary", "the request before is also answered wrongly"):
            expect(before, "OIP-ANSWER").tensors(model.expected(first))
        if (reply.status, reply.body) == (before.status, before.body):
            raise
        raise BlockedError("the second request is answered wrongly, and unlike the first", unmet) from None


def _find_similar_inputs(model: Model, length: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return two similar sets of inputs that the model answers differently.

    Raises:
        NotApplicable: the model answers all such inputs alike.
    """
    first = _make_similar_inputs(model, length, 1)
    for last in OTHER_SALTS:
        if model.can_distinguish(first, second := _make_similar_inputs(model, length, last)):
            return first, second
    raise NotApplicableError(f"{model.name} answers inputs of this kind alike")


def _make_similar_inputs(model: Model, length: int, last: int) -> list[Tensor]:
    """Return inputs of which only the last element depends on `last`; in short inputs, every element does."""
    if length <= SMALL_COUNT:
        return model.build_salted_inputs(length, last)
    return [model.tensor([k * 7919 % 65_521 for k in range(length - 1)] + [last])]


@check("state.answers-in-flight-are-their-own", answers="OIP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role, needs=BINARY if form == "binary" else ())
        for role in ("identity_int32", "identity_bytes")
        for form in ("json", "binary")
    ],
    Row("batching-json", ("json",), role="batching"),
    Row("json", ("json",), fit=JSON),
    Row("binary", ("binary",), needs=BINARY, fit=ANY),
)
@check("grpc.answers-in-flight-are-their-own", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role)
        for role in ("identity_int32", "identity_bytes", "batching", "multi")
        for form in BOTH_FORMS
    ],
    Row("json", ("json",), fit=JSON),
    Row("binary", ("binary",), fit=ANY),
)
def answers_in_flight_are_their_own(target: Peer, model: Model, form: Form) -> None:
    """The server gives each of 32 concurrent requests its own id and tensors."""
    lengths = [1 + k % 4 if model.role.batching else 1 + 3 * k for k in range(IN_FLIGHT)]
    require_distinct_answers(model, *(make_salted_tensors(model, length, k) for k, length in enumerate(lengths)))
    messages = [target.message(make_salted_request(model, form, length, k)) for k, length in enumerate(lengths)]
    for k, reply in enumerate(target.send_together(messages)):
        expect_own(target, reply, model, lengths[k], k, "OIP-ISOLATION")


# --- interleaved bodies -----------------------------------------------------------------------------------------------

IN_TURNS = 3
PIECE_BYTES = 48
_ENCODINGS: Mapping[str, ChunkFormat | None] = {"chunks": PLAIN_CHUNKS, "segments": None}


@check("state.bodies-in-turns-keep-apart", answers="OIP-ISOLATION")
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
    """The server keeps bodies apart that arrive at the same time, piece by piece, on several connections."""
    numbers = range(IN_TURNS)
    require_distinct_answers(model, *(make_salted_tensors(model, length, k) for k in numbers))
    messages = [make_form_request(model, form, length, k)[0] for k in numbers]
    places = range(PIECE_BYTES, max(len(message.body) for message in messages), PIECE_BYTES)
    if form == "raw":
        require_raw(target, model, messages[0])
    if chunks and not target.send_in_pieces(messages[0], places, chunks=chunks).succeeded:
        raise NotApplicableError("the same request alone is refused in chunks")
    for k, reply in enumerate(target.send_interleaved(messages, places, chunks=chunks)):
        expect_own(target, reply, model, length, k, "OIP-ISOLATION")
    return f"{len(places) + 1} pieces of each body"


# --- requests of every form together ----------------------------------------------------------------------------------

Tensors = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class RequestForm:
    """A form of request.

    Attributes:
        message: builds a request from inputs and a unique number.
        expect: raises `UnmetError` if the answer is not correct for the inputs.
        needs: the extensions that the request uses.
    """

    message: Callable[[Model, Tensors, int], Message]
    expect: Callable[[Reply, Model, Tensors], object]
    needs: tuple[str, ...] = ()


def _make_json_request(model: Model, tensors: Tensors, number: int) -> Message:
    return model.request(tensors, send="json", request_id=f"request-{number}").message()


def _make_gzip_request(model: Model, tensors: Tensors, number: int) -> Message:
    message = _make_json_request(model, tensors, number)
    return message.with_body(compress_gzip(message.body)).with_header("Content-Encoding", "gzip")


def _make_binary_request(model: Model, tensors: Tensors, number: int) -> Message:
    return model.request(tensors, want="binary", request_id=f"request-{number}").message()


def _make_raw_request(model: Model, tensors: Tensors, number: int) -> Message:  # noqa: ARG001 - a raw request has no id
    return model.raw(bytes(tensors[0].to_bytes()))


def _make_class_request(model: Model, tensors: Tensors, number: int) -> Message:
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=1)]
    return model.request(tensors, send="json", outputs=wanted, request_id=f"request-{number}").message()


def _expect_tensors(reply: Reply, model: Model, tensors: Tensors) -> None:
    expect(reply).tensors(model.expected(tensors))


def _expect_top_class(reply: Reply, model: Model, tensors: Tensors) -> None:
    (tensor,) = tensors
    place = find_highest(tensor.array, 1)[0]
    found = read_classes(reply, model.role.outputs[0].name)[0]
    if (found.index, float(found.value)) != (place, float(tensor.array[place])):
        raise UnmetError(f"{tensor.array[place]}:{place}", f"{found.value}:{found.index}", reply)


KINDS: Mapping[str, RequestForm] = {
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
    ("gzip",),
    ("raw", "json"),
    FORMS_WITHOUT_RAW,
    ("json", "binary", "raw", "classes"),
)


_FITS_OF_GROUPS: Mapping[Sequence[str], Fit] = {FORMS_WITHOUT_RAW: JSON, ("raw",): RAW_FLOATS}


def _list_needs(kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for kind in kinds for name in KINDS[kind].needs))


def _make_inputs(model: Model, number: int) -> Tensors:
    """Return inputs whose length and elements depend on the number of the request."""
    if model.is_own_oracle:
        return make_salted_tensors(model, 1 + number % 3, number)
    spec = model.role.inputs[0]
    return [make_sample_tensor(spec.name, spec.datatype, (3 + number % 3,), number * 7 % 256)]


@check("state.forms-in-flight-keep-apart", answers="OIP-ISOLATION", role="identity_int32")
@rows(
    *[Row("-".join(kinds), (kinds,), needs=_list_needs(kinds), fit=_FITS_OF_GROUPS.get(kinds)) for kinds in FORM_GROUPS]
)
def forms_in_flight_keep_apart(target: Target, model: Model, kinds: Sequence[str]) -> None:
    """The server gives each of 32 concurrent requests, binary and JSON, its own tensors."""
    require_distinct_answers(model, *(_make_inputs(model, k) for k in range(IN_FLIGHT)))
    for name in kinds:
        _expect_right_alone(target, model, name)
    sent = [(KINDS[kinds[k % len(kinds)]], _make_inputs(model, k)) for k in range(IN_FLIGHT)]
    messages = [kind.message(model, tensors, k) for k, (kind, tensors) in enumerate(sent)]
    for (kind, tensors), reply in zip(sent, target.send_together(messages), strict=True):
        _expect_own_answer(target, model, kind, tensors, reply)


def _expect_right_alone(target: Target, model: Model, name: str) -> None:
    """Expect the correct answer to a form of request without concurrent requests.

    Raises:
        NotApplicable: this form is optional, and the server does not support it.
        Blocked: the answer is wrong.
    """
    kind, tensors = KINDS[name], _make_inputs(model, IN_FLIGHT)
    reply = target.send(kind.message(model, tensors, IN_FLIGHT), fresh=True)
    if name == "gzip" and not reply.succeeded:
        raise NotApplicableError("compressed requests are not taken")
    if name == "raw":
        require_raw(target, model, reply.exchange.message)
    try:
        kind.expect(reply, model, tensors)
    except UnmetError as unmet:
        raise BlockedError(f"{name} alone is also answered wrongly", unmet) from None


def _expect_own_answer(target: Target, model: Model, kind: RequestForm, tensors: Tensors, reply: Reply) -> None:
    """Expect the answer to the tensors of this request; block if the request alone is answered wrong as well."""
    if reply.status in DECLINED_STATUSES:
        return
    try:
        with attribute_to("OIP-ISOLATION"):
            kind.expect(reply, model, tensors)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        if not is_met(lambda: kind.expect(alone, model, tensors)):
            raise BlockedError("the same request alone is also answered wrongly", unmet) from None
        raise
