"""Requests whose inference header is wrong: refused."""

from __future__ import annotations

from conformance.checks.headers.wrong_header_requests import (
    JSON_ALONE_REFUSALS,
    LENGTH_REFUSALS,
    MISSING_REFUSALS,
    SPELLING_REFUSALS,
)
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target

# --- refusals ----------------------------------------------------------------------------------------------------


@check(
    "headers.impossible-length-is-refused", answers=tuple({refusal.requirement: None for refusal in LENGTH_REFUSALS})
)
@rows(*make_refusal_rows(LENGTH_REFUSALS))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary request whose inference header is no place where its JSON ends is refused."""
    expect_refused(target, model, refusal)


# What the sentence asks of the sender alone: who can tell where the binary data begin may answer, and answer right.
@check(
    "headers.request-without-a-length-is-refused-or-right", answers=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING")
)
@rows(*make_refusal_rows(MISSING_REFUSALS))
def request_without_a_length_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """A request whose inference header is missing is never misread."""
    expect_refused(target, model, refusal)


@check(
    "headers.wrong-length-of-json-alone-is-refused-or-right",
    answers=("BIN-HEADER-WRONG-ON-JSON-SAFE", "BIN-HEADER-WRONG-ON-JSON"),
)
@rows(*make_refusal_rows(JSON_ALONE_REFUSALS))
def wrong_length_of_json_alone_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """A request of JSON alone, whose inference header is needless and wrong, is never misread."""
    expect_refused(target, model, refusal)


@check("headers.odd-spelling-of-the-length-is-refused", answers=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
@rows(*make_refusal_rows(SPELLING_REFUSALS))
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A request whose inference header is not spelled in plain digits is never misread."""
    expect_refused(target, model, refusal)
