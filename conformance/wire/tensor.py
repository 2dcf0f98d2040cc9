"""Tensors: numpy arrays to and from the two forms in which they travel, binary data and JSON.

Binary data are little-endian, row-major and packed (Triton and KServe, Binary Tensor Data Extension), which is what a
contiguous numpy array is in memory: numeric tensors are views of the body, or of the array, and are never copied.
JSON data are read without going through floats where the datatype is an integer (`json_data.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.wire import strings
from conformance.wire.datatypes import lookup
from conformance.wire.finding import DecodeError, Finding, format_value
from conformance.wire.json_data import from_json

__all__ = ["Tensor", "decode", "find_bool_faults", "find_first_difference", "from_json"]

Array = NDArray[Any]
Values = Any  # nested sequences, an array, or one value
BLOCK_ELEMENTS = 64 * 1024  # elements that are compared at once: few enough to stay in the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A named tensor.

    Attributes:
        name: of the model's input or output.
        datatype: a key of `DATATYPES`.
        shape: the dimensions; () is one element.
        array: the elements, of that shape and of the datatype's dtype; objects of type `bytes` for BYTES.
        is_near: the elements were read from JSON, so that decimal numbers are near to the right ones.

    Raises:
        ValueError: array, datatype and shape do not belong together.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    array: Array
    is_near: bool = False

    def __post_init__(self) -> None:
        if self.array.shape != self.shape or self.array.dtype != lookup(self.datatype).dtype:
            raise ValueError(f"{self.name}: an array of {self.array.dtype} {self.array.shape} is no {self.datatype}")

    @classmethod
    def of(cls, name: str, datatype: str, values: Values, shape: Sequence[int] | None = None) -> Tensor:
        """Return a tensor of `values`: nested lists, an array or one value; for BYTES `bytes`, or `str` as UTF-8.

        An array of the right dtype is kept, not copied.

        Raises:
            ValueError: the values do not fit the datatype or the shape.
            OverflowError: an integer does not fit the datatype.
        """
        array = _bytes_array(values) if datatype == "BYTES" else _numeric_array(datatype, values)
        array = array if shape is None else array.reshape(tuple(shape))
        return cls(name, datatype, array.shape, array)

    @property
    def elements(self) -> int:
        """The number of elements: the product of the dimensions, 1 for rank 0."""
        return int(self.array.size)

    @property
    def size(self) -> int:
        """The bytes of the binary form."""
        if self.datatype != "BYTES":
            return int(self.array.nbytes)
        return sum(map(len, self.array.ravel().tolist())) + strings.PREFIX.size * self.elements

    def to_bytes(self) -> bytes | memoryview:
        """Return the binary form; for numeric tensors the array's own memory, unless it is not contiguous."""
        if self.datatype == "BYTES":
            return strings.encode(self.array.ravel().tolist())
        flat = np.ascontiguousarray(self.array).reshape(-1)
        if words := lookup(self.datatype).words:
            flat = flat.view(words.newbyteorder("=")).astype(words, copy=False)
        return flat.view(np.uint8).data

    def to_json(self, *, nested: bool = False) -> list[Any]:
        """Return the elements as values for `json.dumps`: flat in row-major order, or nested as the shape is.

        FP16, BF16 and FP32 elements become the doubles that equal them. Rank 0 is a list of one element.

        Raises:
            ValueError: a BYTES element is not UTF-8, which JSON cannot carry.
        """
        array = self.array if nested and self.array.ndim else self.array.reshape(-1)
        if self.datatype == "BYTES":
            texts = np.empty(array.size, dtype=object)
            texts[:] = [element.decode() for element in array.ravel().tolist()]
            array = texts.reshape(array.shape)
        elif lookup(self.datatype).words:
            with np.errstate(invalid="ignore"):  # a signalling NaN
                array = array.astype(np.float64)
        values: list[Any] = array.tolist()
        return values


def _bytes_array(values: Values) -> Array:
    array = np.array(values, dtype=object)
    elements = array.ravel().tolist()
    if set(map(type, elements)) != {bytes}:
        elements = [element.encode() if isinstance(element, str) else element for element in elements]
        if not all(isinstance(element, bytes) for element in elements):
            raise ValueError("a BYTES tensor is made of bytes and str elements")
    flat = np.empty(len(elements), dtype=object)
    flat[:] = elements
    return flat.reshape(array.shape)


def _numeric_array(datatype: str, values: Values) -> Array:
    given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    array: Array = given.astype(lookup(datatype).dtype, copy=False)
    if lookup(datatype).is_integer and not np.array_equal(array, given):  # numpy wraps, and cuts fractions off
        raise ValueError(f"values do not fit {datatype}")
    return array


def decode(datatype: str, shape: Sequence[int], buffer: bytes | bytearray | memoryview) -> Array:
    """Return the elements that `buffer` holds, of that shape; a view of the buffer for numeric datatypes.

    A BOOL byte other than 0 and 1 is no obstacle: `find_bool_faults` reports it.

    Raises:
        DecodeError: the buffer does not hold exactly this tensor (size-mismatch, bytes-*); nothing is allocated by
            the shape before that is known.
        ValueError: the datatype is unknown, or numpy cannot have an array of this shape.
    """
    info = lookup(datatype)
    count = math.prod(shape)
    if info.size is None:
        elements = np.empty(0, dtype=object) if count == 0 and not buffer else _objects(strings.decode(buffer, count))
        return elements.reshape(tuple(shape))
    if len(buffer) != count * info.size:
        expected = f"{format_value(count * info.size)} bytes for {datatype} {format_value(list(shape))}"
        raise DecodeError(Finding("size-mismatch", "tensor", 0, expected, f"{len(buffer)} bytes"))
    if info.words:
        words = np.frombuffer(buffer, dtype=info.words).astype(info.words.newbyteorder("="), copy=False)
        return words.view(info.dtype).reshape(tuple(shape))
    return np.frombuffer(buffer, dtype=info.dtype).reshape(tuple(shape))


def _objects(elements: list[bytes]) -> Array:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


def find_bool_faults(array: Array) -> tuple[Finding, ...]:
    """Return one finding (bool-byte) for the first byte of a decoded BOOL tensor that is neither 0 nor 1, or none."""
    octets = array.reshape(-1).view(np.uint8)
    wrong = np.flatnonzero(octets > 1)
    if not wrong.size:
        return ()
    index = int(wrong[0])
    return (Finding("bool-byte", f"element {index}", index, "00 or 01", f"{octets[index]:02x}"),)


def find_first_difference(expected: Array, actual: Array, datatype: str, *, json: bool = False) -> int | None:
    """Return the flat index of the first element that differs, or None.

    Elements are compared bit by bit, so that -0.0 is not 0.0, but any NaN is any other NaN: payloads are not judged.
    With `json`, -0.0 and 0.0 are one: not every JSON writer keeps the sign. Shapes are the caller's to compare; where
    one array is longer, its first extra element differs.
    """
    size = min(expected.size, actual.size)
    left, right = expected.reshape(-1)[:size], actual.reshape(-1)[:size]
    for start in range(0, size, BLOCK_ELEMENTS):
        differs = _differences(
            left[start : start + BLOCK_ELEMENTS], right[start : start + BLOCK_ELEMENTS], datatype, json
        )
        if differs.any():
            return start + int(differs.argmax())
    return None if expected.size == actual.size else size


def _differences(left: Array, right: Array, datatype: str, json: bool) -> Array:
    """Return of each element whether it differs; the arrays are of one length and have one dimension."""
    if datatype == "BYTES":
        return np.fromiter(map(bytes.__ne__, left.tolist(), right.tolist()), dtype=bool, count=left.size)
    bits = f"u{left.dtype.itemsize}"
    differs: Array = np.ascontiguousarray(left).view(bits) != np.ascontiguousarray(right).view(bits)
    if lookup(datatype).is_float and differs.any():
        with np.errstate(invalid="ignore"):  # a signalling NaN
            differs &= ~(np.isnan(left) & np.isnan(right))
            if json:
                differs &= ~((left == 0) & (right == 0))
    return differs
