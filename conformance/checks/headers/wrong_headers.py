"""Requests whose inference header is wrong: refused."""

from __future__ import annotations

from conformance.checks.headers.wrong_header_requests import LAX, NAMELESS, PLAIN, WITHOUT
from conformance.checks.support.refusals import Refusal, refusal_rows
from conformance.expect.refusals import expect_refusal, expect_refusal_or_right
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# --- refusals ----------------------------------------------------------------------------------------------------


@check("headers.impossible-length-is-refused", answers=tuple({refusal.requirement: None for refusal in PLAIN}))
@rows(*refusal_rows(PLAIN))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary request whose inference header is no place where its JSON ends is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


# What the sentence asks of the sender alone: who can tell where the binary data begin may answer, and answer right.
_MUST = {
    **dict.fromkeys(WITHOUT, "BIN-HEADER-MISSING-SAFE"),
    **dict.fromkeys((*NAMELESS, *LAX), "BIN-HEADER-SPELLING-SAFE"),
}


@check(
    "headers.request-without-a-length-is-refused-or-right", answers=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING")
)
@rows(*[Row(refusal.fault, (refusal,), role=refusal.role) for refusal in WITHOUT])
@check("headers.odd-spelling-of-the-length-is-refused", answers=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
@rows(*[Row(refusal.fault, (refusal,), role=refusal.role) for refusal in (*NAMELESS, *LAX)])
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A request whose inference header is missing, or not spelled in plain digits, is refused and never misread."""
    carried = refusal.carried(model)
    expect_refusal_or_right(
        target,
        model,
        refusal.message(model),
        carried,
        refusal.described,
        must=_MUST[refusal],
        should=refusal.requirement,
    )
