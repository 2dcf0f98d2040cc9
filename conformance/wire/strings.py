"""Encodes and decodes BYTES elements: a little-endian unsigned length prefix of four bytes, then the element's bytes.

An element may be any bytes: empty, NUL, invalid UTF-8. There is no padding between elements. Source: Triton and KServe,
Binary Tensor Data Extension ("Binary Tensor Request" and "Data Representation").

A tensor can have a million elements, so speed matters. Encoding uses no Python loop. Decoding loops only over the
prefixes, without validation, and not at all if all elements have the same length. An invalid buffer is scanned again to
find the fault. `python -m benchmarks bytes-encode bytes-decode` measures the speed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from conformance.wire.finding import DecodeError, Finding, format_value

PREFIX = struct.Struct("<I")


class _PrefixCache(dict[int, bytes]):
    """Maps a length to its encoded prefix; encodes missing prefixes on access."""

    def __missing__(self, length: int) -> bytes:
        prefix = self[length] = PREFIX.pack(length)
        return prefix


def encode(elements: Sequence[bytes]) -> bytes:
    """Return the elements as binary data.

    Raises struct.error: an element is longer than 2^32 - 1 bytes, the limit of the prefix.
    """
    lengths = set(map(len, elements))
    if len(lengths) == 1:
        return PREFIX.pack(*lengths).join([b"", *elements])
    # Prefixes and elements are interleaved in one list by two slice assignments, so that no loop runs in Python. A
    # tensor has few different lengths, so prefixes are cached.
    parts = [b""] * (2 * len(elements))
    parts[0::2] = map(_PrefixCache().__getitem__, map(len, elements))
    parts[1::2] = elements
    return b"".join(parts)


def decode(buffer: bytes | bytearray | memoryview, count: int) -> list[bytes]:
    """Decode `count` elements from `buffer`; memory is allocated only for elements in the buffer.

    Raises DecodeError: the buffer does not contain exactly `count` elements (bytes-prefix-truncated, bytes-past-end,
    bytes-count, bytes-stray); the finding has the offset of the faulty prefix or byte in the buffer.
    """
    data = bytes(buffer)
    alike = _split_evenly(data, count)
    if alike is not None:
        return alike
    unpack_from = PREFIX.unpack_from
    elements: list[bytes] = []
    append = elements.append
    end = 0
    try:
        # The loop validates nothing: reading a prefix beyond the buffer raises, and a truncated element leaves `end`
        # beyond the buffer.
        for _ in range(count):
            start = end + 4
            end = start + unpack_from(data, end)[0]
            append(data[start:end])
    except struct.error:
        end = -1
    if end != len(data):
        raise DecodeError(_describe_fault(data, count))
    return elements


def _split_evenly(data: bytes, count: int) -> list[bytes] | None:
    """Return the elements of a buffer if all are as long as the first, which is not empty; otherwise return None."""
    length = PREFIX.unpack_from(data)[0] if len(data) >= PREFIX.size else 0
    if length == 0 or len(data) != count * (PREFIX.size + length):
        return None
    table = np.frombuffer(data, dtype=[("length", "<u4"), ("element", f"V{length}")])
    elements: list[bytes] | None = table["element"].tolist() if (table["length"] == length).all() else None
    return elements


def find_offsets(buffer: bytes | bytearray | memoryview, count: int | None = None) -> list[int]:
    """Return the offset of each complete length prefix, for up to `count` elements; None: for all elements.

    Never raises: the last element may extend beyond the end of the buffer.
    """
    found: list[int] = []
    at = 0
    while at + PREFIX.size <= len(buffer) and len(found) != count:
        found.append(at)
        at += PREFIX.size + int(PREFIX.unpack_from(buffer, at)[0])
    return found


def measure_size(buffer: bytes | bytearray | memoryview, count: int) -> int | None:
    """Return the size in bytes of the first `count` elements of a buffer; None if the buffer has fewer elements."""
    starts = find_offsets(buffer, count)
    if len(starts) < count:
        return None
    end = starts[-1] + PREFIX.size + int(PREFIX.unpack_from(buffer, starts[-1])[0]) if starts else 0
    return end if end <= len(buffer) else None


def _describe_fault(data: bytes, count: int) -> Finding:
    """Return the finding that explains why `data` does not consist of `count` elements."""
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
        return Finding("bytes-stray", "tensor", at, f"the end of the tensor after {count} elements", actual)
    if broken:
        left = len(data) - starts[-1] - PREFIX.size
        actual = f"a length of {length} with {left} bytes left"
        return Finding("bytes-past-end", f"element {whole}", starts[-1], f"a length of at most {left}", actual)
    return Finding(
        "bytes-prefix-truncated", f"element {whole}", end, "a length prefix of 4 bytes", f"{len(data) - end} bytes"
    )
