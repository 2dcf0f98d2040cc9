"""Requests beside and behind each other, and bodies that arrive in pieces.

What is sent here would be tidied up by an HTTP library, so most of it goes through raw sockets. A server may close a
connection after any answer; then the rest of a row has nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Literal

from conformance.check import Row, check, rows
from conformance.checks._framing import WRONG_LENGTH
from conformance.checks._pieces import CUTS, WHOLE, Cut, cut_rows
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model, TensorSpec
from conformance.samples import sample_tensor
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.finding import shown
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message
from conformance.wire.tensor import Tensor

Form = Literal["json", "binary"]
BINARY = ("binary_tensor_data",)

# Enough for several reads and writes of any server.
BIG = 65_536
IN_FLIGHT = 32
# Statuses of a server that has too much to do, or takes no large bodies; it keeps requests apart nevertheless.
DECLINED = (413, 429, 503)
LENGTH_REQUIRED = 411

Make = Callable[[Model], Message]


def _tensors(model: Model, length: int, salt: int) -> list[Tensor]:
    """Return inputs of so many elements, or items for a batching model; other ones for each salt."""
    return [
        _tensor(spec, (length, *spec.shape) if model.role.batching else (length,), salt) for spec in model.role.inputs
    ]


def _tensor(spec: TensorSpec, shape: tuple[int, ...], salt: int) -> Tensor:
    if spec.datatype == "BYTES":  # the samples grow with every element, which a long tensor cannot afford
        return Tensor.of(spec.name, spec.datatype, [f"{salt}:{k}" for k in range(prod(shape))], shape)
    return sample_tensor(spec.name, spec.datatype, shape, (salt * 7) % 256)


def _request(model: Model, form: Form, length: int, salt: int) -> InferRequest:
    want: Form | None = "binary" if form == "binary" else None
    return model.request(_tensors(model, length, salt), send=form, want=want, request_id=f"request-{salt}")


def _is_own(target: Target, reply: Reply, model: Model, length: int, salt: int, requirement: str) -> None:
    """Expect that an answer carries the tensors of its request, and the id of no other one."""
    if reply.status in DECLINED:
        return
    found = (reply.answer.document or {}).get("id") if reply.succeeded else None
    if isinstance(found, str) and found.startswith("request-") and found != f"request-{salt}":
        raise Unmet(f"id request-{salt}", f"id {shown(found)}", reply, requirement=requirement)
    _is_right(target, reply, model.expected(_tensors(model, length, salt)), requirement)


def _is_right(target: Target, reply: Reply, tensors: Iterable[Tensor], requirement: str) -> None:
    """Expect the right tensors.

    Raises:
        Unmet: the answer is wrong.
        Blocked: it is wrong in the same way when the same request is sent alone and in one piece.
    """
    try:
        expect(reply, requirement).tensors(tensors).free_of(*WRONG_LENGTH)
    except Unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        refused = not (alone.succeeded or reply.succeeded)
        same = (alone.body, alone.header(INFERENCE_HEADER)) == (reply.body, reply.header(INFERENCE_HEADER))
        if alone.status is not None and alone.status == reply.status and (refused or same):
            raise Blocked("the same request is answered as wrongly when it is sent alone and in one piece") from None
        raise


# --- one answer for one request ----------------------------------------------------------------------------------------


@check("state.answers-in-turn-are-their-own", answers="HTTP-ISOLATION")
@rows(
    *[
        Row(
            f"{role}-{name}-{form}",
            (lengths, form),
            role=role,
            needs=BINARY if form == "binary" else (),
            thorough=BIG in lengths and (role, form) != ("identity_int32", "binary"),
        )
        for role in ("identity_int32", "identity_bytes")
        for name, lengths in {
            "big-small": (BIG, 1),
            "small-big": (1, BIG),
            "shrinking": (1000, 999, 100, 2, 1),
            "growing": (1, 2, 100, 999, 1000),
        }.items()
        for form in ("json", "binary")
    ]
)
def answers_in_turn_are_their_own(target: Target, model: Model, lengths: Sequence[int], form: Form) -> None:
    """An answer holds nothing of the longer or shorter one before it."""
    for salt, length in enumerate(lengths):
        _is_own(target, target.infer(_request(model, form, length, salt)), model, length, salt, "HTTP-ISOLATION")


@check("state.forms-in-turn-keep-apart", answers="HTTP-ISOLATION")
@rows(*[Row(role, role=role, needs=BINARY) for role in ("identity_int32", "identity_bytes")])
def forms_in_turn_keep_apart(target: Target, model: Model) -> None:
    """JSON and binary requests follow each other on one connection without a trace of the one before."""
    forms: tuple[Form, ...] = ("json", "binary", "json", "binary", "binary", "json")
    for salt, form in enumerate(forms):
        reply = target.infer(_request(model, form, 5 + salt, salt))
        _is_own(target, reply, model, 5 + salt, salt, "HTTP-ISOLATION")


@check("state.id-is-not-left-over", answers="HTTP-ISOLATION", role="identity_int32")
def id_is_not_left_over(target: Target, model: Model) -> None:
    """A request without an id is not answered with the id of the one before."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if (expect(reply).answered().reply.answer.document or {}).get("id") == "the-one-before":
        raise Unmet("no id, or one of its own", 'id "the-one-before"', reply)


@check("state.like-requests-have-answers-of-their-own", answers="HTTP-ISOLATION", role="identity_int32")
@rows("json", Row("binary", ("binary",), needs=BINARY))
def like_requests_have_answers_of_their_own(target: Target, model: Model, form: Form) -> None:
    """A request that differs in its elements alone from the one before, with the same id, is not answered like it."""
    first, second = (_tensors(model, 3, salt) for salt in (1, 2))
    want: Form | None = "binary" if form == "binary" else None
    before, reply = (
        target.infer(model.request(tensors, send=form, want=want, request_id="the-same")) for tensors in (first, second)
    )
    try:
        expect(reply).tensors(model.expected(second))
    except Unmet as unmet:
        expect(before, "OIP-ANSWER").tensors(model.expected(first))
        if (reply.status, reply.body) == (before.status, before.body):
            raise
        raise Blocked("the second request is answered wrongly, and unlike the first") from unmet


@check("state.answers-in-flight-are-their-own", answers="HTTP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role, needs=BINARY if form == "binary" else ())
        for role in ("identity_int32", "identity_bytes", "batching")
        for form in ("json", "binary")
    ],
    Row("multi-json", ("json",), role="multi"),
)
def answers_in_flight_are_their_own(target: Target, model: Model, form: Form) -> None:
    """Each of 32 requests in flight together gets its own id and tensors."""
    lengths = [1 + k % 5 if model.role.batching else 1 + 3 * k for k in range(IN_FLIGHT)]
    messages = [_request(model, form, length, k).message() for k, length in enumerate(lengths)]
    for k, reply in enumerate(target.send_together(messages)):
        _is_own(target, reply, model, lengths[k], k, "HTTP-ISOLATION")


# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """A body is read as a whole, wherever TCP cuts it."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message))
    _is_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> None:
    """A chunked body is decoded, wherever its chunks begin, or declined with 411."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message), chunked=True)
    if reply.status != LENGTH_REQUIRED:
        _is_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-CHUNKED")


# --- one connection ----------------------------------------------------------------------------------------------------


def _good(model: Model, form: Form, salt: int) -> Message:
    return _request(model, form, 3 + salt, salt).message()


def _unknown_model(model: Model) -> Message:
    return replace(_good(model, "json", 9), path="/v2/models/there-is-no-such-model/infer")


def _broken_json(model: Model) -> Message:
    return _good(model, "json", 9).with_body(b'{"id":"broken","inputs":[')


def _missing_bytes(model: Model) -> Message:
    message = _good(model, "binary", 9)
    return message.with_body(message.body[:-5])


def _header_past_the_end(model: Model) -> Message:
    message = _good(model, "binary", 9)
    return message.with_header(INFERENCE_HEADER, str(len(message.body) + 1))


# Refused by any server; the answer to the next request shows whether it knew where the refused one ended.
BAD: tuple[Row, ...] = (
    Row("unknown-model", (_unknown_model, "json")),
    Row("broken-json", (_broken_json, "json")),
    Row("missing-bytes", (_missing_bytes, "binary"), needs=BINARY),
    Row("inference-header-past-the-end", (_header_past_the_end, "binary"), needs=BINARY),
)


@check(
    "state.connection-is-in-step-after-an-error", answers=("HTTP-KEEPALIVE", "HTTP-ISOLATION"), role="identity_int32"
)
@rows(*BAD)
def connection_is_in_step_after_an_error(target: Target, model: Model, bad: Make, form: Form) -> None:
    """After a refused request the connection goes on in step, or is announced to close."""
    replies = target.send_on_one_connection([_good(model, form, 0), bad(model), _good(model, form, 1)])
    for reply in replies[1:2]:
        _is_refused(reply)
    for reply in replies[2:]:
        expect(reply, "OIP-ALIVE" if (reply.status or 0) >= 500 else None).answered()
        _is_own(target, reply, model, 4, 1, "HTTP-ISOLATION")


@check("state.pipelined-requests-are-answered-in-order", answers="HTTP-PIPELINE", role="identity_int32")
@rows(Row("all-good", (None, "json")), *BAD)
def pipelined_requests_are_answered_in_order(target: Target, model: Model, bad: Make | None, form: Form) -> None:
    """Requests sent without waiting are answered in their order, as long as the connection is kept."""
    middle = bad(model) if bad else _good(model, form, 1)
    replies = target.send_on_one_connection([_good(model, form, 0), middle, _good(model, form, 2)], pipelined=True)
    for place, reply in enumerate(replies):
        if reply.status is None and "connection" in (reply.exchange.failure or ""):
            return  # closed, which the requirement leaves free
        if place == 1 and bad:
            _is_refused(reply)
        else:
            _is_own(target, reply, model, 3 + place, place, "HTTP-PIPELINE")


def _is_refused(reply: Reply) -> None:
    """Expect that the bad request between good ones is refused, so that what comes next is about the connection."""
    if reply.succeeded:
        raise Blocked("a request is answered that has to be refused")
    expect(reply).refused()


TAILS: tuple[tuple[str, bytes], ...] = (
    ("end-of-a-head", b"\r\n\r\nabc"),
    ("last-chunk", b"0\r\n\r\n"),
    ("end-of-the-json", b"}]}\x00"),
    ("json", b'{"inputs":[]}'),
    ("white-space", b" \t\r\n  \n"),
    ("a-request", b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
    ("byte-order-mark", b"\xef\xbb\xbf{}"),
)


@check("state.binary-data-is-opaque", answers=("HTTP-ISOLATION", "BIN-BODY-I"), role="identity_uint8")
@rows(*[Row(name, (tail,), needs=BINARY) for name, tail in TAILS])
def binary_data_is_opaque(target: Target, model: Model, tail: bytes) -> None:
    """Binary data that look like HTTP or JSON are data, and the next request on the connection is understood."""
    tensors = [model.tensor(list(tail))]
    replies = target.send_on_one_connection([model.request(tensors).message(), _good(model, "json", 1)])
    expect(replies[0], "BIN-BODY-I").tensors(model.expected(tensors))
    for reply in replies[1:]:
        if reply.status is not None:  # a server may close the connection without a word
            _is_own(target, reply, model, 4, 1, "HTTP-ISOLATION")
