"""Tensors as JSON, as binary data and as classes. Requires only numpy; role_compute.py defines the array types."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from role_compute import DTYPES as NATIVE
from role_compute import Array, RefusedError, texts

DTYPES = {datatype: np.dtype(native).newbyteorder("<") for datatype, native in NATIVE.items()}
# numpy kind -> accepted types of JSON values. An integer is a number; true is neither.
JSON_TYPES: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}, "O": {str}}


def from_json(data: list[Any], datatype: str, shape: Sequence[int]) -> Array:
    """Return a tensor from JSON, flat or nested like its shape."""
    dtype, array = DTYPES[datatype], np.array(data, np.object_)
    elements: list[Any] = array.ravel().tolist()
    # numpy ends the shape of nested data at the first empty array: [[], []] is (2, 0), for [2, 0, 3] as well.
    is_empty = not array.size and array.shape == tuple(shape[: array.ndim])
    is_shaped = is_empty or array.shape in ((prod(shape),), tuple(shape))
    if datatype == "BF16" or not is_shaped or not {*map(type, elements)} <= JSON_TYPES[dtype.kind]:
        raise RefusedError(f"the data are no {datatype} {list(shape)}")
    if datatype == "BYTES":
        return texts([text.encode() for text in elements], shape)
    try:
        with np.errstate(over="ignore"):
            numbers: Array = array.astype(dtype).reshape(tuple(shape))
    except OverflowError as error:
        raise RefusedError(f"an element is no {datatype}: {error}") from error
    if not np.isfinite(numbers).all():
        raise RefusedError(f"an element is no {datatype}")
    return numbers


def from_bytes(data: bytes, datatype: str, shape: Sequence[int]) -> Array:
    """Return a tensor from binary data: row-major, little-endian; each BYTES element follows its length."""
    if datatype == "BYTES":
        elements = split(data)
        if len(elements) != prod(shape):
            raise RefusedError(f"{len(elements)} elements are no {datatype} {list(shape)}")
        return texts(elements, shape)
    dtype = DTYPES[datatype]
    if len(data) != prod(shape) * dtype.itemsize or (datatype == "BOOL" and data.strip(b"\0\1")):
        raise RefusedError(f"{len(data)} bytes are no {datatype} {list(shape)}")
    return np.frombuffer(data, dtype).reshape(tuple(shape))


def split(data: bytes) -> list[bytes]:
    """Split BYTES data into elements, each preceded by a length of four bytes."""
    elements, place = [], 0
    while place < len(data):
        end = place + 4 + int.from_bytes(data[place : place + 4], "little")
        elements.append(data[place + 4 : end])
        place = end
    if place != len(data):
        raise RefusedError("the last element is cut short")
    return elements


def to_json(array: Array, datatype: str) -> list[Any]:
    """Return a tensor as flat JSON data."""
    if datatype == "BYTES":
        return [element.decode() for element in array.flat]
    if datatype == "BF16" or not np.isfinite(array).all():
        raise RefusedError("JSON cannot represent BF16, NaN or infinity: request binary data")
    return list(array.ravel().tolist())


def to_bytes(array: Array, datatype: str) -> bytes:
    """Return a tensor as binary data."""
    if datatype == "BYTES":
        return b"".join(len(element).to_bytes(4, "little") + element for element in array.flat)
    return array.astype(DTYPES[datatype]).tobytes()


def classes(array: Array, datatype: str, count: int, labels: Sequence[str], *, batching: bool) -> Array:
    """Return the highest elements of each batch entry as `value:index`, or `value:index:label` if labelled."""
    scores = np.left_shift(array, 16, dtype=np.uint32).view(np.float32) if datatype == "BF16" else array
    items = scores.reshape(len(scores) if batching else 1, -1)
    if datatype in ("BOOL", "BYTES") or not 1 <= count <= items.shape[1] or np.isnan(items).any():
        raise RefusedError(f"{datatype} {list(array.shape)} has no {count} highest elements")
    found = []
    for item in items:
        for index in np.argsort(item, kind="stable")[::-1][:count].tolist():
            label = f":{labels[index]}" if index < len(labels) else ""
            found.append(f"{item[index]!s}:{index}{label}".encode())
    return texts(found, (len(items), count) if batching else (count,))
