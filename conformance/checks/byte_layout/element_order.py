"""The elements of a tensor: row by row, in every rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.checks.support import changed_tensors
from conformance.checks.support.binary_sides import (
    Side,
    expect_side,
    expect_special_side,
    is_right,
    make_distinct_tensor,
)
from conformance.checks.support.control_sides import expect_read, expect_written, find_inputs
from conformance.expect.unmet import NotApplicableError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY
from conformance.transport.target import Target

# --- the order of elements --------------------------------------------------------------------------------------------

RANKS = (
    Row("rank-0", ([],), role="rank0"),
    Row("rank-1", ([5],), role="identity_int32"),
    Row("rank-1-of-one", ([1],), role="identity_int32"),
    Row("rank-2", ([2, 3],), role="rank2"),
    Row("rank-2-square", ([3, 3],), role="rank2"),
    Row("rank-2-column", ([4, 1],), role="rank2"),
    Row("rank-2-row", ([1, 4],), role="rank2"),
    Row("rank-3", ([2, 3, 4],), role="rank3"),
    Row("rank-3-middle-one", ([3, 1, 2],), role="rank3"),
    Row("rank-4", ([2, 3, 4, 2],), role="rank4"),
    Row("batch", ([4, 3],), role="batching"),
)
OWN = Row("own", (None,), fit=ANY)


@check("bytes.inputs-are-row-major", answers="BIN-ROW-MAJOR-I")
@rows(
    *RANKS,
    Row("weighted", ([3, 5],), role="weighted_sum"),
    Row("BYTES", ([2, 3],), role="rank2_bytes", answers=("BIN-ROW-MAJOR-I", "BIN-BYTES-I")),
    OWN,
)
def inputs_are_row_major(target: Target, model: Model, shape: list[int] | None) -> None:
    """The elements of a binary input are read row by row, in every rank."""
    if shape is not None:
        _expect_row_major(target, model, shape, "read")
    else:
        tensors = find_inputs(model, changed_tensors.read_by_columns)
        if not any(changed_tensors.has_rows_and_columns(tensor) for tensor in tensors):
            raise NotApplicableError(f"no input of {model.name} has rows and columns")
        misread = changed_tensors.read_by_columns(tensors)
        expect_read(target, model, tensors, misread, plain=changed_tensors.fill_alike(tensors))


@check("bytes.outputs-are-row-major", answers="BIN-ROW-MAJOR-O")
@rows(*RANKS, Row("BYTES", ([2, 3],), role="rank2_bytes", answers=("BIN-ROW-MAJOR-O", "BIN-BYTES-O")), OWN)
def outputs_are_row_major(target: Target, model: Model, shape: list[int] | None) -> None:
    """The elements of a binary output are written row by row, in every rank."""
    if shape is not None:
        _expect_row_major(target, model, shape, "written")
    else:
        tensors = find_inputs(model, changed_tensors.read_by_columns)
        expect_written(target, model, tensors, _columns_as_rows)


def _columns_as_rows(elements: NDArray[Any]) -> NDArray[Any]:
    """Return the right elements, where these were written in column-major order."""
    return elements.reshape(-1).reshape(elements.shape, order="F")


def _expect_row_major(target: Target, model: Model, shape: Sequence[int], side: Side) -> None:
    """Expect elements in their places, unless JSON loses them, or elements that are all alike are wrong as well."""
    tensor = make_distinct_tensor(model, shape)
    with block_if(lambda: not is_right(target, model, [tensor], "neither"), "JSON on both sides is wrong too"):
        if prod(shape) == 1:
            expect_side(target, model, [tensor], side)
        else:
            alike = model.tensor(np.full(tensor.shape, tensor.array.reshape(-1)[0]), shape)
            expect_special_side(target, model, [tensor], side, [alike])
