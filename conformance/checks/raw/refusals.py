"""Raw requests that have to be refused."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.raw.raw_answers import expect_agreement
from conformance.checks.raw.refused_requests import OF_BYTES, REFUSALS, TWO_ITEMS
from conformance.checks.support.refusals import Refusal, expect_refused, refusal_rows
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# --- refusals -------------------------------------------------------------------------------------------------------


def _refusals(requirement: str) -> list[Row]:
    return refusal_rows(refusal for refusal in REFUSALS if refusal.requirement == requirement)


@check("raw.model-of-several-inputs-is-refused", answers="RAW-SEVERAL-INPUTS")
@rows(*_refusals("RAW-SEVERAL-INPUTS"))
def model_of_several_inputs_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to a model with more than one input is refused."""
    expect_refused(target, model, refusal)


@check("raw.several-variable-dimensions-are-refused", answers="RAW-TWO-VARIABLES")
@rows(*_refusals("RAW-TWO-VARIABLES"))
def several_variable_dimensions_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw request to an input with more than one variable dimension is refused."""
    expect_refused(target, model, refusal)


@check("raw.other-bytes-shapes-are-refused", answers=("RAW-BYTES-SHAPE-SAFE", "RAW-BYTES-SHAPE"))
@rows(*[Row(fault, (body, readings), role=role) for fault, role, body, readings in OF_BYTES])
def other_bytes_shapes_are_refused(
    target: Target, model: Model, body: bytes, readings: Sequence[Sequence[bytes]]
) -> None:
    """A raw request to a BYTES input of a shape other than [1] is refused, or all of its body is read as that shape."""
    reply = target.send(model.raw(body), fresh=True)
    if reply.succeeded and readings:
        expect_agreement(target, model, reply, *[model.tensor(elements) for elements in readings])
    advised = reply.succeeded and readings
    expect(reply, "RAW-BYTES-SHAPE" if advised else "RAW-BYTES-SHAPE-SAFE").refused("BYTES of a shape other than [1]")
    expect_alive(target, model)


@check("raw.body-that-does-not-fit-is-refused", answers="RAW-SIZE")
@rows(*_refusals("RAW-SIZE"))
def body_that_does_not_fit_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body that does not fill the input exactly is refused."""
    expect_refused(target, model, refusal)


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
    expect_refused(target, model, refusal)
