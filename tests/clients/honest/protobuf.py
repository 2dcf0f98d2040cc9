"""Protocol buffers on the wire: fields to bytes and back."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from tests.clients.honest.caller import MalformedError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
WRAP = 1 << 64


def varint(number: int) -> bytes:
    """Return a number as a varint; a negative one has ten bytes."""
    number %= WRAP
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def message(field: int, data: bytes) -> bytes:
    """Return a field of bytes, a string or a message."""
    return varint(field << 3 | LENGTH) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """Return a field of text; nothing for the empty one, which is the default."""
    return message(field, value.encode()) if value else b""


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def integers(field: int, values: Iterable[int]) -> bytes:
    """Return a packed field of integers; nothing without any."""
    data = b"".join(map(varint, values))
    return message(field, data) if data else b""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: an integer of a varint, the bytes of any other."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        kind = key & 7
        if kind == VARINT:
            number, at = read_varint(data, at)
            yield key >> 3, number
            continue
        if kind == LENGTH:
            length, at = read_varint(data, at)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise MalformedError(f"wire type {kind}")
        if at + length > len(data):
            raise MalformedError("a field leads past the end")
        yield key >> 3, data[at : at + length]
        at += length


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(10):
        if at + place >= len(data):
            break
        number |= (data[at + place] & 0x7F) << 7 * place
        if data[at + place] < 0x80:
            return number % WRAP, at + place + 1
    raise MalformedError("a number without end")


def unpacked(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = read_varint(value, at)
        yield number


def signed(number: int) -> int:
    return struct.unpack("<q", struct.pack("<Q", number))[0]  # type: ignore[no-any-return]
