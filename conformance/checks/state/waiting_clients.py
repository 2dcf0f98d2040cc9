"""Clients that wait for 100 (Continue), that delay reading the answer, or that go away while it is sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.checks.state.request_forms import (
    FORMS,
    LENGTH_REQUIRED,
    NEEDS,
    AnyForm,
    is_closed_under_load,
    make_form_row,
    require_http_1_1,
    send_answered_request,
)
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import BINARY, HTTP
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import GoAhead, Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# --- expectations -----------------------------------------------------------------------------------------------------

# Status of a server or proxy that cannot meet an `Expect` header; the client then sends the request without it.
EXPECTATION_FAILED = 417

USUAL_VALUE, OTHER_CASE_VALUE = "100-continue", "100-Continue"


@check("state.expect-100-continue-is-answered", requirements="HTTP-EXPECT")
@rows(
    *[make_form_row(form, form, 3, USUAL_VALUE, fits=True) for form in FORMS],
    *[make_form_row(f"long-{form}", form, 1000, USUAL_VALUE) for form in FORMS],
    *[make_form_row(f"{form}-in-another-case", form, 3, OTHER_CASE_VALUE, fits=form == "json") for form in FORMS],
    make_form_row("binary-512KiB", "binary", 128 * 1024, USUAL_VALUE),
)
def expect_100_continue_is_answered(target: Target, model: Model, form: AnyForm, length: int, value: str) -> str:
    """The server gives a request the same answer with and without `Expect: 100-continue`."""
    message, expected = send_answered_request(target, model, form, length)
    reply = target.send(message.with_header("Expect", value))
    if reply.status == EXPECTATION_FAILED:
        return "expectations are not supported"
    with attribute_to("HTTP-EXPECT"):
        expect(reply).tensors(expected)
    return "answered"


@check("state.go-ahead-comes-without-the-body", requirements=("HTTP-GO-AHEAD", "HTTP-EXPECT"))
@rows(
    *[make_form_row(form, form, 3, USUAL_VALUE, None, fits=True) for form in FORMS],
    *[make_form_row(f"{form}-in-another-case", form, 3, OTHER_CASE_VALUE, None) for form in FORMS],
    make_form_row("json-in-chunks", "json", 3, USUAL_VALUE, PLAIN_CHUNKS),
)
def go_ahead_comes_without_the_body(
    target: Target, model: Model, form: AnyForm, length: int, value: str, chunks: ChunkFormat | None
) -> str:
    """The server sends 100 Continue or a final answer to a client that holds its body back."""
    message, expected = send_answered_request(target, model, form, length)
    reply = target.send_after_go_ahead(message.with_header("Expect", value), chunks=chunks)
    go_ahead = reply.exchange.go_ahead
    if go_ahead is GoAhead.WITHHELD or reply.status is None:
        require_http_1_1(target, reply)
        actual = "no answer before the body was sent" if go_ahead is GoAhead.WITHHELD else escape_text(reply.outcome())
        raise UnmetError("100 Continue or a final status before the body", actual, reply, requirement="HTTP-GO-AHEAD")
    if reply.status == EXPECTATION_FAILED:
        return "expectations are not supported"
    if chunks and reply.status == LENGTH_REQUIRED:
        return "chunks are refused"

    if chunks and not reply.succeeded:
        require_http_1_1(target, reply)

    def is_wrong_without_expect_header() -> bool:
        return chunks is not None and not is_met(
            lambda: expect(target.send_in_pieces(message, (), chunks=chunks)).tensors(expected)
        )

    with (
        block_if(is_wrong_without_expect_header, "the same request in chunks without Expect also gets a wrong answer"),
        attribute_to("HTTP-EXPECT"),
    ):
        expect(reply).tensors(expected)
    return str(go_ahead)


# --- slow readers -----------------------------------------------------------------------------------------------------

# More than both socket buffers hold before the client reads; Linux lets the send buffer grow to 4 MiB.
ANSWER_BYTES = 5_000_000
CALL_BYTES = 3_000_000  # the usual limit of gRPC is 4 MiB
TEXT_COUNT = 50


def _make_large_tensor(model: Model, size: int = ANSWER_BYTES, salt: int = 0) -> Tensor:
    """Return a tensor of `size` bytes: a few long strings, which servers process fast, or many integers."""
    if model.role.inputs[0].datatype == "BYTES":
        numbers = range(salt * TEXT_COUNT, (salt + 1) * TEXT_COUNT)
        return model.tensor([f"{k:09d} " * (size // TEXT_COUNT // 10) for k in numbers])
    return model.tensor((np.arange(size) + salt) % 251)


def _make_slow_reader_row(form: AnyForm, role: str) -> Row:
    """Return a row named for the form in which it sends its large tensor."""
    return Row(form, (form,), role=role, needs=NEEDS[form])


@check("state.answer-is-whole-for-a-slow-reader", requirements="HTTP-SLOW-READER")
@rows(
    _make_slow_reader_row("json", "identity_bytes"),
    _make_slow_reader_row("binary", "identity_bytes"),
    _make_slow_reader_row("raw", "identity_uint8"),
)
def answer_is_whole_for_a_slow_reader(target: Target, model: Model, form: AnyForm) -> None:
    """The server sends a large answer completely to a client that reads late."""
    tensor = _make_large_tensor(model)
    if form == "raw":
        message = model.raw(bytes(tensor.to_bytes()))
    else:
        message = model.request([tensor], send=form, want="binary" if form == "binary" else None).message()
    expected = model.expected([tensor])

    def is_wrong_for_prompt_reader() -> bool:
        return not is_met(lambda: expect(target.send(message)).tensors(expected))

    reply = target.send_and_read_late(message)  # no control request first: these exchanges are large in recordings
    if reply.is_refusal and reply.status not in LIMIT_STATUSES:
        raise NotApplicableError(
            f"the server refuses a request of {len(message.body)} bytes: {escape_text(reply.outcome())}"
        )
    with (
        block_if(is_wrong_for_prompt_reader, "the same answer is also wrong if the client reads at once"),
        attribute_to("HTTP-SLOW-READER"),
    ):
        expect(reply).tensors(expected)


@claim("state.large-answers-in-flight-are-their-own", requirements="OIP-ISOLATION", role="identity_bytes")
@rows(Row("json", ("json",)), Row("binary", ("binary",), needs=BINARY))
def large_answers_in_flight_are_their_own(target: AnyTarget, model: Model, form: Form) -> None:
    """Two large answers that the server sends at the same time, to clients that read late, do not mix."""
    size = CALL_BYTES if isinstance(target, GrpcTarget) else ANSWER_BYTES
    inputs = [[_make_large_tensor(model, size, number)] for number in (1, 2)]
    want: Form | None = "binary" if form == "binary" else None
    messages = [target.message(model.request(tensors, send=form, want=want)) for tensors in inputs]
    for tensors, reply in zip(inputs, target.send_together(messages, reads_late=True), strict=True):
        _expect_own_large_answer(target, reply, model.expected(tensors))


def _expect_own_large_answer(target: AnyTarget, reply: Reply, expected: Sequence[Tensor]) -> None:
    """Expect an answer to one of two large requests; the control is the same request alone, whose answer is read late.

    Raises NotApplicableError: the server refuses such large requests, or two at once.
    """

    def send_alone() -> Reply:
        return target.send_together([reply.exchange.message], reads_late=True)[0]

    if reply.is_refusal and (reply.status in LIMIT_STATUSES or send_alone().is_refusal):
        size = len(reply.exchange.message.body)
        raise NotApplicableError(
            f"the server refuses one of two requests of {size} bytes: {escape_text(reply.outcome())}"
        )
    if is_closed_under_load(target, reply):
        return
    with (
        block_if(
            lambda: not is_met(lambda: expect(send_alone()).tensors(expected)),
            "the same request alone also gets a wrong answer if the client reads late",
        ),
        attribute_to("OIP-ISOLATION"),
    ):
        expect(reply).tensors(expected)


@check(
    "state.cancelled-answer-harms-no-other",
    requirements="OIP-ISOLATION",
    role="identity_bytes",
    only=Only(HTTP, "the walk over gRPC cancels calls"),
)
@rows(Row("json", ("json",)), Row("binary", ("binary",), needs=BINARY))
def cancelled_answer_harms_no_other(target: Target, model: Model, form: Form) -> None:
    """If a client leaves while the server sends its answer, the same request of another client is answered right."""
    tensors = [_make_large_tensor(model)]
    message = model.request(tensors, send=form, want="binary" if form == "binary" else None).message()
    octets = Octets(target.render_octets(message), "reset during the answer", end=ConnectionEnd.RESET_ANSWER)

    def expect_answer() -> None:
        reply = target.send(message, fresh=True)
        if reply.is_refusal and reply.status in LIMIT_STATUSES:
            raise NotApplicableError(f"the server refuses such a large request: {escape_text(reply.outcome())}")
        expect(reply).tensors(model.expected(tensors))

    with block_if(lambda: True, "the same request also gets a wrong answer without a cancellation"):
        expect_answer()
    target.send_octets(message, octets)
    with attribute_to("OIP-ISOLATION"):
        expect_answer()
