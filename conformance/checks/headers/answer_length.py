"""Answers: the length of the whole body, in Content-Length."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.headers.requested_answers import BINARY_ANSWERS, has_binary_data
from conformance.checks.support.deployed_models import find_sizes
from conformance.checks.support.framing import expect_length_fits, expect_length_given, is_cut
from conformance.expect.expectation import expect
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import check, rows
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER


@check("headers.content-length-is-that-of-the-whole-body", answers="BIN-CONTENT-LENGTH")
@rows(*BINARY_ANSWERS)
def content_length_is_that_of_the_whole_body(target: Target, model: Model, ask: RequestBuilder) -> None:
    """The Content-Length of an answer with binary data, where it has one, counts JSON and binary data together."""
    request = ask(model)
    reply = target.infer(request)
    if reply.status is None or reply.status >= 300:
        expect(reply).answered()
    least = _least_length(reply, find_sizes(model, [item.tensor for item in request.inputs]))
    if least is not None:
        expect_length_fits(reply, least)


def _least_length(reply: Reply, sizes: Mapping[str, int]) -> int | None:
    """Return how long the body is at least, None for one without binary data.

    The declared sizes or those of the right tensors, whichever are smaller: a wrong size is another fault. Of a body
    that was cut inside its JSON the inference header alone can be judged. Where nobody knows the right tensors, shape
    and datatype say how many bytes there are.
    """
    header = reply.header(INFERENCE_HEADER) or ""
    if reply.answer.document is None:
        return int(header) if header.isdecimal() else None
    both = {finding.field for finding in reply.answer.find_by_kind("data-and-size")}  # a size too many has no bytes
    binary = [o for o in reply.answer.outputs if o.binary and f"outputs[{o.index}]" not in both]
    least = [min(sizes.get(o.name, o.native_size or 0), o.declared_size or 0) for o in binary]
    return reply.answer.json_end + sum(least) if binary else None


@check("headers.binary-answer-is-not-chunked", answers="BIN-NOT-CHUNKED")
@rows(*BINARY_ANSWERS)
def binary_answer_is_not_chunked(target: Target, model: Model, ask: RequestBuilder) -> None:
    """An answer with binary data states its length in Content-Length: no chunks, and no end with the connection."""
    reply = target.infer(ask(model))
    if not is_cut(reply):
        expect(reply).answered()
    if has_binary_data(reply):
        expect_length_given(reply)
