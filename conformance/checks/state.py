"""Requests beside and behind each other, and bodies that arrive in pieces.

What is sent here would be tidied up by an HTTP library, so most of it goes through raw sockets. A server may close a
connection after any answer; then the rest of a row has nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from conformance.check import Row, check, rows
from conformance.checks._framing import WRONG_LENGTH
from conformance.checks._own import Form, is_own, is_right, salted_request, salted_tensors
from conformance.checks._pieces import CUTS, WHOLE, Cut, cut_rows
from conformance.expect import expect, still_answers
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.target.coding import gzipped, uncoded
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.tensor import Tensor

BINARY = ("binary_tensor_data",)

# Enough for several reads and writes of any server.
BIG = 65_536
IN_FLIGHT = 32
LENGTH_REQUIRED = 411

Make = Callable[[Model], Message]


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
        is_own(target, target.infer(salted_request(model, form, length, salt)), model, length, salt, "HTTP-ISOLATION")


@check("state.forms-in-turn-keep-apart", answers="HTTP-ISOLATION")
@rows(*[Row(role, role=role, needs=BINARY) for role in ("identity_int32", "identity_bytes")])
def forms_in_turn_keep_apart(target: Target, model: Model) -> None:
    """JSON and binary requests follow each other on one connection without a trace of the one before."""
    forms: tuple[Form, ...] = ("json", "binary", "json", "binary", "binary", "json")
    for salt, form in enumerate(forms):
        reply = target.infer(salted_request(model, form, 5 + salt, salt))
        is_own(target, reply, model, 5 + salt, salt, "HTTP-ISOLATION")


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
    first, second = (salted_tensors(model, 3, salt) for salt in (1, 2))
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
    messages = [salted_request(model, form, length, k).message() for k, length in enumerate(lengths)]
    for k, reply in enumerate(target.send_together(messages)):
        is_own(target, reply, model, lengths[k], k, "HTTP-ISOLATION")


# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """A body is read as a whole, wherever TCP cuts it."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message))
    is_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> None:
    """A chunked body is decoded, wherever its chunks begin, or declined with 411."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message), chunked=True)
    if reply.status != LENGTH_REQUIRED:
        is_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-CHUNKED")


# --- compressed bodies -------------------------------------------------------------------------------------------------


CodedForm = Form | Literal["raw"]

CODED: tuple[Row, ...] = (
    Row("json", ("json", 3), role="identity_int32"),
    Row("long-json", ("json", 1000), role="identity_int32"),
    Row("binary", ("binary", 3), role="identity_int32", needs=BINARY),
    Row("long-binary", ("binary", 1000), role="identity_int32", needs=BINARY),
    Row("raw", ("raw", 200), role="identity_uint8", needs=("raw",)),
)


def _uncompressed(target: Target, model: Model, form: CodedForm, length: int) -> tuple[Message, Sequence[Tensor]]:
    """Return a request and its right outputs, which the server was seen to answer with."""
    sent = salted_tensors(model, length, 1)
    if form == "raw":
        message = model.raw(bytes(sent[0].to_bytes()))
    else:
        message = salted_request(model, form, length, 1).message()
    expected = model.expected(sent)
    try:
        expect(target.send(message)).tensors(expected).free_of(*WRONG_LENGTH)
    except Unmet:
        raise Blocked("the same request without compression is answered wrongly") from None
    return message, expected


@check("state.gzip-answer-is-the-answer", answers="HTTP-CODING-O")
@rows(*CODED)
def gzip_answer_is_the_answer(target: Target, model: Model, form: CodedForm, length: int) -> str:
    """An answer that is compressed because the client accepts that holds the right tensors."""
    message, expected = _uncompressed(target, model, form, length)
    reply = target.send(message.with_header("Accept-Encoding", "gzip"))
    try:
        expect(reply if reply.status is None else uncoded(reply)).tensors(expected).free_of(*WRONG_LENGTH)
    except Unmet as unmet:
        unmet.requirement = "HTTP-CODING-O"  # the same without compression was right, whatever seems wrong now
        raise
    return reply.header("Content-Encoding") or "not compressed"


@check("state.gzip-request-is-decoded-or-refused", answers="HTTP-CODING-I")
@rows(*CODED)
def gzip_request_is_decoded_or_refused(target: Target, model: Model, form: CodedForm, length: int) -> str:
    """A compressed request is decoded, or refused; its coded bytes are not taken for tensors."""
    message, expected = _uncompressed(target, model, form, length)
    reply = target.send(message.with_body(gzipped(message.body)).with_header("Content-Encoding", "gzip"), fresh=True)
    if reply.status is not None and reply.status >= 400:
        still_answers(target, model)
        return f"refused with {reply.status}"
    expect(reply).tensors(expected)
    return "decoded"


# --- one connection ----------------------------------------------------------------------------------------------------


def _good(model: Model, form: Form, salt: int) -> Message:
    return salted_request(model, form, 3 + salt, salt).message()


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
        is_own(target, reply, model, 4, 1, "HTTP-ISOLATION")


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
            is_own(target, reply, model, 3 + place, place, "HTTP-PIPELINE")


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
            is_own(target, reply, model, 4, 1, "HTTP-ISOLATION")
