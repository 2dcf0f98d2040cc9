"""A client that offers to wait for the go-ahead: it does not wait, or it does."""

from __future__ import annotations

from conformance.checks.state.three_forms import (
    FORMS,
    LENGTH_REQUIRED,
    AnyForm,
    expect_new_http,
    make_form_row,
    send_answered_request,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.text import escape_text
from conformance.transport.exchange import GoAhead
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat
from conformance.transport.target import Target

# Says of an expectation that somebody on the way cannot meet it; the client then sends the request without.
EXPECTATION_FAILED = 417

USUAL, OTHER_CASE = "100-continue", "100-Continue"


@check("state.expect-100-continue-is-answered", answers="HTTP-EXPECT")
@rows(
    *[make_form_row(form, form, 3, USUAL, fits=True) for form in FORMS],
    *[make_form_row(f"long-{form}", form, 1000, USUAL) for form in FORMS],
    *[make_form_row(f"{form}-in-another-case", form, 3, OTHER_CASE, fits=form == "json") for form in FORMS],
    make_form_row("binary-512KiB", "binary", 128 * 1024, USUAL, thorough=True),
)
def expect_100_continue_is_answered(target: Target, model: Model, form: AnyForm, length: int, value: str) -> str:
    """A request with `Expect: 100-continue` is answered as it is without."""
    message, expected = send_answered_request(target, model, form, length)
    reply = target.send(message.with_header("Expect", value))
    if reply.status == EXPECTATION_FAILED:
        return "expectations are not supported"
    with attribute_to("HTTP-EXPECT"):
        expect(reply).tensors(expected)
    return "answered"


@check("state.go-ahead-comes-without-the-body", answers=("HTTP-GO-AHEAD", "HTTP-EXPECT"))
@rows(
    *[make_form_row(form, form, 3, USUAL, None, fits=True) for form in FORMS],
    *[make_form_row(f"{form}-in-another-case", form, 3, OTHER_CASE, None) for form in FORMS],
    make_form_row("json-in-chunks", "json", 3, USUAL, PLAIN_CHUNKS),
)
def go_ahead_comes_without_the_body(
    target: Target, model: Model, form: AnyForm, length: int, value: str, chunks: ChunkFormat | None
) -> str:
    """A client that holds the body back is given 100 Continue or a final answer; what it then sends is read."""
    message, expected = send_answered_request(target, model, form, length)
    reply = target.send_after_go_ahead(message.with_header("Expect", value), chunks=chunks)
    given = reply.exchange.go_ahead
    if given is GoAhead.WITHHELD or reply.status is None:
        expect_new_http(target, reply)
        actual = "neither before the body was sent" if given is GoAhead.WITHHELD else escape_text(reply.outcome())
        raise UnmetError("100 Continue, or a final status", actual, reply, requirement="HTTP-GO-AHEAD")
    if reply.status == EXPECTATION_FAILED:
        return "expectations are not supported"
    if chunks and reply.status == LENGTH_REQUIRED:
        return "chunks are declined"

    if chunks and not reply.succeeded:
        expect_new_http(target, reply)

    def is_wrong_without() -> bool:
        return chunks is not None and not is_met(
            lambda: expect(target.send_in_pieces(message, (), chunks=chunks)).tensors(expected)
        )

    with (
        block_if(is_wrong_without, "the request is answered wrongly in chunks without Expect, too"),
        attribute_to("HTTP-EXPECT"),
    ):
        expect(reply).tensors(expected)
    return str(given)
