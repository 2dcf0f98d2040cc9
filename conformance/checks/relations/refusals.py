"""Relations of refusals: binary requests that no model can take."""

from __future__ import annotations

from conformance.checks.relations.plain_answer import expect_same
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import NotApplicable
from conformance.survey.deployed import Deployed
from conformance.terms.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, Message

# --- refusals -----------------------------------------------------------------------------------------------------


def _binary_request(model: Deployed) -> Message:
    """Return a good request with binary data.

    Raises:
        NotApplicable: the model takes none that have any bytes.
    """
    message = model.request(outputs=model.listed()).message()
    if len(message.body) == message.json_length:
        raise NotApplicable("the model's inputs have no bytes")
    return message


@check("relations.short-body-is-refused", answers="BIN-BODY-SHORT")
@rows(("last-byte", False), ("all-bytes", True))
def short_body_is_refused(target: Target, model: Deployed, every: bool) -> None:
    """A binary request that lacks the last of its binary data, or all, is refused, and the next good one answered."""
    message = _binary_request(model)
    expect_refusal(target, model, message.with_body(message.body[: message.json_length if every else -1]))


@check("relations.missing-header-is-refused", answers=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"))
def missing_header_is_refused(target: Target, model: Deployed) -> None:
    """A binary request without inference header is refused, or answered as it is with one."""
    message = _binary_request(model)
    reply = target.send(message.with_header(INFERENCE_HEADER, None), fresh=True)
    if reply.succeeded:
        expect_same(target, model, reply, "BIN-HEADER-MISSING-SAFE")
    expect(reply, "BIN-HEADER-MISSING" if reply.succeeded else "BIN-HEADER-MISSING-SAFE").refused()
    expect_alive(target, model)


@check("relations.header-beyond-the-body-is-refused", answers="BIN-HEADER-TOO-LONG")
def header_beyond_the_body_is_refused(target: Target, model: Deployed) -> None:
    """A binary request whose inference header exceeds its body is refused, and the next good one answered."""
    message = _binary_request(model)
    expect_refusal(target, model, message.with_header(INFERENCE_HEADER, str(len(message.body) + 1)))
