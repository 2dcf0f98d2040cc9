"""The computations of the roles, which provide the expected answers. `roles.toml` describes the computations.

Each function takes the input arrays by name, and returns the output arrays in declared order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.wire.datatypes import DATATYPES

if TYPE_CHECKING:
    from conformance.roles.roles import Role

Array = np.ndarray[Any, Any]
Compute = Callable[["Role", Mapping[str, Array]], Sequence[Array]]


def to_object_array(elements: Sequence[bytes], shape: Sequence[int] | None = None) -> Array:
    """Convert BYTES elements to an object array of this shape; None: one-dimensional."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array if shape is None else array.reshape(tuple(shape))


def _compute_cast(role: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    return [
        array.astype(DATATYPES[output.datatype].dtype)
        for array, output in zip(inputs.values(), role.outputs, strict=True)
    ]


def _compute_lengths(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    array = inputs["INPUT"]
    return [np.array([len(element) for element in array.flat], "<i4").reshape(array.shape)]


def _compute_weighted_sum(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    flat = inputs["INPUT"].reshape(-1).astype("<i8")
    return [np.array([np.dot(flat, np.arange(1, flat.size + 1))], "<i8")]


def _compute_counted_outputs(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    numbers, texts = (int(count) for count in inputs["COUNTS"])
    return [np.arange(1, numbers + 1, dtype="<i4"), to_object_array([b"t%d" % k for k in range(1, texts + 1)])]


def _compute_text(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    array = inputs["INPUT"]
    return [array, to_object_array([b"%d" % int(element) for element in array.flat], array.shape)]


def _compute_table_lookup(role: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    (array,) = inputs.values()
    output = role.outputs[0]
    return [np.array([role.table[int(x) - 1] for x in array.flat], DATATYPES[output.datatype].dtype)]


def _compute_transposed(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    numbers = inputs["INPUT"].transpose()
    first = numbers[:, :, 0]
    return [numbers, to_object_array([b"%d" % int(element) for element in first.flat], first.shape)]


def _add_version(role: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    """Add the number of the version that computes, which is the last one that the role lists."""
    return [inputs["INPUT"] + DATATYPES["INT32"].dtype.type(int(role.versions[-1]))]


def _compute_documented_mixed(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    total = inputs["input0"].astype("<f4") + inputs["input1"].astype("<f4")
    return [_stack_pairs(inputs["input2"], inputs["input0"]).astype("<f2"), total]


def _stack_pairs(first: Array, second: Array) -> Array:
    """Return an array of shape [3, 2] whose row k is [element k of first, element k of second], in row-major order."""
    return np.stack([first.reshape(-1)[:3].astype("<f8"), second.reshape(-1)[:3].astype("<f8")], axis=1)


def _compute_documented_all_outputs(_: Role, inputs: Mapping[str, Array]) -> Sequence[Array]:
    a, b = inputs["input_tensor"].reshape(-1)
    return [np.array([[a, b], [b, a], [0, 0]], "<f4").astype("<f2"), np.array([[a, b], [b, a]], "<f4")]


COMPUTE: Mapping[str, Compute] = {
    "identity": lambda _, inputs: list(inputs.values()),
    "cast": _compute_cast,
    "add_sub": lambda _, inputs: [inputs["A"] + inputs["B"], inputs["A"] - inputs["B"]],
    "length": _compute_lengths,
    "weighted_sum": _compute_weighted_sum,
    "emit": _compute_counted_outputs,
    "text": _compute_text,
    "table": _compute_table_lookup,
    "transpose": _compute_transposed,
    "add_version": _add_version,
    "documented_binary": lambda _, inputs: [_stack_pairs(inputs["input1"], inputs["input0"]).astype("<f4")],
    "documented_mixed": _compute_documented_mixed,
    "documented_all_outputs": _compute_documented_all_outputs,
    "documented_raw": lambda _, inputs: [inputs["input"][:3].reshape(3, 1), inputs["input"][1:].reshape(3, 1)],
}
