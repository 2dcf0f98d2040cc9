"""Answers: the length of the whole body, in Content-Length."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.headers.asked_answers import (
    BINARY_ANSWERS,
    _has_binary_data,
    _is_chunked,
    _is_cut,
)
from conformance.expect.expectation import expect
from conformance.roles.model import Ask, Model
from conformance.terms.check import check, rows
from conformance.terms.text import safe
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER
from conformance.wire.tensor import Tensor


@check("headers.content-length-is-that-of-the-whole-body", answers="BIN-CONTENT-LENGTH")
@rows(*BINARY_ANSWERS)
def content_length_is_that_of_the_whole_body(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data that is not chunked gives the length of JSON and binary data in Content-Length."""
    request = ask(model)
    reply = target.infer(request)
    expectation = expect(reply)
    if reply.status is None or reply.status >= 300:
        expectation.answered()
    least = _least_length(reply, model.expected([item.tensor for item in request.inputs]))
    given = reply.header("Content-Length")
    if least is None or _is_unmeasured(reply):
        return
    if given is None:
        raise expectation.unmet(f"Content-Length: {len(reply.body)}", "neither Content-Length nor chunks")
    if len(reply.body) < least:  # a length that is too small cuts the body, one that is too large breaks the reading
        raise expectation.unmet(f"Content-Length: {least}", safe(given, 60))
    expectation.answered()


def _least_length(reply: Reply, expected: Sequence[Tensor]) -> int | None:
    """Return how long the body is at least, None for one without binary data.

    The declared sizes or those of the right tensors, whichever are smaller: a wrong size is another fault. Of a body
    that was cut inside its JSON the inference header alone can be judged.
    """
    header = reply.header(INFERENCE_HEADER) or ""
    if reply.answer.document is None:
        return int(header) if header.isdecimal() else None
    sizes = {tensor.name: tensor.size for tensor in expected}
    both = {finding.field for finding in reply.answer.of_kind("data-and-size")}  # a size too many has no bytes
    binary = [o for o in reply.answer.outputs if o.binary and f"outputs[{o.index}]" not in both]
    least = [min(sizes.get(o.name, 0), o.declared_size or 0) for o in binary]
    return reply.answer.json_end + sum(least) if binary else None


def _is_unmeasured(reply: Reply) -> bool:
    """Whether an answer has an end of another kind than a length: a last chunk, or that of an HTTP/1.0 connection."""
    return _is_chunked(reply) or (reply.is_http_1_0 and reply.header("Content-Length") is None)


@check("headers.binary-answer-is-not-chunked", answers="BIN-NOT-CHUNKED")
@rows(*BINARY_ANSWERS)
def binary_answer_is_not_chunked(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data states its length in Content-Length: no chunks, and no end with the connection."""
    reply = target.infer(ask(model))
    expectation = expect(reply) if _is_cut(reply) else expect(reply).answered()
    if _has_binary_data(reply) and _is_unmeasured(reply):
        actual = "Transfer-Encoding: chunked" if _is_chunked(reply) else "an HTTP/1.0 answer that ends as it closes"
        raise expectation.unmet(f"Content-Length: {len(reply.body)}", actual)
