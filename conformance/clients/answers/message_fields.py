"""Protobuf's encoding, as much of it as an answer needs: fields by number, written by hand.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

VARINT: Final = 0  # wire types
DELIMITED: Final = 2


def varint(value: int) -> bytes:
    """Return an integer in groups of seven bits, the lowest first; below zero, two's complement of 64 bits."""
    rest = value % 2**64
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def tag(number: int, wire_type: int) -> bytes:
    """Return what stands in front of a field."""
    return varint(number << 3 | wire_type)


def delimited(number: int, octets: bytes) -> bytes:
    """Return a field of bytes, of a message, or of packed numbers."""
    return tag(number, DELIMITED) + varint(len(octets)) + octets


def text(number: int, value: str) -> bytes:
    """Return a field of text; an empty one is left out, as an absent one reads the same."""
    return delimited(number, value.encode()) if value else b""


def packed(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers, packed; without values it is left out."""
    octets = b"".join(map(varint, values))
    return delimited(number, octets) if octets else b""


def unpacked(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers, each behind a tag of its own, which readers have to take as well."""
    return b"".join(tag(number, VARINT) + varint(value) for value in values)
