"""Tells whether an output is the tensor that is expected, and where it first differs.

Values that travelled as binary data are compared bit by bit; NaNs are all alike, their payloads are not judged.
A decimal number that travelled as JSON is right when it is near: no document says how many digits a server writes,
and servers that read and write correctly differ in the last one. Integers, booleans and strings are exact in JSON too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.text import element, elements
from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES
from conformance.wire.response import Output
from conformance.wire.tensor import Tensor, first_difference

Array = np.ndarray[Any, Any]

# Relative error of a decimal number in JSON that still counts as the same; one unit in the last place always does.
JSON_TOLERANCE: Mapping[str, float] = {"FP16": 1e-3, "BF16": 1e-2, "FP32": 1e-6, "FP64": 1e-14}


@dataclass(frozen=True, slots=True)
class Difference:
    """How an output differs: what was expected, what came, and the byte of the body where that begins, if any."""

    expected: str
    actual: str
    offset: int | None = None


def difference(
    expected: Tensor, output: Output | None, body: bytes, *, through_json: bool | None = None
) -> Difference | None:
    """Return how an output differs from the expected tensor, or None.

    Args:
        expected: the right tensor.
        output: the output of that name, None where the answer has none.
        body: of the answer.
        through_json: whether the values travelled as JSON on the way in or out; None: by the output's own form.
    """
    wanted = f"{expected.name} {expected.datatype} {list(expected.shape)}"
    if output is None:
        return Difference(f"output {wanted}", "no output of that name")
    if (output.datatype, output.shape) != (expected.datatype, expected.shape):
        shape = "no valid shape" if output.shape is None else str(list(output.shape))
        return Difference(wanted, f"{output.name} {output.datatype} {shape}")
    if output.array is None:
        reason = "; ".join(map(str, output.findings)) or "no values"
        return Difference(f"{wanted} = {elements(expected.array)}", f"values that cannot be read: {reason}")
    approximate = (not output.binary) if through_json is None else through_json
    index = _first(expected, output.array, approximate=approximate)
    if index is None:
        return None
    return Difference(
        f"{wanted} = {elements(expected.array, index)}",
        f"{elements(output.array, index)}: element {index} is {element(output.array.reshape(-1)[index])}, "
        f"expected {element(expected.array.reshape(-1)[index])}",
        _offset(output, index, body),
    )


def _first(expected: Tensor, actual: Array, *, approximate: bool) -> int | None:
    if not approximate or expected.datatype not in JSON_TOLERANCE:
        return first_difference(expected.array, actual, expected.datatype)
    return _first_apart(expected.array, actual, JSON_TOLERANCE[expected.datatype])


def _first_apart(expected: Array, actual: Array, tolerance: float) -> int | None:
    """Return the first element that is off by more than `tolerance` and more than one unit in the last place."""
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.abs(np.spacing(expected)).astype("<f8")
    unit[~np.isfinite(unit)] = 0  # beyond the largest number there is none
    a, b = expected.astype("<f8").reshape(-1), actual.astype("<f8").reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        relative = np.where(np.isfinite(a), tolerance * np.abs(a), 0)  # nothing is near infinity
        near = np.abs(a - b) <= np.maximum(relative, unit.reshape(-1))
    same = near | (a == b) | (np.isnan(a) & np.isnan(b))
    return None if same.all() else int(np.argmin(same))


def _offset(output: Output, index: int, body: bytes) -> int | None:
    if output.span is None:
        return None
    start, end = output.span
    size = DATATYPES[output.datatype].size
    if size is not None:
        return start + index * size
    return start + strings.offsets(memoryview(body)[start:end], index + 1)[index]
