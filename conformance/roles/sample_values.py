"""Sample values for tensors, chosen so that swapped bytes, transposition and truncation change them.

A salt is a number that changes all values. Two checks of one model use different salts, so that the suite detects an
old answer to another request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from conformance.roles.compute import to_object_array
from conformance.wire.datatypes import DATATYPES, lookup
from conformance.wire.tensor import Tensor

# A single variable dimension becomes 3; several become 2, 3, 4, 2 from the left.
_DIMENSION_SIZES = (2, 3, 4, 2)
# Elements after which a long tensor repeats, so that its recording can be compressed. A prime, so that blocks of a
# power of two differ; FP16 can represent this many values exactly.
PERIOD = 997
# Bits of an integer -> the first sample value, whose bytes are distinct, and the step to the next one. Those of 64 bits
# stay below 2**53: a JSON parser may refuse larger integers (RFC 8259, 6), and only rows about integers send them.
_INTEGER_SERIES = {8: (3, 5), 16: (0x0102, 0x25), 32: (0x00010203, 0x1111), 64: (0x0001020304050607, 0x10001)}


def make_sample_shape(shape: Sequence[int], batch: int | None = None) -> tuple[int, ...]:
    """Replace the variable dimensions of a shape by sizes, and prepend the batch dimension, unless it is None."""
    sizes = iter(_DIMENSION_SIZES if sum(size < 0 for size in shape) > 1 else (3,))
    filled = tuple(next(sizes) if size < 0 else size for size in shape)
    return filled if batch is None else (batch, *filled)


def make_sample_tensor(name: str, datatype: str, shape: Sequence[int], salt: int = 0) -> Tensor:
    """Return a tensor with sample values for this salt (0 .. 255); `shape` has no variable dimensions."""
    count = prod(shape)
    period = _compute_elements(datatype, min(count, PERIOD), salt)
    array = np.resize(period, count) if count > PERIOD else period
    return Tensor(name, datatype, tuple(shape), array.reshape(tuple(shape)))


@lru_cache(maxsize=1024)  # rows send the same few values in many requests
def _compute_elements(datatype: str, count: int, salt: int) -> np.ndarray[Any, Any]:
    value = _find_value_function(datatype)
    array = Tensor.from_values("", datatype, [value(k, salt) for k in range(count)]).array
    array.flags.writeable = False  # tensors share it
    return array


def _build_integer_function(bits: int, signed: bool) -> Callable[[int, int], int]:
    """Return a function of (k, salt) that computes integers, of alternating signs if they are signed."""
    start, step = _INTEGER_SERIES[bits]
    room: int = 2 ** (bits - 1)

    def value(k: int, salt: int) -> int:
        number = (start + k * step + salt * (0x101 if bits > 16 else 1)) % room
        return -number if signed and k % 2 else number

    return value


def _compute_exact_number(k: int, salt: int) -> float:
    """Return a number that FP16 and BF16 represent exactly, at least for small k, so that a cast is lossless."""
    return 1.5 + k * 0.25 + (salt % 16) / 8


def _compute_long_number(k: int, salt: int) -> float:
    """Return a number that needs all digits of a double."""
    return 0.1 + k + salt


def _find_value_function(datatype: str) -> Callable[[int, int], Any]:
    """Return a function of (k, salt) that computes element k of a tensor of this datatype."""
    info = lookup(datatype)
    if info.kind == "bool":
        return lambda k, salt: (k * k + salt) % 3 == 0
    if info.kind == "text":
        return lambda k, salt: (f"{salt}é" + "x" * (k % 23)).encode()
    if info.is_integer:
        return _build_integer_function(8 * info.dtype.itemsize, signed=info.dtype.kind == "i")
    return _compute_long_number if info.dtype.itemsize == 8 else _compute_exact_number


def make_ramp(datatype: str, count: int, salt: int) -> np.ndarray[Any, Any]:
    """Return `count` elements in which nearby elements differ; integers differ in every byte. `salt` is 0 .. 255."""
    k = np.arange(count, dtype=np.int64) % PERIOD
    if datatype == "BOOL":
        return np.asarray((k * k + salt) % 3 == 0)
    if datatype == "BYTES":
        return to_object_array([b"%d\xc3\xa9%b" % (salt, b"x" * (n % 23)) for n in range(count)])
    dtype = DATATYPES[datatype].dtype
    if dtype.kind == "f":
        return np.asarray((1.5 + k * 0.25 + salt % 16 / 8).astype(dtype))
    bits = 8 * dtype.itemsize
    first, step = _INTEGER_SERIES[bits]
    numbers = (first + k * step + salt * (0x101 if bits > 16 else 1)) & (2 ** (bits - 1) - 1)
    return np.asarray(np.where((k % 2 == 1) & (dtype.kind == "i"), -numbers, numbers).astype(dtype))
