"""The bytes of an element: the least significant one comes first.

Each side is seen alone. Values stay below 2**53 and are binary fractions, so that a server whose JSON loses digits is
not blamed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.checks.support import changed_tensors
from conformance.checks.support.binary_sides import Side, expect_special_side, make_symmetric_inputs
from conformance.checks.support.changed_tensors import WIDE
from conformance.checks.support.control_sides import expect_read, expect_written, find_inputs
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import Fit
from conformance.transport.target import Target

# --- byte order -------------------------------------------------------------------------------------------------------

# role -> elements no two bytes of which can change places unseen
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


@check("bytes.inputs-are-little-endian", answers="BIN-LITTLE-ENDIAN-I")
@rows(
    *ASYMMETRIC_ROWS,
    Row("FP16", (HALF_FLOATS, [1.05859375]), role="cast_fp16_fp32", answers=("BIN-LITTLE-ENDIAN-I", "BIN-DATATYPES-I")),
    Row("INT32-cast", ((0x010203, -0x010203, 1), [0x010100]), role="cast_int32_fp32"),
    Row("own", ((), ()), fit=Fit(some_input=WIDE)),
)
def inputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float]
) -> None:
    """Elements of a binary input are read with the least significant byte first."""
    if values:
        _expect_little_endian(target, model, values, in_either_order, "read")
    else:
        tensors = find_inputs(model, changed_tensors.fill_either_order)
        alike, plain = changed_tensors.fill_alike(tensors), changed_tensors.fill_either_order(tensors)
        expect_read(target, model, alike, changed_tensors.swap_bytes(alike, plain), plain, of=WIDE)


@check("bytes.outputs-are-little-endian", answers="BIN-LITTLE-ENDIAN-O")
@rows(
    *ASYMMETRIC_ROWS,
    Row("FP16", (HALF_FLOATS, [1.05859375]), role="cast_fp32_fp16", answers=("BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-O")),
    Row("FP32-cast", ((0x010203, -0x010203, 1), [8_388_683]), role="cast_int32_fp32"),
    Row("own", ((), ()), fit=Fit(outputs=WIDE)),
)
def outputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float]
) -> None:
    """Elements of a binary output are written with the least significant byte first."""
    if values:
        _expect_little_endian(target, model, values, in_either_order, "written")
    else:
        expect_written(target, model, model.sample(), np.ndarray.byteswap, of=WIDE)


def _expect_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float], side: Side
) -> None:
    """Expect values right, unless those whose bytes are the same in either order are wrong as well."""
    same = model.tensor(in_either_order or make_symmetric_inputs(model)[0].array[:1])
    expect_special_side(target, model, [model.tensor(values)], side, [same])
