"""BYTES elements: a length prefix of four bytes, unsigned and little-endian, then the element's own bytes.

Triton and KServe, Binary Tensor Data Extension ("Binary Tensor Request" and "Data Representation"). An element is any
bytes at all: none, NUL, not UTF-8. Elements follow each other without padding.

Speed: a tensor can have a million elements. Encoding has no loop of its own; decoding does per element only what the
format forces it to do one after the other, on the hope that all is well, and nothing where all elements are of one
length. Only a buffer that turns out not to fit is walked again, slowly, to say what is wrong with it. `python -m
benchmarks bytes-encode bytes-decode` measures both.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from conformance.wire.finding import DecodeError, Finding, format_value

PREFIX = struct.Struct("<I")


class _Prefixes(dict[int, bytes]):
    """The encoded prefix of each length met so far."""

    def __missing__(self, length: int) -> bytes:
        prefix = self[length] = PREFIX.pack(length)
        return prefix


def encode(elements: Sequence[bytes]) -> bytes:
    """Return the binary form of `elements`.

    Raises:
        struct.error: an element is longer than the 2^32 - 1 bytes that a prefix can say.
    """
    lengths = set(map(len, elements))
    if len(lengths) == 1:
        return PREFIX.pack(*lengths).join([b"", *elements])
    # Prefixes and elements are laid into one list like the teeth of a zip, each set in one assignment, so that neither
    # the loop nor the joining runs in Python. A tensor has few different lengths: a prefix is looked up, not packed.
    parts = [b""] * (2 * len(elements))
    parts[0::2] = map(_Prefixes().__getitem__, map(len, elements))
    parts[1::2] = elements
    return b"".join(parts)


def decode(buffer: bytes | bytearray | memoryview, count: int) -> list[bytes]:
    """Return the `count` elements that `buffer` holds; `count` may be absurd, no memory is taken for it.

    Raises:
        DecodeError: the buffer is not exactly that many elements (bytes-prefix-truncated, bytes-past-end, bytes-count,
            bytes-stray); the offset is that of the prefix or byte to blame, counted from the buffer's start.
    """
    data = bytes(buffer)
    alike = _of_one_length(data, count)
    if alike is not None:
        return alike
    unpack_from = PREFIX.unpack_from
    elements: list[bytes] = []
    append = elements.append
    end = 0
    try:
        # Nothing is checked on the way: reading a prefix beyond the buffer raises, and an element that was cut short
        # by the buffer's end leaves `end` beyond it.
        for _ in range(count):
            start = end + 4
            end = start + unpack_from(data, end)[0]
            append(data[start:end])
    except struct.error:
        end = -1
    if end != len(data):
        raise DecodeError(_fault(data, count))
    return elements


def _of_one_length(data: bytes, count: int) -> list[bytes] | None:
    """Return the elements of a buffer, where all are as long as the first; None where they are not."""
    length = PREFIX.unpack_from(data)[0] if len(data) >= PREFIX.size else 0
    if length == 0 or len(data) != count * (PREFIX.size + length):
        return None
    table = np.frombuffer(data, dtype=[("length", "<u4"), ("element", f"V{length}")])
    elements: list[bytes] | None = table["element"].tolist() if (table["length"] == length).all() else None
    return elements


def find_offsets(buffer: bytes | bytearray | memoryview, count: int | None = None) -> list[int]:
    """Return where the prefix of each element begins, for up to `count` elements, as far as whole prefixes go.

    Never raises: the last element listed may be longer than the buffer.
    """
    found: list[int] = []
    at = 0
    while at + PREFIX.size <= len(buffer) and len(found) != count:
        found.append(at)
        at += PREFIX.size + int(PREFIX.unpack_from(buffer, at)[0])
    return found


def measure_size(buffer: bytes | bytearray | memoryview, count: int) -> int | None:
    """Return how many bytes the first `count` elements of a buffer take; None where it does not hold as many."""
    starts = find_offsets(buffer, count)
    if len(starts) < count:
        return None
    end = starts[-1] + PREFIX.size + int(PREFIX.unpack_from(buffer, starts[-1])[0]) if starts else 0
    return end if end <= len(buffer) else None


def _fault(data: bytes, count: int) -> Finding:
    """Return what keeps `data` from being `count` elements."""
    starts = find_offsets(data)
    length = PREFIX.unpack_from(data, starts[-1])[0] if starts else 0
    end = starts[-1] + PREFIX.size + length if starts else 0
    broken = end > len(data)
    whole = len(starts) - broken
    if end == len(data):
        at = starts[count] if count < whole else end
        return Finding("bytes-count", "tensor", at, f"{format_value(count)} elements", f"{whole} elements")
    if whole >= count:
        at = [*starts, end][count]
        actual = f"{len(data) - at} more bytes"
        return Finding("bytes-stray", "tensor", at, f"the end, after {count} elements", actual)
    if broken:
        left = len(data) - starts[-1] - PREFIX.size
        actual = f"a prefix of {length} with {left} bytes left"
        return Finding("bytes-past-end", f"element {whole}", starts[-1], f"a length of at most {left}", actual)
    return Finding("bytes-prefix-truncated", f"element {whole}", end, "a prefix of 4 bytes", f"{len(data) - end} bytes")
