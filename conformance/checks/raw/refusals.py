"""Raw requests that have to be refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from conformance.checks.raw.deployed_models import (
    NUMBERS,
    STRINGS,
    expect_length_counts,
    find_serving_requirement,
    send_own_raw,
)
from conformance.checks.raw.raw_answers import expect_agreement
from conformance.checks.raw.refused_requests import BYTES_BODIES, OWN_REFUSALS, REFUSALS, TWO_ITEMS
from conformance.checks.support.control_sides import unless_unsteady
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target

# --- refusals -------------------------------------------------------------------------------------------------------


def _refusals(requirement: str) -> list[Row]:
    return make_refusal_rows((*REFUSALS, *OWN_REFUSALS), requirement)


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
@rows(
    *[Row(fault, (body, readings), role=role) for fault, role, body, readings in BYTES_BODIES],
    Row("own", (b"hello", None), fit=STRINGS, answers=("RAW-BYTES-SHAPE-SAFE",)),
)
def other_bytes_shapes_are_refused(
    target: Target, model: Model, body: bytes, readings: Sequence[Sequence[bytes]] | None
) -> None:
    """A raw request to a BYTES input of a shape other than [1] is refused, or all of its body is read as that shape."""
    if readings is None:
        _expect_strings_refused_or_right(target, model, body)
        return
    reply = target.send(model.raw(body), fresh=True)
    if reply.succeeded and readings:
        expect_agreement(target, model, reply, *[model.tensor(elements) for elements in readings])
    advised = reply.succeeded and readings
    expect(reply, "RAW-BYTES-SHAPE" if advised else "RAW-BYTES-SHAPE-SAFE").refused("BYTES of a shape other than [1]")
    expect_alive(target, model)


def _expect_strings_refused_or_right(target: Target, model: Model, body: bytes) -> None:
    """Expect that a body which holds no several elements is refused, or read as one where the shape takes one.

    Raises:
        NotApplicable: metadata do not show that the shape of the model's input is another than [1].
    """
    shape = model.role.inputs[0].shape
    if shape != (-1,) and (-1 in shape or prod(shape) < 2):
        raise NotApplicableError(f"metadata do not show another shape than [1]: {list(shape)}")
    reply = target.send(model.raw(body), fresh=True)
    if reply.succeeded and shape == (-1,):
        read = model.tensor([body])
        with unless_unsteady(target, model.expected([read])):
            expect_agreement(target, model, reply, read)
    else:
        expect(reply).refused("BYTES of a shape other than [1]")
    expect_alive(target, model)


@check("raw.body-that-does-not-fit-is-refused", answers="RAW-SIZE")
@rows(
    *_refusals("RAW-SIZE"),
    Row("own-without-its-last-byte", (-1,), fit=NUMBERS),
    Row("own-with-a-byte-more", (1,), fit=NUMBERS),
)
def body_that_does_not_fit_is_refused(target: Target, model: Model, refusal: Refusal | int) -> None:
    """A raw body that does not fill the input exactly is refused."""
    if isinstance(refusal, Refusal):
        expect_refused(target, model, refusal)
    else:
        _expect_length_refused(target, model, refusal)


def _expect_length_refused(target: Target, model: Model, more: int) -> None:
    """Expect that a body of one byte more or less than one which is taken is refused."""
    find_serving_requirement(model)
    reply, tensor = send_own_raw(target, model)
    if not reply.succeeded:
        raise NotApplicableError(f"a raw request to {model.name} is refused")
    expect_length_counts(model, tensor)
    body = bytes(tensor.to_bytes())
    fault = "a raw body that does not fit the input"
    expect_refusal(target, model, model.raw(body + b"\x01" if more > 0 else body[:-1]), fault)


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
@rows(*[Row(row.id, row.values, role=row.role, fit=row.fit) for row in _refusals("BIN-HEADER-MISSING")])
def body_without_header_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A raw body without an inference header is refused, or taken for the raw request that it would be with one."""
    expect_refused(target, model, refusal)
