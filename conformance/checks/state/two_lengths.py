"""Requests with both Transfer-Encoding and Content-Length, by which requests are smuggled past gateways."""

from __future__ import annotations

from conformance.checks.state.three_forms import FORMS, LENGTH_REQUIRED, AnyForm, form_row, salted
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.chunks import PLAIN
from conformance.transport.exchange import FailureKind
from conformance.transport.target import Target
from conformance.wire.request import Message

LENGTH = 20
# How a parser of HTTP declines a request without a word.
ENDED = (FailureKind.CLOSED, FailureKind.BROKEN)


def _two_lengths(message: Message, less: int = 0) -> Message:
    """Return a message that gives the length of its body, or less, beside the chunks in which it will go out."""
    return message.with_header("Content-Length", str(len(message.body) - less))


@check("state.chunks-count-beside-a-length", answers="HTTP-CHUNKED-WITH-LENGTH")
@rows(*[form_row(form, form, 0) for form in FORMS], form_row("raw-of-less", "raw", 5))
def chunks_count_beside_a_length(target: Target, model: Model, form: AnyForm, less: int) -> str:
    """A chunked request with a Content-Length is refused, or read by its chunks alone."""
    message, tensors = salted(model, form, LENGTH, 1)
    (reply,) = target.send_on_one_connection([_two_lengths(message, less)], chunked=[0])
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    if reply.has_failed(*ENDED):
        return "the connection was ended"
    expected = model.expected(tensors)

    def is_wrong_without() -> bool:
        return not holds(lambda: expect(target.send_in_pieces(message, (), chunks=PLAIN)).tensors(expected))

    with blocked_where(is_wrong_without, "in chunks without a length it is answered wrongly, too"):
        expect(reply).tensors(expected)
    return "read by its chunks"


@check("state.connection-ends-after-two-lengths", answers="HTTP-CHUNKED-WITH-LENGTH-CLOSES")
@rows(form_row("json", "json"))
def connection_ends_after_two_lengths(target: Target, model: Model, form: AnyForm) -> None:
    """The connection is closed after a request with both Transfer-Encoding and Content-Length."""
    message, _ = salted(model, form, LENGTH, 1)
    replies = target.send_on_one_connection([_two_lengths(message), message], chunked=[0])
    if len(replies) > 1 and replies[1].status not in (None, LENGTH_REQUIRED):
        raise expect(replies[0]).unmet("the end of the connection", f"a further answer: {replies[1].status_line}")
