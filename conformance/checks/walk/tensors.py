"""Make the tensors of a step; steps close to each other in a walk have tensors with different elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from conformance.checks.support.covering import Step
from conformance.checks.walk.axes import EMPTY_PLACES
from conformance.roles.compute import to_object_array
from conformance.roles.corner_values import BYTE_STRINGS, INTEGER_CORNERS, TEXTS, from_bits, get_bit_groups
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.roles.sample_values import make_sample_shape
from conformance.wire.datatypes import DATATYPES, MAX_EXACT_INTEGER
from conformance.wire.tensor import Tensor

Array = np.ndarray[Any, Any]
Ramp = Callable[..., Array]  # a function that returns `count` elements for one input of a step

# Unusual floats that every reader and writer of doubles converts exactly to JSON and back.
_JSON_FLOATS: Mapping[str, Sequence[float]] = {
    "FP16": (0.5, -2.0, 1024.0, -0.125),
    "FP32": (1e-20, -1e20, 0.5, 123456.75, 16777216.0, -0.0078125),
    "FP64": (1e-20, -1e200, 1e-300, 0.1, 9007199254740992.0, 123456.75),
}
MIN_COUNT_WITH_EMPTY = 17  # BYTES elements, one of which is empty
_MAX_ELEMENT_BYTES = 300  # bytes of a BYTES element


def make_tensors(step: Step, model: Model, salt: int, *, over_grpc: bool = False) -> tuple[Tensor, ...]:
    """Return the inputs of a step, in declared order; different salts give different elements."""
    in_json = step["classes"] != "none" if over_grpc else may_be_in_json(step)
    return tuple(
        _make_tensor(
            spec,
            _choose_shape(step, spec, position, model),
            step,
            partial(model.build_ramp, position, salt=salt + 31 * position),
            in_json=in_json,
        )
        for position, spec in enumerate(model.role.inputs)
    )


def may_be_in_json(step: Step) -> bool:
    """Say whether a tensor of a step may be JSON in the request or the answer, or may be classified."""
    uses_json = step["send"] in ("json", "mixed") or step["want"] not in ("binary", "all-binary", "raw")
    return uses_json or step["classes"] != "none"


def change_last_element(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tensors after changing the last element of the last tensor that is not empty."""
    changed = list(tensors)
    for position in reversed(range(len(changed))):
        if changed[position].elements:
            changed[position] = _change_last_element_of(changed[position])
            break
    return tuple(changed)


def _change_last_element_of(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1).copy()
    if tensor.datatype == "BYTES":
        flat[-1] = flat[-1][:-1] + b"y" if flat[-1].endswith(b"x") else flat[-1] + b"y"
    elif tensor.datatype == "BOOL":
        flat[-1] = not flat[-1]
    elif DATATYPES[tensor.datatype].is_float:  # the kind of BF16 in numpy is not that of floats
        flat[-1] = flat[-1] + 1 if np.isfinite(flat[-1]) and flat[-1] + 1 != flat[-1] else 3
    else:
        flat[-1] ^= 1  # usually keeps the number of digits
    return replace(tensor, array=flat.reshape(tensor.shape))


# --- shapes ---------------------------------------------------------------------------------------------------------


def _choose_shape(step: Step, spec: TensorSpec, position: int, model: Model) -> tuple[int, ...]:
    """Return the shape of an input; the count of the step sets the first variable dimension, or the batch size."""
    if step["count"] == "own" and step["place"] not in EMPTY_PLACES:
        return model.find_input_shape(position, is_raw=step["send"] == "raw")
    count = _choose_element_count(step, position, len(model.role.inputs) - 1)
    if model.role.batching:
        return make_sample_shape(spec.shape, count)
    return model.build_shape(position, count)


def _choose_element_count(step: Step, position: int, last: int) -> int:
    """Return the number of elements of an input: the count of the step, none, or a small number.

    The axis `place` selects the inputs that get the count of the step, or the input that has no elements.
    """
    small, place = 2 + position, step["place"].removesuffix("-empty")
    index = {"first": 0, "second": 1, "last": last}.get(place, position)
    if step["place"] in EMPTY_PLACES:
        return 0 if index == position else small if step["count"] == "own" else int(step["count"])
    return int(step["count"]) if index == position else small


# --- values ---------------------------------------------------------------------------------------------------------


def _make_tensor(spec: TensorSpec, shape: tuple[int, ...], step: Step, ramp: Ramp, *, in_json: bool) -> Tensor:
    values, count = step["values"], prod(shape)
    array = ramp(count=count)
    # The first corner value depends on the step, not on the salt, so that a repeated step starts with the same value.
    # The last ones are the oddest: infinities and NaN.
    special = np.roll(_list_corner_values(spec.datatype, in_json=in_json)[::-1], -int(step["corner"]))
    if values == "ramp" and spec.datatype == "BYTES" and count >= MIN_COUNT_WITH_EMPTY:
        array[count // 3] = b""
    elif values == "equal":
        array = np.resize(ramp(count=1), count)
    elif values == "ones":
        array = np.resize(_get_all_ones(spec.datatype, in_json=in_json), count)
    elif values == "corners":
        array = np.resize(special, count)
    elif values.startswith("corner-") and count:
        index = {"first": 0, "middle": count // 2, "ninth": min(8, count - 1), "last": count - 1}[values[7:]]
        array[index : index + 1] = special[:1]
    return Tensor(spec.name, spec.datatype, shape, array.reshape(shape))


def _get_all_ones(datatype: str, *, in_json: bool) -> Array:
    """Return the element whose bits are all ones, or a substitute if JSON cannot represent it."""
    if datatype == "BYTES":
        return to_object_array([b"\x7f\x7f\x7f\x7f" if in_json else b"\xff\xff\xff\xff"])
    if datatype == "BOOL":
        return np.array([True])
    dtype = DATATYPES[datatype].dtype
    if dtype.kind == "f" and in_json:
        return np.array([1], dtype)
    if datatype == "UINT64" and in_json:
        return np.array([MAX_EXACT_INTEGER], dtype)
    return np.frombuffer(b"\xff" * dtype.itemsize, dtype)


def _list_corner_values(datatype: str, *, in_json: bool) -> Array:
    """Return corner values of a datatype; with `in_json`, only values that every JSON library reads and preserves."""
    if datatype == "BOOL":
        return np.array([True, False, True])
    if datatype == "BYTES":
        groups = TEXTS if in_json else {**TEXTS, **BYTE_STRINGS}
        return to_object_array(
            [element for group in groups.values() for element in group if len(element) <= _MAX_ELEMENT_BYTES]
        )
    if datatype in INTEGER_CORNERS:
        listed = [value for group in INTEGER_CORNERS[datatype].values() for value in group]
        held = [value for value in listed if abs(value) <= MAX_EXACT_INTEGER] if in_json else listed
        return np.array(held, DATATYPES[datatype].dtype)
    if in_json:
        return np.array(_JSON_FLOATS[datatype], DATATYPES[datatype].dtype)
    return from_bits("", datatype, [bits for group in get_bit_groups(datatype).values() for bits in group]).array
