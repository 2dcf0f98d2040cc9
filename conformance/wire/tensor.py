"""Tensors: converts numpy arrays to and from binary data and JSON.

Binary data are little-endian, row-major and packed (Triton and KServe, Binary Tensor Data Extension), like a contiguous
numpy array in memory. So numeric tensors are views of the body or the array, and are never copied. JSON integers are
not converted to floats for integer datatypes (`json_data.py`).
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
Values = Any  # nested sequences, an array, or a scalar
BLOCK_ELEMENTS = 64 * 1024  # elements that are compared at once: few enough for the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A named tensor.

    Attributes:
        datatype: a key of `DATATYPES`.
        shape: the dimensions; () for a single element.
        array: the elements, with this shape and the datatype's dtype; objects of type `bytes` for BYTES.
        is_approximate: whether the elements were read from JSON, so that decimal numbers are approximate.
        is_computed: whether arithmetic made the elements, so that floats may differ in their last places.
        tolerance: the absolute error up to which a float counts as equal: for the outputs of a model whose answers
            differ a little each time.

    Raises ValueError: the array does not have the shape or the dtype.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    array: Array
    is_approximate: bool = False
    is_computed: bool = False
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.array.shape != self.shape or self.array.dtype != lookup(self.datatype).dtype:
            given = f"{self.array.dtype} {self.array.shape}"
            raise ValueError(f"{self.name}: an array of {given} is not {self.datatype} {self.shape}")

    @classmethod
    def from_values(cls, name: str, datatype: str, values: Values, shape: Sequence[int] | None = None) -> Tensor:
        """Build a tensor from nested lists, an array or a scalar; BYTES elements are `bytes`, or `str` to encode.

        An array with the right dtype is not copied.

        Raises:
            ValueError: the datatype cannot represent the values, or their number does not match the shape.
            OverflowError: an integer is out of the datatype's range.
        """
        array = _build_bytes_array(values) if datatype == "BYTES" else _build_numeric_array(datatype, values)
        array = array if shape is None else array.reshape(tuple(shape))
        return cls(name, datatype, array.shape, array)

    @property
    def elements(self) -> int:
        """The number of elements: the product of the dimensions, 1 for rank 0."""
        return int(self.array.size)

    @property
    def size(self) -> int:
        """The size of the tensor as binary data, in bytes."""
        if self.datatype != "BYTES":
            return int(self.array.nbytes)
        return sum(map(len, self.array.ravel().tolist())) + strings.PREFIX.size * self.elements

    def to_bytes(self) -> bytes | memoryview:
        """Return the tensor as binary data; for numeric tensors a view of the array's memory, if contiguous."""
        if self.datatype == "BYTES":
            return strings.encode(self.array.ravel().tolist())
        flat = np.ascontiguousarray(self.array).reshape(-1)
        if words := lookup(self.datatype).words:
            flat = flat.view(words.newbyteorder("=")).astype(words, copy=False)
        return flat.view(np.uint8).data

    def to_json(self, *, nested: bool = False) -> list[Any]:
        """Return the elements as values for `json.dumps`: flat in row-major order, or nested like the shape.

        FP16, BF16 and FP32 elements become doubles of the same value. A tensor of rank 0 becomes a list of one element.

        Raises ValueError: a BYTES element is not UTF-8, so that JSON cannot represent it.
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


def _build_bytes_array(values: Values) -> Array:
    array = np.array(values, dtype=object)
    elements = array.ravel().tolist()
    if set(map(type, elements)) != {bytes}:
        elements = [element.encode() if isinstance(element, str) else element for element in elements]
        if not all(isinstance(element, bytes) for element in elements):
            raise ValueError("the elements of a BYTES tensor must be bytes or str")
    flat = np.empty(len(elements), dtype=object)
    flat[:] = elements
    return flat.reshape(array.shape)


def _build_numeric_array(datatype: str, values: Values) -> Array:
    given = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    array: Array = given.astype(lookup(datatype).dtype, copy=False)
    if lookup(datatype).is_integer and not np.array_equal(array, given):  # numpy wraps, and truncates
        raise ValueError(f"the datatype {datatype} cannot represent the values")
    return array


def decode(datatype: str, shape: Sequence[int], buffer: bytes | bytearray | memoryview) -> Array:
    """Decode an array of this shape from binary data; for numeric datatypes the array is a view of `buffer`.

    BOOL bytes other than 0 and 1 are accepted: `find_bool_faults` reports them.

    Raises:
        DecodeError: the buffer does not contain exactly this tensor (size-mismatch, bytes-*); raised before memory is
            allocated for the shape.
        ValueError: the datatype is unknown, or numpy does not support the shape.
    """
    info = lookup(datatype)
    count = math.prod(shape)
    if info.size is None:
        elements = (
            np.empty(0, dtype=object)
            if count == 0 and not buffer
            else _build_object_array(strings.decode(buffer, count))
        )
        return elements.reshape(tuple(shape))
    if len(buffer) != count * info.size:
        expected = f"{format_value(count * info.size)} bytes for {datatype} {format_value(list(shape))}"
        raise DecodeError(Finding("size-mismatch", "tensor", 0, expected, f"{len(buffer)} bytes"))
    if info.words:
        words = np.frombuffer(buffer, dtype=info.words).astype(info.words.newbyteorder("="), copy=False)
        return words.view(info.dtype).reshape(tuple(shape))
    return np.frombuffer(buffer, dtype=info.dtype).reshape(tuple(shape))


def _build_object_array(elements: list[bytes]) -> Array:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


def find_bool_faults(array: Array) -> tuple[Finding, ...]:
    """Return a finding (bool-byte) for the first BOOL byte that is neither 0 nor 1; an empty tuple if there is none."""
    octets = array.reshape(-1).view(np.uint8)
    wrong = np.flatnonzero(octets > 1)
    if not wrong.size:
        return ()
    index = int(wrong[0])
    return (Finding("bool-byte", f"element {index}", index, "00 or 01", f"{octets[index]:02x}"),)


def find_first_difference(expected: Array, actual: Array, datatype: str, *, json: bool = False) -> int | None:
    """Return the index in row-major order of the first element that differs, or None.

    Elements are compared bitwise, so that -0.0 differs from 0.0. All NaNs are equal. With `json`, -0.0 equals 0.0,
    because not every JSON writer keeps the sign. Shapes are not compared; if one array has more elements, the first
    extra element differs.
    """
    size = min(expected.size, actual.size)
    left, right = expected.reshape(-1)[:size], actual.reshape(-1)[:size]
    for start in range(0, size, BLOCK_ELEMENTS):
        differs = _find_differences(
            left[start : start + BLOCK_ELEMENTS], right[start : start + BLOCK_ELEMENTS], datatype, json
        )
        if differs.any():
            return start + int(differs.argmax())
    return None if expected.size == actual.size else size


def _find_differences(left: Array, right: Array, datatype: str, json: bool) -> Array:
    """Return a boolean array, true for elements that differ; both arrays have one dimension and the same length."""
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
