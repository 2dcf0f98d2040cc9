"""The byte order of elements, and the row-major order of elements in tensors of every rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.checks.support import changed_tensors
from conformance.checks.support.changed_tensors import WIDE
from conformance.checks.support.controls import (
    SIDES,
    Side,
    expect_read,
    expect_right,
    expect_side,
    expect_written,
    is_side_right,
)
from conformance.checks.support.exploring import explore
from conformance.checks.support.inputs import find_alterable_inputs, make_distinct_tensor, make_symmetric_inputs
from conformance.expect.unmet import NotApplicableError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, Fit
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- bytes of an element ----------------------------------------------------------------------------------------------
# Request and answer are judged separately. Values are binary fractions below 2**53, so that a server that loses digits
# in JSON does not fail here.

# role -> elements in which swapping any two bytes is detected
ASYMMETRIC: dict[str, Sequence[float]] = {
    "identity_uint16": (0x0102, 0xFF00, 1),
    "identity_uint32": (0x01020304, 0xFF000000, 1),
    "identity_uint64": (0x0001020304050607, 1),
    "identity_int16": (0x0102, -0x0102, 1),
    "identity_int32": (0x01020304, -0x01020304, 1),
    "identity_int64": (0x0001020304050607, -0x0001020304050607, 1),
    "identity_fp32": (1.5, -2.25, 1024.0),
    "identity_fp64": (1.5, -2.25, 1024.0),
}


HALF_FLOATS = (1.5, -2.25, 1024.0)


ASYMMETRIC_ROWS = [Row(role.removeprefix("identity_").upper(), (x, ()), role=role) for role, x in ASYMMETRIC.items()]


@check("bytes.inputs-are-little-endian", requirements="BIN-LITTLE-ENDIAN-I")
@rows(
    *ASYMMETRIC_ROWS,
    Row(
        "FP16",
        (HALF_FLOATS, [1.05859375]),
        role="cast_fp16_fp32",
        requirements=("BIN-LITTLE-ENDIAN-I", "BIN-DATATYPES-I"),
    ),
    Row("INT32-cast", ((0x010203, -0x010203, 1), [0x010100]), role="cast_int32_fp32"),
    Row("deployed", ((), ()), fit=Fit(some_input=WIDE)),
)
def inputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], symmetric_values: Sequence[float]
) -> None:
    """The server reads elements of a binary input as little-endian."""
    if values:
        expect_read(target, model, [model.tensor(values)], plain=_make_neutral_inputs(model, symmetric_values))
    else:
        tensors = find_alterable_inputs(model, changed_tensors.fill_with_byte_order_neutral_values)
        alike, plain = (
            changed_tensors.fill_with_one_element(tensors),
            changed_tensors.fill_with_byte_order_neutral_values(tensors),
        )
        expect_read(target, model, alike, changed_tensors.swap_bytes(alike, plain), plain, datatypes=WIDE)


@check("bytes.outputs-are-little-endian", requirements="BIN-LITTLE-ENDIAN-O")
@rows(
    *ASYMMETRIC_ROWS,
    Row(
        "FP16",
        (HALF_FLOATS, [1.05859375]),
        role="cast_fp32_fp16",
        requirements=("BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-O"),
    ),
    Row("FP32-cast", ((0x010203, -0x010203, 1), [8_388_683]), role="cast_int32_fp32"),
    Row("deployed", ((), ()), fit=Fit(outputs=WIDE)),
)
def outputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], symmetric_values: Sequence[float]
) -> None:
    """The server writes elements of a binary output as little-endian."""
    if values:
        expect_written(target, model, [model.tensor(values)], plain=_make_neutral_inputs(model, symmetric_values))
    else:
        expect_written(target, model, model.sample(), np.ndarray.byteswap, datatypes=WIDE)


def _make_neutral_inputs(model: Model, symmetric_values: Sequence[float]) -> list[Tensor]:
    """Return values with the same bytes in either order, in the inputs and in the outputs of a role."""
    return [model.tensor(symmetric_values or make_symmetric_inputs(model)[0].array[:1])]


# --- the order of elements --------------------------------------------------------------------------------------------

RANK_ROWS = (
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
DEPLOYED_ROW = Row("deployed", (None,), fit=ANY)


@check("bytes.inputs-are-row-major", requirements="BIN-ROW-MAJOR-I")
@rows(
    *RANK_ROWS,
    Row("weighted", ([3, 5],), role="weighted_sum"),
    Row("BYTES", ([2, 3],), role="rank2_bytes", requirements=("BIN-ROW-MAJOR-I", "BIN-BYTES-I")),
    DEPLOYED_ROW,
)
def inputs_are_row_major(target: Target, model: Model, shape: list[int] | None) -> None:
    """The server reads a binary input row by row, in every rank."""
    if shape is not None:
        _expect_row_major(target, model, shape, "read")
    else:
        tensors = find_alterable_inputs(model, changed_tensors.reorder_by_columns)
        if not any(changed_tensors.has_rows_and_columns(tensor) for tensor in tensors):
            raise NotApplicableError(f"no input of {model.name} has several rows and several columns")
        misread = changed_tensors.reorder_by_columns(tensors)
        expect_read(target, model, tensors, misread, plain=changed_tensors.fill_with_one_element(tensors))


@check("bytes.outputs-are-row-major", requirements="BIN-ROW-MAJOR-O")
@rows(
    *RANK_ROWS,
    Row("BYTES", ([2, 3],), role="rank2_bytes", requirements=("BIN-ROW-MAJOR-O", "BIN-BYTES-O")),
    Row("transposed", ([2, 4, 3],), role="transpose"),
    DEPLOYED_ROW,
)
def outputs_are_row_major(target: Target, model: Model, shape: list[int] | None) -> None:
    """The server writes a binary output row by row, in every rank."""
    if shape is not None:
        _expect_row_major(target, model, shape, "written")
    else:
        tensors = find_alterable_inputs(model, changed_tensors.reorder_by_columns)
        expect_written(target, model, tensors, _restore_row_order)


def _restore_row_order(elements: NDArray[Any]) -> NDArray[Any]:
    """Return the row-major order of elements that a server wrote in column-major order."""
    return elements.reshape(-1).reshape(elements.shape, order="F")


def _expect_row_major(target: Target, model: Model, shape: Sequence[int], side: Side) -> None:
    """Expect row-major order; the row is blocked if JSON alone or a tensor of equal elements fails as well."""
    tensor = make_distinct_tensor(model, shape)
    alike = model.tensor(np.full(tensor.shape, tensor.array.reshape(-1)[0]), shape)
    with (
        block_if(
            lambda: not is_side_right(target, model, [tensor], "neither"),
            "the answer is also wrong without binary data",
        ),
        block_if(
            lambda: prod(shape) > 1 and not is_side_right(target, model, [alike], side),
            "a tensor of equal elements also gets a wrong answer",
        ),
    ):
        expect_right(target, model, [tensor], **SIDES[side])


# --- drawn by Hypothesis ----------------------------------------------------------------------------------------------

DRAWN_ROWS = tuple(Row(role, role=role) for role in ("rank2", "rank3", "rank4", "rank2_bytes"))


@check("bytes.drawn-shapes-are-read", requirements="BIN-ROW-MAJOR-I", explores=True)
@rows(*DRAWN_ROWS, Row("weighted_sum", role="weighted_sum"))
def drawn_shapes_are_read(target: Target, model: Model) -> None:
    """The server reads a binary input of any shape row by row."""
    _explore_shapes(target, model, "read")


@check("bytes.drawn-shapes-are-written", requirements="BIN-ROW-MAJOR-O", explores=True)
@rows(*DRAWN_ROWS)
def drawn_shapes_are_written(target: Target, model: Model) -> None:
    """The server writes a binary output of any shape row by row."""
    _explore_shapes(target, model, "written")


def _explore_shapes(target: Target, model: Model, side: Side) -> None:
    """Expect correct outputs for generated shapes, with the inputs or the outputs (`side`) as binary data."""
    from conformance.roles import tensor_strategies  # imports hypothesis: see `exploring`

    spec = model.role.inputs[0]
    drawn = tensor_strategies.tensors(spec.name, spec.datatype, spec.shape, json=True)
    explore(drawn, lambda tensor: expect_side(target, model, [tensor], side))
