"""Protobuf's encoding, as much of it as an answer needs: fields by number, written by hand.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

VARINT: Final = 0  # wire types
DELIMITED: Final = 2


def encode_varint(value: int) -> bytes:
    """Return an integer in groups of seven bits, the lowest first; below zero, two's complement of 64 bits."""
    rest = value % 2**64
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def encode_tag(number: int, wire_type: int) -> bytes:
    """Return what stands in front of a field."""
    return encode_varint(number << 3 | wire_type)


def encode_delimited(number: int, octets: bytes) -> bytes:
    """Return a field of bytes, of a message, or of packed numbers."""
    return encode_tag(number, DELIMITED) + encode_varint(len(octets)) + octets


def encode_text(number: int, value: str) -> bytes:
    """Return a field of text; an empty one is left out, as an absent one reads the same."""
    return encode_delimited(number, value.encode()) if value else b""


def encode_packed(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers, packed; without values it is left out."""
    octets = b"".join(map(encode_varint, values))
    return encode_delimited(number, octets) if octets else b""


def encode_unpacked(number: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers, each behind a tag of its own, which readers have to take as well."""
    return b"".join(encode_tag(number, VARINT) + encode_varint(value) for value in values)
