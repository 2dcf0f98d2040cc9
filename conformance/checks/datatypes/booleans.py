"""BOOL: one byte for each element, 0 or 1."""

from __future__ import annotations

from conformance.checks.support.binary_sides import expect_side
from conformance.checks.support.datatypes import BOOLS
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target


@check("datatypes.bool-bytes-are-read", answers=("BIN-BOOL-I", "BIN-DATATYPES-I"), role="identity_bool")
@rows(*BOOLS)
def bool_bytes_are_read(target: Target, model: Model, values: list[bool]) -> None:
    """In a binary input the byte 1 is true and the byte 0 false, one byte for each element."""
    expect_side(target, model, [model.tensor(values)], "read")


@check("datatypes.bool-bytes-are-written", answers=("BIN-BOOL-O", "BIN-DATATYPES-O"), role="identity_bool")
@rows(*BOOLS)
def bool_bytes_are_written(target: Target, model: Model, values: list[bool]) -> None:
    """In a binary output true is the byte 1 and false the byte 0, one byte for each element."""
    reply = target.infer(model.request([model.tensor(values)], send="json", want="binary"))
    expect(reply).free_of("bool-byte").tensors(model.expected([model.tensor(values)]))
