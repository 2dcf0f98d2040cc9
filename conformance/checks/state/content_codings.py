"""Compressed requests and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from conformance.checks.state.own_answers import salted_request, salted_tensors
from conformance.checks.support.framing import WRONG_LENGTH
from conformance.expect.content_coding import gzipped, uncoded
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import about, blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.transport.target import Target
from conformance.wire.request import Form, Message
from conformance.wire.tensor import Tensor

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
    with blocked_where(lambda: True, "the same request without compression is answered wrongly"):
        expect(target.send(message)).tensors(expected).free_of(*WRONG_LENGTH)
    return message, expected


@check("state.gzip-answer-is-the-answer", answers="HTTP-CODING-O")
@rows(*CODED)
def gzip_answer_is_the_answer(target: Target, model: Model, form: CodedForm, length: int) -> str:
    """An answer that is compressed because the client accepts that holds the right tensors."""
    message, expected = _uncompressed(target, model, form, length)
    reply = target.send(message.with_header("Accept-Encoding", "gzip"))
    with about("HTTP-CODING-O"):  # the same without compression was right, whatever seems wrong now
        expect(reply if reply.status is None else uncoded(reply)).tensors(expected).free_of(*WRONG_LENGTH)
    return reply.header("Content-Encoding") or "not compressed"


@check("state.gzip-request-is-decoded-or-refused", answers="HTTP-CODING-I")
@rows(*CODED)
def gzip_request_is_decoded_or_refused(target: Target, model: Model, form: CodedForm, length: int) -> str:
    """A compressed request is decoded, or refused; its coded bytes are not taken for tensors."""
    message, expected = _uncompressed(target, model, form, length)
    reply = target.send(message.with_body(gzipped(message.body)).with_header("Content-Encoding", "gzip"), fresh=True)
    if reply.status is not None and reply.status >= 400:
        expect_alive(target, model)
        return f"refused with {reply.status}"
    expect(reply).tensors(expected)
    return "decoded"
