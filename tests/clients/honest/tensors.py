"""Datatypes: binary form to elements and back."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import prod
from typing import Any

from tests.clients.honest.caller import MalformedError

CODES = {
    "BOOL": "?",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
}
BF16, BYTES = "BF16", "BYTES"
PREFIX = struct.Struct("<I")


def element_size(datatype: str) -> int:
    """Return the size of an element in bytes; raises MalformedError for a datatype that has none."""
    if datatype == BF16:
        return 2
    if datatype not in CODES:
        raise MalformedError(f"datatype {datatype}")
    return struct.calcsize(f"<{CODES[datatype]}")


def count(shape: Sequence[int]) -> int:
    return prod(shape)


def expect_fit(datatype: str, shape: Sequence[int], data: bytes) -> None:
    """Raise MalformedError unless the binary form has the elements of the shape."""
    if datatype == BYTES:
        found = sum(1 for _ in strings(data))
        if found != count(shape):
            raise MalformedError(f"{found} elements for shape {list(shape)}")
    elif len(data) != count(shape) * element_size(datatype):
        raise MalformedError(f"{len(data)} bytes for {datatype} {list(shape)}")
    elif datatype == "BOOL" and not set(data) <= {0, 1}:
        raise MalformedError("a byte of BOOL that is neither 0 nor 1")


def strings(data: bytes) -> Iterator[bytes]:
    """Yield the elements of a BYTES tensor; raises MalformedError where a length leads past the end."""
    at = 0
    while at < len(data):
        if at + PREFIX.size > len(data):
            raise MalformedError("the data end within a length")
        (length,) = PREFIX.unpack_from(data, at)
        at += PREFIX.size
        if at + length > len(data):
            raise MalformedError("an element leads past the end")
        yield data[at : at + length]
        at += length


def elements(datatype: str, data: bytes) -> list[Any]:
    """Return the elements of a binary form: bool, int, float or bytes."""
    if datatype == BYTES:
        return list(strings(data))
    size = element_size(datatype)
    if datatype == BF16:
        return [struct.unpack("<f", bytes(2) + data[at : at + size])[0] for at in range(0, len(data), size)]
    return list(struct.unpack(f"<{len(data) // size}{CODES[datatype]}", data))


def framed(element: bytes) -> bytes:
    """Return an element of BYTES behind its length."""
    return PREFIX.pack(len(element)) + element


def packed(datatype: str, values: Sequence[Any]) -> bytes:
    """Return the binary form of elements; raises MalformedError for one that is none of the datatype."""
    if datatype == BYTES:
        return b"".join(framed(_as_bytes(value)) for value in values)
    element_size(datatype)
    as_element = _as_bool if datatype == "BOOL" else _as_float if "FP" in datatype or datatype == BF16 else _as_integer
    checked = [as_element(value) for value in values]
    try:
        if datatype == BF16:
            return b"".join(_rounded(value) for value in checked)
        return struct.pack(f"<{len(checked)}{CODES[datatype]}", *checked)
    except (struct.error, OverflowError) as error:
        raise MalformedError(f"an element out of range: {error}") from error


def _rounded(value: float) -> bytes:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", min((bits + 0x7FFF + (bits >> 16 & 1)) >> 16, 0xFFFF))


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise MalformedError("an element that is no string")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise MalformedError("a string that is no text") from error


def _as_bool(value: Any) -> bool:
    if value not in (True, False):
        raise MalformedError("an element that is no boolean")
    return bool(value)


def _as_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise MalformedError("an element that is no number")
    return float(value)


def _as_integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value != int(value):
        raise MalformedError("an element that is no integer")
    return int(value)
