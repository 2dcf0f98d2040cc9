"""The tensors of a step: how many elements, which of them are special, and that no two steps send the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from conformance.checks.walk.covering import Step
from conformance.roles.compute import objects
from conformance.roles.corner_values import INTEGER_CORNERS, OCTETS, TEXTS, bits_of, from_bits
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.roles.sample_values import PERIOD, sample_shape
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

Array = np.ndarray[Any, Any]

MOST_ITEMS = 8  # of a batch, by roles.toml
# Floating-point numbers whose JSON form every reader and writer of doubles has right, and that are none too ordinary.
_JSON_FLOATS: Mapping[str, Sequence[float]] = {
    "FP16": (0.5, -2.0, 1024.0, -0.125),
    "FP32": (1e-20, -1e20, 0.5, 123456.75, 16777216.0, -0.0078125),
    "FP64": (1e-20, -1e200, 1e-300, 0.1, 9007199254740992.0, 123456.75),
}
_LONGEST = 300  # bytes of a BYTES element


def tensors_of(step: Step, model: Model, salt: int, *, over_grpc: bool = False) -> tuple[Tensor, ...]:
    """Return the inputs of a step, in declared order; `salt` makes them differ from those of every step near it."""
    in_json = step["classes"] != "none" if over_grpc else is_in_json(step)
    return tuple(
        _tensor(spec, _shape(step, spec, place, model), step, salt + 31 * place, in_json=in_json)
        for place, spec in enumerate(model.role.inputs)
    )


def is_in_json(step: Step) -> bool:
    """Whether any tensor of a step may travel as JSON, one way or the other; scores for classes are taken as if."""
    by_json = step["send"] in ("json", "mixed") or step["want"] not in ("binary", "all-binary", "raw")
    return by_json or step["classes"] != "none"


def near(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the same tensors but for the last element of the last one that has any."""
    changed = list(tensors)
    for place in reversed(range(len(changed))):
        if changed[place].elements:
            changed[place] = _with_another_end(changed[place])
            break
    return tuple(changed)


def _with_another_end(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1).copy()
    if tensor.datatype == "BYTES":
        flat[-1] = flat[-1][:-1] + b"y" if flat[-1].endswith(b"x") else flat[-1] + b"y"
    elif tensor.datatype == "BOOL":
        flat[-1] = not flat[-1]
    elif flat.dtype.kind == "f":
        flat[-1] = flat[-1] + 1 if np.isfinite(flat[-1]) and flat[-1] + 1 != flat[-1] else 3
    else:
        flat[-1] ^= 1  # which mostly takes as many digits
    return replace(tensor, array=flat.reshape(tensor.shape))


# --- shapes ---------------------------------------------------------------------------------------------------------


def _shape(step: Step, spec: TensorSpec, place: int, model: Model) -> tuple[int, ...]:
    """Return the shape of an input: the step's count is its first variable dimension, or its batch."""
    if step["count"] == "own":
        items = 1 if step["send"] == "raw" else 2  # a raw request is a batch of one
        return sample_shape(spec.shape, items if model.role.batching else None)
    count = _count_at(step, place, len(model.role.inputs))
    if model.role.batching:
        return sample_shape(spec.shape, max(1, min(count, MOST_ITEMS)))
    variable = [index for index, size in enumerate(spec.shape) if size < 0]
    others = 2 if count < 1000 else 1
    filled = [others if size < 0 else size for size in spec.shape]
    if variable:
        filled[variable[count % len(variable)]] = count
    return tuple(filled)


def _count_at(step: Step, place: int, inputs: int) -> int:
    """Return the count of one input: the step's where it is meant, else a small one of its own."""
    at = {"first": 0, "second": 1, "last": inputs - 1}.get(step["place"], place)
    return int(step["count"]) if at == place else 2 + place


# --- values ---------------------------------------------------------------------------------------------------------


def _tensor(spec: TensorSpec, shape: tuple[int, ...], step: Step, salt: int, *, in_json: bool) -> Tensor:
    values, count = step["values"], prod(shape)
    array = _ramp(spec.datatype, count, salt)
    # Which of the corners comes first is the step's, not the salt's: it has to be the same when the step is taken again.
    special = np.roll(_special(spec.datatype, in_json=in_json), int(step["corner"]))
    if values == "equal":
        array = np.resize(_ramp(spec.datatype, 1, salt), count)
    elif values == "ones":
        array = np.resize(_ones(spec.datatype, in_json=in_json), count)
    elif values == "corners":
        array = np.resize(special, count)
    elif values.startswith("corner-") and count:
        at = {"first": 0, "middle": count // 2, "ninth": min(8, count - 1), "last": count - 1}[values[7:]]
        array[at : at + 1] = special[:1]
    return Tensor(spec.name, spec.datatype, shape, array.reshape(shape))


def _ramp(datatype: str, count: int, salt: int) -> Array:
    """Return elements of which near ones differ, in every byte where they are integers."""
    k = np.arange(count, dtype=np.int64) % PERIOD
    if datatype == "BOOL":
        return np.asarray((k * k + salt) % 3 == 0)
    if datatype == "BYTES":
        return objects([b"%d\xc3\xa9%b" % (salt, b"x" * (n % 23)) for n in range(count)])
    dtype = DATATYPES[datatype].dtype
    if dtype.kind == "f":
        return np.asarray((1.5 + k * 0.25 + salt % 16 / 8).astype(dtype))
    bits = 8 * dtype.itemsize
    first, step = {8: (3, 5), 16: (0x0102, 0x25), 32: (0x00010203, 0x1111), 64: (2**53 + 1, 0x10001)}[bits]
    numbers = (first + k * step + salt * (0x101 if bits > 16 else 1)) & (2 ** (bits - 1) - 1)
    return np.asarray(np.where((k % 2 == 1) & (dtype.kind == "i"), -numbers, numbers).astype(dtype))


def _ones(datatype: str, *, in_json: bool) -> Array:
    """Return the element whose bits are all ones, or what is next to it where JSON has no such thing."""
    if datatype == "BYTES":
        return objects([b"\x7f\x7f\x7f\x7f" if in_json else b"\xff\xff\xff\xff"])
    if datatype == "BOOL":
        return np.array([True])
    dtype = DATATYPES[datatype].dtype
    if dtype.kind == "f" and in_json:
        return np.array([1], dtype)
    return np.frombuffer(b"\xff" * dtype.itemsize, dtype)


def _special(datatype: str, *, in_json: bool) -> Array:
    """Return corner values of a datatype; where JSON carries them, those that it carries by any account."""
    if datatype == "BOOL":
        return np.array([True, False, True])
    if datatype == "BYTES":
        groups = TEXTS if in_json else {**TEXTS, **OCTETS}
        return objects([element for group in groups.values() for element in group if len(element) <= _LONGEST])
    if datatype in INTEGER_CORNERS:
        listed = [value for group in INTEGER_CORNERS[datatype].values() for value in group]
        return np.array(listed, DATATYPES[datatype].dtype)
    if in_json:
        return np.array(_JSON_FLOATS[datatype], DATATYPES[datatype].dtype)
    return from_bits("", datatype, [bits for group in bits_of(datatype).values() for bits in group]).array
