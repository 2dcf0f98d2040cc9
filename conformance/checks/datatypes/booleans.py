"""BOOL: one byte for each element, 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.support.binary_sides import expect_side
from conformance.checks.support.changed_tensors import move_up, negate
from conformance.checks.support.control_sides import expect_read, expect_written, find_inputs
from conformance.checks.support.datatypes import BOOLS, get_identity_role
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import Fit
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

ROLE_ROWS = [Row(name, (values,), role=get_identity_role("BOOL")) for name, values in BOOLS]
BOOL_ONLY = frozenset({"BOOL"})
OWN_COUNT = 9  # elements or items of a deployed model: more than the bits of a byte


def _own_inputs(model: Model) -> Sequence[Tensor]:
    """Return inputs of a deployed model whose BOOL elements are not all alike."""
    return find_inputs(model, lambda tensors: move_up([t for t in tensors if t.datatype == "BOOL"]), OWN_COUNT)


@check("datatypes.bool-bytes-are-read", answers=("BIN-BOOL-I", "BIN-DATATYPES-I"))
@rows(*ROLE_ROWS, Row("own", (None,), fit=Fit(some_input=BOOL_ONLY)))
def bool_bytes_are_read(target: Target, model: Model, values: list[bool] | None) -> None:
    """In a binary input the byte 1 is true and the byte 0 false, one byte for each element."""
    if values is not None:
        expect_side(target, model, [model.tensor(values)], "read")
    else:
        tensors = _own_inputs(model)
        expect_read(target, model, tensors, misread=negate(tensors), of=BOOL_ONLY)


@check("datatypes.bool-bytes-are-written", answers=("BIN-BOOL-O", "BIN-DATATYPES-O"))
@rows(*ROLE_ROWS, Row("own", (None,), fit=Fit(outputs=BOOL_ONLY)))
def bool_bytes_are_written(target: Target, model: Model, values: list[bool] | None) -> None:
    """In a binary output true is the byte 1 and false the byte 0, one byte for each element."""
    if values is None:
        expect_written(target, model, _own_inputs(model), of=BOOL_ONLY, free_of=("bool-byte",))
    else:
        reply = target.infer(model.request([model.tensor(values)], send="json", want="binary"))
        expect(reply).free_of("bool-byte").tensors(model.expected([model.tensor(values)]))
