"""Numpy arrays to and from what the protocol sends: JSON data, binary data, classifications."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from models import DTYPES, Array, Refused, bytes_array, widen_bf16

# OIP lets a server "coerce each element to the required type or return an error". The one coercion made here is of an
# integer for a float; numpy alone would also take true for 1 and 1.5 for 1.
JSON_TYPES: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}, "O": {str}}


def reshaped(array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return array.reshape(shape)
    except (ValueError, OverflowError):  # [0, 2**64 - 1] has no elements, but numpy cannot have it either
        raise Refused(f"the server cannot hold a tensor of shape {list(shape)}") from None


def from_json(data: list[Any], datatype: str, shape: tuple[int, ...]) -> Array:
    if datatype == "BF16":
        raise Refused("BF16 has no JSON representation, send the tensor as binary data")
    # As objects nothing is converted, and what is ragged stays a list, to be refused as an element.
    try:
        found = np.array(data, dtype=object)
    except ValueError as error:
        raise Refused(f"the data are ragged: {error}") from None
    natural = shape[: shape.index(0) + 1] if 0 in shape else shape  # JSON cannot show dimensions behind a zero
    if found.shape != natural and (found.ndim != 1 or found.size != math.prod(shape)):
        raise Refused(f"data of shape {list(found.shape)} given for a tensor of shape {list(shape)}")
    dtype = DTYPES[datatype]
    if not set(map(type, found.flat)) <= JSON_TYPES[dtype.kind]:
        raise Refused(f"the data must be flat, or nested as the shape says, with nothing but {datatype} elements")
    try:
        if datatype == "BYTES":
            return reshaped(bytes_array([text.encode() for text in found.flat], (-1,)), shape)
        with np.errstate(over="ignore"):
            array = found.astype(np.float64).astype(dtype) if dtype.kind == "f" else found.astype(dtype)
    except OverflowError:
        raise Refused(f"an element of the data is out of the range of {datatype}") from None
    if not np.isfinite(array).all():
        raise Refused(f"an element of the data is out of the range of {datatype}")
    return reshaped(array, shape)


def bytes_elements(raw: memoryview) -> Iterator[bytes]:
    """Binary extension: "a 4-byte unsigned integer giving the length followed by the actual bytes"."""
    while raw:
        if len(raw) < 4 or len(raw) - 4 < (length := struct.unpack_from("<I", raw)[0]):
            raise Refused("the binary data end inside a BYTES element")
        yield raw[4 : 4 + length].tobytes()
        raw = raw[4 + length :]


def from_binary(raw: memoryview, datatype: str, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    if datatype == "BYTES":
        elements = list(bytes_elements(raw))
        if len(elements) != count:
            raise Refused(f"{len(elements)} elements of binary data given for a tensor of shape {list(shape)}")
        return reshaped(bytes_array(elements, (-1,)), shape)
    dtype = DTYPES[datatype]
    if len(raw) != count * dtype.itemsize:
        raise Refused(f"{len(raw)} bytes given for a tensor of {datatype} and shape {list(shape)}")
    if datatype == "BOOL":
        octets = np.frombuffer(raw, dtype=np.uint8)
        if (octets > 1).any():
            raise Refused("a BOOL element is a byte of value 0 or 1")
        return reshaped(octets.view(np.bool_), shape)
    return reshaped(np.frombuffer(raw, dtype=dtype), shape)


def to_json(array: Array, datatype: str) -> list[Any]:
    """The natural, nested form."""
    if datatype == "BF16":
        raise Refused("BF16 has no JSON representation, ask for binary_data")
    if datatype == "BYTES":
        try:
            array = np.array([item.decode() for item in array.flat], dtype=object).reshape(array.shape)
        except UnicodeDecodeError:
            raise Refused("an element is not UTF-8 and cannot be a JSON string, ask for binary_data") from None
    elif not np.isfinite(array).all():
        raise Refused("an element is NaN or Infinity and cannot be a JSON number, ask for binary_data")
    return array.tolist() if array.ndim else [array.item()]  # OIP: "provided in a JSON array"


def to_binary(array: Array, datatype: str) -> bytes:
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(item)) + item for item in array.flat)
    return array.astype(DTYPES[datatype], copy=False).tobytes()


def classify(array: Array, datatype: str, count: Any, labels: Sequence[str], batching: bool) -> Array:
    if datatype in ("BOOL", "BYTES"):
        raise Refused(f"{datatype} elements have no order to classify by")
    if type(count) is not int or count < 1:
        raise Refused("'classification' must be a positive integer")
    if datatype == "BF16":
        array = widen_bf16(array)
    if np.isnan(array).any():
        raise Refused("a NaN has no place in the order of the elements")
    items = array.reshape(array.shape[0], math.prod(array.shape[1:])) if batching else array.reshape(1, array.size)
    classes = items.shape[1]
    if count > classes:  # "The <count> dimension of the returned tensor will equal the “count” value"
        raise Refused(f"{count} classes wanted, the output has {classes}")
    texts = []
    for item in items:
        # Sorted backwards by a stable sort and reversed: of equal values the lower index comes first.
        best = classes - 1 - np.argsort(item[::-1], kind="stable")[: -count - 1 : -1]
        for index in best.tolist():
            label = f":{labels[index]}" if index < len(labels) else ""
            texts.append(f"{item[index]!s}:{index}{label}".encode())  # numpy's str is the shortest of the datatype
    return bytes_array(texts, (len(items), count) if batching else (count,))
