"""A tensor, its declaration and datatype, and its two wire formats: binary data and JSON data.

Binary data are little-endian and packed, every element in its native size, so little-endian numpy arrays already have
the wire format. Numeric data are not copied: a decoded tensor is a view of the body, encoded data a view of the array.

Sources: Triton, Binary Tensor Data Extension, "Binary Tensor Request"; Open Inference Protocol, REST, "Tensor Data"
and "Tensor Data Types". BF16 is an addition that no document of the extension names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from reference_server.errors import InferenceError, format_value
from reference_server.limits import get_limits


@dataclass(frozen=True)
class TensorSpec:
    """A declared input or output; `shape` excludes the batch dimension."""

    name: str
    datatype: str
    shape: tuple[int, ...]


class Signature(Protocol):
    """The declarations of a model; `table` is the lookup table of a model with compute `table`."""

    @property
    def version(self) -> str:
        """The version of the model."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs in declared order."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs in declared order."""

    @property
    def table(self) -> tuple[float, ...]:
        """The entries of the lookup table."""


NUMPY: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype(object),
}

# The documents do not define how 16-bit floats are written in JSON.
BINARY_ONLY: Final = frozenset({"FP16", "BF16"})

# Elements of these datatypes cannot be ranked for a classification.
NOT_SCORES: Final = frozenset({"BOOL", "BYTES"})

PREFIX_SIZE = 4  # bytes of the length in front of a BYTES element
SLICE = 32 * 1024  # elements; numpy blocks other threads while it converts Python objects


@dataclass(frozen=True)
class Tensor:
    """A tensor: `elements` are flat, in row-major order, of the datatype's numpy type; BYTES are `bytes` objects."""

    datatype: str
    shape: tuple[int, ...]
    elements: NDArray[Any]


def make_objects(items: Iterable[bytes]) -> NDArray[Any]:
    """Return `bytes` objects as an array of BYTES elements; refuse more than the limit."""
    elements = list(islice(items, get_limits().elements + 1))
    check_element_count(len(elements), "BYTES elements")
    return make_array(elements, NUMPY["BYTES"])


def make_array(items: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert Python objects to an array, a slice at a time."""
    array = np.empty(len(items), dtype)
    for start in range(0, len(items), SLICE):
        array[start : start + SLICE] = items[start : start + SLICE]
    return array


def iterate_items(elements: NDArray[Any]) -> Iterator[Any]:
    """Yield the elements as Python objects, converted a slice at a time."""
    return chain.from_iterable(elements[start : start + SLICE].tolist() for start in range(0, elements.size, SLICE))


def check_element_count(count: int, plural: str) -> None:
    """Refuse more elements than the limit for conversion to Python objects."""
    if count > get_limits().elements:
        raise InferenceError(f"the tensor has more than {get_limits().elements} {plural}, the limit of this server")


# --- binary data ---------------------------------------------------------------------------------------------------


def check_size(datatype: str, shape: tuple[int, ...], size: int) -> None:
    """Refuse a byte size that does not match datatype and shape."""
    count = math.prod(shape)
    if datatype == "BYTES":
        if size < count * PREFIX_SIZE:
            raise InferenceError(
                f"parameters.binary_data_size is {size}, but the {count} length prefixes of shape {list(shape)} alone "
                f"take {count * PREFIX_SIZE} bytes"
            )
    elif size != (expected := count * NUMPY[datatype].itemsize):
        raise InferenceError(
            f"parameters.binary_data_size is {size}, but shape {list(shape)} of {datatype} takes {expected} bytes"
        )


def decode_binary(datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """Read a tensor from binary data whose size `check_size` has accepted."""
    if datatype == "BYTES":
        elements = split_elements(data, math.prod(shape))
    elif datatype == "BOOL":
        elements = decode_bools(data)
    else:
        elements = np.frombuffer(data, dtype=NUMPY[datatype])
    return Tensor(datatype, shape, elements)


def decode_bools(data: memoryview) -> NDArray[Any]:
    """Read BOOL elements: one byte each, 1 for true and 0 for false."""
    octets = np.frombuffer(data, dtype=np.uint8)
    wrong = np.flatnonzero(octets > 1)
    if wrong.size:
        index = int(wrong[0])
        raise InferenceError(f"element {index} is the byte {octets[index]}, but a BOOL is 0 or 1")
    return octets.view(np.bool_)


def split_elements(data: memoryview, count: int) -> NDArray[Any]:
    """Read `count` BYTES elements: each a little-endian length of 4 bytes, then that many bytes."""
    check_element_count(min(count, len(data) // PREFIX_SIZE), "BYTES elements")
    octets, items, offset = bytes(data), [], 0
    for index in range(count):
        start = offset + PREFIX_SIZE
        if start > len(octets):
            raise InferenceError(
                f"element {index} of {count} needs a length prefix of 4 bytes, but {len(octets) - offset} are left"
            )
        length = int.from_bytes(octets[offset:start], "little")
        offset = start + length
        if offset > len(octets):
            raise InferenceError(
                f"element {index} of {count} has a length of {length}, but {len(octets) - start} bytes are left"
            )
        items.append(octets[start:offset])
    if offset != len(octets):
        raise InferenceError(f"{len(octets) - offset} bytes remain after the last of {count} BYTES elements")
    return make_objects(items)


def encode_binary(tensor: Tensor) -> bytes | memoryview:
    """Return a tensor's binary data."""
    if tensor.datatype == "BYTES":
        return join_elements(tensor.elements)
    return np.ascontiguousarray(tensor.elements).view(np.uint8).data


def join_elements(elements: Iterable[bytes]) -> bytes:
    """Encode BYTES elements, each after its length prefix."""
    return b"".join(chain.from_iterable((len(item).to_bytes(PREFIX_SIZE, "little"), item) for item in elements))


# --- JSON data -----------------------------------------------------------------------------------------------------


def decode_json(datatype: str, shape: tuple[int, ...], data: object) -> Tensor:
    """Read a tensor from JSON data: an array, flat or nested like the shape, in row-major order.

    Raises InferenceError if JSON cannot represent the datatype, the data do not match the shape, or an element does not
    fit the datatype.
    """
    if datatype in BINARY_ONLY:
        raise InferenceError(f"JSON cannot represent {datatype}: send binary data with parameters.binary_data_size")
    if not isinstance(data, list):
        raise InferenceError(f"data must be an array, not {format_value(data)}")
    return Tensor(datatype, shape, JSON_CONVERTERS[datatype](flatten(data, shape), datatype))


def flatten(data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Return the elements of flat or nested data in row-major order."""
    if not (data and isinstance(data[0], list)):
        if len(data) != math.prod(shape):
            raise InferenceError(f"data has {len(data)} elements, but shape {list(shape)} takes {math.prod(shape)}")
        return data
    arrays: list[Any] = [data]
    for axis, extent in enumerate(shape):
        if not all(isinstance(array, list) and len(array) == extent for array in arrays):
            raise InferenceError(
                f"data is not nested as shape {list(shape)}: dimension {axis} needs arrays of {extent}"
            )
        arrays = list(chain.from_iterable(arrays))
    return arrays


def refuse_misfit(items: list[Any], fits: Callable[[Any], bool], expected: str) -> None:
    """Refuse the data if an element does not fit; the message names the first such element."""
    for index, item in enumerate(items):
        if not fits(item):
            raise InferenceError(f"data element {index} is {format_value(item)}, expected {expected}")


def convert_integers(items: list[Any], datatype: str) -> NDArray[Any]:
    """Convert whole numbers, however written (1, 1.0, 1e0)."""
    limits = np.iinfo(NUMPY[datatype])
    low, high = int(limits.min), int(limits.max)
    if any(type(item) is float for item in items):
        items = [int(item) if type(item) is float and item.is_integer() else item for item in items]
    refuse_misfit(items, lambda item: type(item) is int and low <= item <= high, f"an integer from {low} to {high}")
    return make_array(items, NUMPY[datatype])


def convert_floats(items: list[Any], datatype: str) -> NDArray[Any]:
    """Convert numbers, rounded to the nearest value of the datatype; refuse numbers beyond its range."""
    refuse_misfit(items, lambda item: type(item) is int or type(item) is float, "a number")
    with np.errstate(over="ignore"):
        numbers = make_array([round_to_double(item) for item in items], np.dtype(np.float64)).astype(NUMPY[datatype])
    beyond = np.flatnonzero(~np.isfinite(numbers))
    if beyond.size:
        index = int(beyond[0])
        raise InferenceError(
            f"data element {index} is {format_value(items[index])}, expected a number within the range of {datatype}"
        )
    return numbers


def round_to_double(number: float) -> float:
    """Return the nearest double, or infinity on overflow."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def convert_bools(items: list[Any], datatype: str) -> NDArray[Any]:
    """Convert true and false; refuse numbers."""
    refuse_misfit(items, lambda item: type(item) is bool, "true or false")
    return make_array(items, NUMPY[datatype])


def convert_strings(items: list[Any], _datatype: str) -> NDArray[Any]:
    """Convert strings to UTF-8."""
    refuse_misfit(items, lambda item: type(item) is str, "a string")
    return make_objects(encode_utf8(item, f"data element {index}") for index, item in enumerate(items))


def encode_utf8(text: str, where: str) -> bytes:
    """Encode a string as UTF-8; refuse a lone surrogate, which JSON can escape and UTF-8 cannot encode."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InferenceError(f"{where} is {format_value(text)}, which contains half a surrogate pair") from None


JSON_CONVERTERS: dict[str, Callable[[list[Any], str], NDArray[Any]]] = {
    "BOOL": convert_bools,
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"), convert_integers),
    **dict.fromkeys(("FP32", "FP64"), convert_floats),
    "BYTES": convert_strings,
}


def encode_json(tensor: Tensor) -> list[Any]:
    """Return a tensor's JSON data as a flat list; floats become doubles of the same value.

    Raises InferenceError if JSON cannot represent the datatype or an element, or there are too many elements.
    """
    check_element_count(tensor.elements.size, "elements of JSON data")
    if tensor.datatype in BINARY_ONLY:
        raise InferenceError(f"JSON cannot represent {tensor.datatype}: request it with binary_data")
    if tensor.datatype == "BYTES":
        return [decode_text(item) for item in tensor.elements]
    if tensor.datatype in ("FP32", "FP64") and not np.isfinite(tensor.elements).all():
        raise InferenceError("JSON cannot represent NaN and infinity: request them with binary_data")
    return list(iterate_items(tensor.elements))


def decode_text(item: bytes) -> str:
    """Return a BYTES element as a JSON string."""
    try:
        return item.decode()
    except UnicodeDecodeError:
        raise InferenceError("JSON cannot represent bytes that are not UTF-8: request them with binary_data") from None
