"""Answers: the inference header and the content type."""

from __future__ import annotations

from conformance.checks.headers.requested_answers import (
    BINARY_ANSWERS,
    JSON_ANSWERS,
    find_media_type,
    has_binary_data,
)
from conformance.checks.support.deployed_models import NO_BINARY_REQUEST, refuses_binary
from conformance.checks.support.framing import WRONG_LENGTH, is_cut
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM


def _content_type(reply: Reply) -> str:
    given = reply.header("Content-Type")
    return "no Content-Type" if given is None else f"Content-Type: {escape_text(given, 60)}"


@check("headers.binary-answer-has-inference-header", answers="BIN-HEADER-O")
@rows(*BINARY_ANSWERS)
def binary_answer_has_inference_header(target: Target, model: Model, ask: RequestBuilder) -> None:
    """An answer with binary data carries the inference header."""
    reply = target.infer(ask(model))
    if not is_cut(reply):
        expect(reply).free_of("inference-header-missing")


@check("headers.answer-header-counts-the-bytes-of-the-json", answers="BIN-HEADER-IN-BYTES")
@rows(*BINARY_ANSWERS)
def answer_header_counts_the_bytes_of_the_json(target: Target, model: Model, ask: RequestBuilder) -> None:
    """The inference header of an answer counts the bytes of its JSON, not the characters."""
    reply = target.infer(ask(model))
    if not is_cut(reply) and expect(reply).answered().reply.answer.document is not None:
        expect(reply).free_of(*WRONG_LENGTH)


@check("headers.json-answer-has-no-inference-header", answers="BIN-HEADER-ON-JSON-O")
@rows(*JSON_ANSWERS)
def json_answer_has_no_inference_header(target: Target, model: Model, ask: RequestBuilder) -> None:
    """An answer without binary data has no inference header, or one that equals the length of its body."""
    reply = target.infer(ask(model))
    with block_if(lambda: refuses_binary(target, model), NO_BINARY_REQUEST):
        expectation = expect(reply).answered()
    header = reply.header(INFERENCE_HEADER)
    if header in (None, str(len(reply.body))) or has_binary_data(reply):
        return
    raise expectation.unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", escape_text(str(header), 60))


@check("headers.binary-answer-is-an-octet-stream", answers="BIN-CONTENT-TYPE-O")
@rows(*BINARY_ANSWERS)
def binary_answer_is_an_octet_stream(target: Target, model: Model, ask: RequestBuilder) -> None:
    """An answer with binary data has Content-Type application/octet-stream."""
    reply = target.infer(ask(model))
    expectation = expect(reply) if is_cut(reply) else expect(reply).answered()
    if has_binary_data(reply) and find_media_type(reply) != OCTET_STREAM:
        raise expectation.unmet(f"Content-Type: {OCTET_STREAM}", _content_type(reply))


@check("headers.json-answer-is-application-json", answers="BIN-CONTENT-TYPE-OF-JSON")
@rows(*JSON_ANSWERS)
def json_answer_is_application_json(target: Target, model: Model, ask: RequestBuilder) -> None:
    """An answer without binary data has Content-Type application/json."""
    reply = target.infer(ask(model))
    with block_if(lambda: refuses_binary(target, model), NO_BINARY_REQUEST):
        expectation = expect(reply).answered()
    if not has_binary_data(reply) and find_media_type(reply) != JSON:
        raise expectation.unmet(f"Content-Type: {JSON}", _content_type(reply))


@check("headers.empty-outputs-have-a-right-header-or-none", answers=("BIN-HEADER-ON-EMPTY", "BIN-HEADER-IN-BYTES"))
@rows(Row("no-elements", ((0,),), role="identity_int32"), Row("two-empty-outputs", ((2,),), role="emit"))
def empty_outputs_have_a_right_header_or_none(target: Target, model: Model, shape: tuple[int, ...]) -> str:
    """Binary outputs that are all empty come with an inference header of the right length, or without one."""
    tensor = model.tensor([0] * shape[0], shape)
    reply = target.infer(model.request([tensor], send="json", want="binary"))
    if not reply.succeeded:
        return f"not answered: {reply.outcome()}"
    expect(reply, "BIN-HEADER-IN-BYTES").free_of(*WRONG_LENGTH)
    header = "no inference header" if reply.header(INFERENCE_HEADER) is None else "inference header"
    return f"{header}, {find_media_type(reply) or 'no Content-Type'}"
