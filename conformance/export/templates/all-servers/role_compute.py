"""The functions that the models of the roles compute. Requires only numpy, 1.24 or newer.

A role is the data of its JSON file. Tensors are numpy arrays of their own datatype, with two exceptions: the elements
of BYTES are `bytes` objects, and BF16, which numpy lacks, is an array of uint16 with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Role = Mapping[str, Any]

DTYPES: Mapping[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BF16": np.uint16,
    "BYTES": np.object_,
}
MAX_BATCH = 64
MAX_EMITTED = 100_000


class RefusedError(ValueError):
    """The model does not accept the inputs; the message says why."""


def check(role: Role, given: Sequence[tuple[str, str, Sequence[int]]]) -> None:
    """Compare the inputs of a request, each with name, datatype and shape, with the declared ones.

    Raises:
        RefusedError: a name, a datatype or a shape differs from the declaration.
    """
    declared = {tensor["name"]: tensor for tensor in role["inputs"]}
    if sorted(name for name, _, _ in given) != sorted(declared):
        raise RefusedError(f"the inputs are {[name for name, _, _ in given]}, not {list(declared)}")
    for name, datatype, shape in given:
        tensor = declared[name]
        if datatype != tensor["datatype"]:
            raise RefusedError(f"input {name} is {datatype}, not {tensor['datatype']}")
        sizes = zip(shape, tensor["shape"])  # noqa: B905 (not in Python 3.9; the lengths are compared below)
        if len(shape) != len(tensor["shape"]) or any(size < 0 or size != wanted != -1 for size, wanted in sizes):
            raise RefusedError(f"input {name} has the shape {list(shape)}, not {tensor['shape']}")
        if role["batching"] and shape[0] > MAX_BATCH:
            raise RefusedError(f"input {name} is a batch of {shape[0]}, more than {MAX_BATCH}")


def run(role: Role, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the outputs in declared order. Integers wrap around; floats overflow to infinity.

    Raises:
        RefusedError: the model cannot compute with these values.
    """
    ordered = [inputs[tensor["name"]] for tensor in role["inputs"]]
    with np.errstate(all="ignore"):
        return list(MODELS[role["compute"]](role, *ordered))


def texts(elements: Sequence[bytes], shape: Sequence[int]) -> Array:
    """Return BYTES elements as an array."""
    array = np.empty(len(elements), np.object_)
    array[:] = elements
    return array.reshape(tuple(shape))


# --- the models: each takes its role and the inputs in declared order ----------------------------------------------


def identity(_role: Role, *inputs: Array) -> Sequence[Array]:
    """Return the inputs."""
    return inputs


def cast(role: Role, numbers: Array) -> Sequence[Array]:
    """Return the input in the output's datatype."""
    if role["inputs"][0]["datatype"] == "BF16":
        numbers = _widened(numbers)
    wanted = role["outputs"][0]["datatype"]
    return (_rounded(numbers) if wanted == "BF16" else numbers.astype(DTYPES[wanted]),)


def _widened(bits: Array) -> Array:
    """Return BF16 as FP32; the bits of BF16 are the upper half of FP32."""
    return np.left_shift(bits, 16, dtype=np.uint32).view(np.float32)


def _rounded(numbers: Array) -> Array:
    """Return numbers as BF16, rounded to nearest, ties to even; NaN stays NaN."""
    words = numbers.astype(np.float32).view(np.uint32)
    upper, lower = words >> 16, words & 0xFFFF
    up = (lower > 0x8000) | ((lower == 0x8000) & (upper % 2 == 1))
    return np.where(np.isnan(numbers), upper | 0x40, upper + up).astype(np.uint16)


def add_sub(_role: Role, b: Array, a: Array) -> Sequence[Array]:
    """Return A + B and A - B. B is declared first."""
    if a.shape != b.shape:
        raise RefusedError(f"A has the shape {list(a.shape)} and B {list(b.shape)}")
    return a + b, a - b


def length(_role: Role, elements: Array) -> Sequence[Array]:
    """Return the number of bytes in each element."""
    return (np.fromiter(map(len, elements.flat), np.int32, elements.size).reshape(elements.shape),)


def weighted_sum(_role: Role, numbers: Array) -> Sequence[Array]:
    """Return one number: the sum of each element times its position, counted from 1."""
    places = np.arange(numbers.size, dtype=np.int64) + 1
    return (np.array([np.sum(numbers.ravel() * places)], np.int64),)


def emit(_role: Role, counts: Array) -> Sequence[Array]:
    """Return the requested count of numbers and the requested count of strings, each counted from 1."""
    if counts.min() < 0 or counts.max() > MAX_EMITTED:
        raise RefusedError(f"COUNTS is {counts.tolist()}; a count is 0 to {MAX_EMITTED}")
    first, second = counts.tolist()
    return np.arange(1, first + 1, dtype=np.int32), texts([f"t{k + 1}".encode() for k in range(second)], (second,))


def text(_role: Role, numbers: Array) -> Sequence[Array]:
    """Return the input, and its elements in decimal."""
    return numbers, texts([str(number).encode() for number in numbers.ravel().tolist()], numbers.shape)


def table(role: Role, places: Array) -> Sequence[Array]:
    """Return the entry of the table at each index, counted from 1."""
    entries = np.array(role["table"], DTYPES[role["outputs"][0]["datatype"]])
    if places.min() < 1 or places.max() > entries.size:
        raise RefusedError(f"the elements are {places.ravel().tolist()}; each is a place from 1 to {entries.size}")
    return (entries[places.ravel().astype(np.int64) - 1],)


def transpose(_role: Role, numbers: Array) -> Sequence[Array]:
    """Return the input and its first matrix as text, with reversed dimensions: views, whose memory keeps its order."""
    return numbers.T, texts([str(number).encode() for number in numbers[0].ravel().tolist()], numbers.shape[1:]).T


def add_version(role: Role, numbers: Array) -> Sequence[Array]:
    """Return the input plus the number of this version."""
    return (numbers + np.int32(role["version"]),)


def documented_binary(_role: Role, words: Array, flags: Array) -> Sequence[Array]:
    """Return rows of a flag and a word."""
    return (_columns(flags, words).astype(np.float32),)


def documented_mixed(_role: Role, halves: Array, words: Array, flags: Array) -> Sequence[Array]:
    """Return rows of a flag and a half, and the sum of halves and words."""
    return _columns(flags, halves).astype(np.float16), np.add(halves, words, dtype=np.float32)


def _columns(left: Array, right: Array) -> Array:
    """Return an array of shape [3, 2] whose columns are the first three elements of each argument."""
    rows = np.zeros((3, 2))
    rows[:, 0] = left.ravel()[:3]
    rows[:, 1] = right.ravel()[:3]
    return rows


def documented_all_outputs(_role: Role, pair: Array) -> Sequence[Array]:
    """Return the pair and the reversed pair as rows, once as FP16 with a row of zeros, once without."""
    both = np.concatenate([pair, pair[:, ::-1]])
    return np.pad(both, ((0, 1), (0, 0))).astype(np.float16), both


def documented_raw(_role: Role, numbers: Array) -> Sequence[Array]:
    """Return the first three elements and the last three, in columns."""
    return numbers[:-1, np.newaxis], numbers[1:, np.newaxis]


MODELS: Mapping[str, Callable[..., Sequence[Array]]] = {
    "identity": identity,
    "cast": cast,
    "add_sub": add_sub,
    "length": length,
    "weighted_sum": weighted_sum,
    "emit": emit,
    "text": text,
    "table": table,
    "transpose": transpose,
    "add_version": add_version,
    "documented_binary": documented_binary,
    "documented_mixed": documented_mixed,
    "documented_all_outputs": documented_all_outputs,
    "documented_raw": documented_raw,
}
