"""Raw requests that have to be refused."""

from __future__ import annotations

from conformance.checks.raw.refused_requests import REFUSALS, TWO_ITEMS
from conformance.checks.support.refusals import Refusal, refusal_rows
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal, expect_refusal_or_right
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# --- refusals -------------------------------------------------------------------------------------------------------


def _refusals(requirement: str) -> list[Row]:
    return refusal_rows(refusal for refusal in REFUSALS if refusal.requirement == requirement)


@check("raw.model-of-several-inputs-is-refused", answers="RAW-ONE-INPUT")
@rows(*_refusals("RAW-ONE-INPUT"))
def model_of_several_inputs_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to a model with more than one input is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("raw.several-variable-dimensions-are-refused", answers="RAW-TWO-VARIABLES")
@rows(*_refusals("RAW-TWO-VARIABLES"))
def several_variable_dimensions_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to an input with more than one variable dimension is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("raw.other-bytes-shapes-are-refused", answers="RAW-BYTES-SHAPE")
@rows(*_refusals("RAW-BYTES-SHAPE"))
def other_bytes_shapes_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to a BYTES input of a shape other than [1] is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("raw.body-that-does-not-fit-is-refused", answers="RAW-SIZE")
@rows(*_refusals("RAW-SIZE"))
def body_that_does_not_fit_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body that does not fill the input exactly is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("raw.two-items-are-refused", answers=("RAW-BATCH-OF-ONE", "RAW-SIZE"), role="raw_batching")
def two_items_are_refused(target: Target, model: Model) -> None:
    """A raw body is no batch of two."""
    reply = target.send(TWO_ITEMS.message(model), fresh=True)
    output = reply.answer.output(model.role.outputs[0].name) if reply.succeeded else None
    # One item in the answer: the second was not taken for one, but dropped.
    dropped = output is not None and output.shape is not None and output.shape[:1] == (1,)
    expect(reply, "RAW-SIZE" if dropped else "RAW-BATCH-OF-ONE").refused(TWO_ITEMS.described)
    expect_alive(target, model)


@check(
    "raw.body-without-header-is-refused", answers=("RAW-HEADER-ZERO", "BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING")
)
@rows(*[Row(row.id, row.values, role=row.role) for row in _refusals("BIN-HEADER-MISSING")])
def body_without_header_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body without an inference header is refused, or taken for the raw request that it would be with one."""
    carried = refusal.carried(model)
    must, should = "BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"
    expect_refusal_or_right(target, model, refusal.message(model), carried, refusal.described, must=must, should=should)
