"""Requests whose inference header is wrong: refused."""

from __future__ import annotations

from conformance.checks.headers.wrong_header_requests import LAX, PLAIN, VALUES
from conformance.checks.support.refusals import Refusal, refusal_rows
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# --- refusals ----------------------------------------------------------------------------------------------------


@check("headers.impossible-length-is-refused", answers=tuple({refusal.requirement: None for refusal in PLAIN}))
@rows(*refusal_rows(PLAIN))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary request whose inference header is missing, or is no place where its JSON ends, is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("headers.odd-spelling-of-the-length-is-refused", answers=("BIN-NEG-IHCL-LAX", "BIN-NEG-IHCL-TEXT"))
@rows(*[Row(refusal.fault, (refusal,), role=refusal.role) for refusal in LAX])
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """An inference header that is not spelled in plain digits is refused, and at the least never shifts a tensor."""
    reply = target.send(refusal.message(model), fresh=True)
    if reply.succeeded:
        expect(reply, "BIN-NEG-IHCL-TEXT").tensors(model.expected([model.tensor(VALUES)]))
    expect(reply).refused(refusal.described)
    expect_alive(target, model)
