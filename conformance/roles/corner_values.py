"""Corner values of every datatype: values that servers often read or write incorrectly.

Each table maps a datatype to groups of values, one for each possible cause of errors: limits, integers that a double
cannot represent, subnormals, signed zeros, infinities, NaN. Integers are numbers. Floating-point values are bit
patterns, because -0, subnormals and NaN must have exactly these bits. BYTES values are byte strings.

Sources: Open Inference Protocol, REST, "Tensor Data Types"; IEEE 754 for the patterns; Triton, Binary Tensor Data
Extension, "Binary Tensor Request", for BYTES (any bytes, after a length of four bytes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

INTEGER_CORNERS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "UINT8": {"every": range(256)},
    "UINT16": {"limits": (0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF), "single-bytes": (0x00FF, 0xFF00, 0x0102, 0x0201)},
    "UINT32": {
        "limits": (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF),
        "single-bytes": (0x000000FF, 0x0000FF00, 0x00FF0000, 0xFF000000),
        "past-fp32": (2**24 - 1, 2**24, 2**24 + 1, 2**31 + 1),
    },
    "UINT64": {
        "limits": (0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1),
        "single-bytes": (0xFF, 0xFF << 24, 0xFF << 32, 0xFF << 56),
        "past-fp64": (2**53 - 1, 2**53, 2**53 + 1, 2**63 + 1),
    },
    "INT8": {"every": range(-128, 128)},
    "INT16": {"limits": (-0x8000, -0x7FFF, -1, 0, 1, 0x7FFF), "single-bytes": (0x00FF, -0x0100, 0x0102, -0x0102)},
    "INT32": {
        "limits": (-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1),
        "single-bytes": (0x000000FF, 0x0000FF00, 0x00FF0000, -0x01000000),
        "past-fp32": (2**24 - 1, 2**24 + 1, -(2**24) - 1, 2**30 + 1),
    },
    "INT64": {
        "limits": (-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1),
        "single-bytes": (0xFF, 0xFF << 24, 0xFF << 32, -(1 << 56)),
        "past-fp64": (2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**62 + 1),
    },
}

# Bit patterns of groups with a JSON form; "largest" leaves room for a writer that rounds up the last digit.
FLOAT_CORNERS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "FP16": {
        "largest": (0x7BFF, 0xFBFF, 0x7BFE),
        "smallest-normal": (0x0400, 0x8400, 0x0401),
        "subnormal": (0x0001, 0x8001, 0x03FF, 0x0155),
        "next-to-one": (0x3C00, 0x3C01, 0x3BFF, 0xBC01),
    },
    "BF16": {
        "largest": (0x7F7F, 0xFF7F, 0x7F7E),
        "smallest-normal": (0x0080, 0x8080, 0x0081),
        "subnormal": (0x0001, 0x8001, 0x007F, 0x0055),
        "next-to-one": (0x3F80, 0x3F81, 0x3F7F, 0xBF81),
    },
    "FP32": {
        "largest": (0x7F7FFFF0, 0xFF7FFFF0, 0x7F000000),
        "smallest-normal": (0x00800000, 0x80800000, 0x00800001),
        "subnormal": (0x00012345, 0x80012345, 0x007FFFFF),
        "next-to-one": (0x3F800000, 0x3F800100, 0x3F7FFF00, 0xBF800100),
    },
    "FP64": {
        "largest": (0x7FEFFFFFFFFF0000, 0xFFEFFFFFFFFF0000, 0x7FE0000000000000),
        "smallest-normal": (0x0010000000000000, 0x8010000000000000, 0x0010000000000001),
        "subnormal": (0x000123456789ABCD, 0x800123456789ABCD, 0x000FFFFFFFFFFFFF),
        "next-to-one": (0x3FF0000000000000, 0x3FF0000000010000, 0x3FEFFFFFFFFF0000, 0xBFF0000000010000),
        "past-fp32": (0x3FB999999999999A, 0x4340000000000000, 0x4170000010000000),
    },
}

# Bit patterns without a JSON form, or with a JSON form that does not preserve them: only for binary data.
BINARY_ONLY_CORNERS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "FP16": {"zeros": (0x0000, 0x8000), "infinities": (0x7C00, 0xFC00), "nan": (0x7E00, 0xFE00, 0x7C01, 0x7FFF)},
    "BF16": {"zeros": (0x0000, 0x8000), "infinities": (0x7F80, 0xFF80), "nan": (0x7FC0, 0xFFC0, 0x7F81, 0x7FFF)},
    "FP32": {
        "zeros": (0x00000000, 0x80000000),
        "infinities": (0x7F800000, 0xFF800000),
        "nan": (0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF),
        "extremes": (0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x80000001, 0x3F800001, 0x3F7FFFFF),
    },
    "FP64": {
        "zeros": (0x0000000000000000, 0x8000000000000000),
        "infinities": (0x7FF0000000000000, 0xFFF0000000000000),
        "nan": (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF),
        "extremes": (0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 1, 0x8000000000000001, 0x3FF0000000000001),
    },
}

# Bit patterns that JSON can represent but some clients lose: numbers that need nine digits, and the sign of zero.
DIGITS_AND_SIGNS: Mapping[str, Sequence[int]] = {
    "FP32": (0x447A0001, 0x447A0003, 0x447A3FFF, 0x80000000, 0x00000000),
    "FP64": (0x3FB999999999999A, 0x3FD3333333333334, 0x8000000000000000, 0x0000000000000000),
}
# FP16 and BF16: subnormals, limits, neighbours of one, both zeros. Their decimal numbers in JSON are exact.
HALF_PRECISION: Mapping[str, Sequence[int]] = {
    "FP16": (0x0155, 0x83FF, 0x0400, 0x7BFF, 0x3C01, 0xBBFF, 0x8000, 0x0000),
    "BF16": (0x0055, 0x807F, 0x0080, 0x7F7F, 0x3F81, 0xBF7F, 0x8000, 0x0000),
}
# 0.1, 0.3, 0.7 and -0.2, rounded to the nearest element.
SHORT_DECIMALS: Mapping[str, Sequence[int]] = {
    "FP16": (0x2E66, 0x34CD, 0x399A, 0xB266),
    "BF16": (0x3DCD, 0x3E9A, 0x3F33, 0xBE4D),
}

# Bit patterns that are equal in both byte orders, and that a conversion through a smaller type would change. They allow
# comparing the two forms of a tensor independently of the byte order.
PALINDROMES: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("UINT8", "INT8"), (0x01, 0x81, 0x12)),
    **dict.fromkeys(("UINT16", "INT16"), (0x0101, 0x8181, 0x1212)),
    **dict.fromkeys(("UINT32", "INT32"), (0x01010101, 0x81818181, 0x12343412)),
    **dict.fromkeys(("UINT64", "INT64"), (0x0101010101010101, 0x8181818181818181, 0x1234567878563412)),
    "FP32": (0x41414141, 0xC1C1C1C1, 0x3F3F3F3F),
    "FP64": (0x4040404040404040, 0xC0C0C0C0C0C0C0C0, 0x3F4041424241403F),
}

# BYTES elements that are UTF-8, so that JSON can represent them.
TEXTS: Mapping[str, Sequence[bytes]] = {
    "ascii": (b"a", b"bc", b"def"),
    "empty": (b"", b"", b"x", b""),
    "nul": (b"\x00", b"a\x00b", b"\x00\x00\x00\x00", b"end\x00"),
    "controls": (b"\r\n", b"\t\x01\x1f\x7f", b"\r\n\r\n"),
    "json-escapes": (b'"', b"\\", b'{"a":[1]}', b"\\u0041"),
    "two-to-four-byte-letters": ("é".encode(), "猫".encode(), "😀".encode(), "é猫😀".encode()),
    "like-a-prefix": (b"\x01\x00\x00\x00", b"\x04\x00\x00\x00abcd", b"\x00\x00\x00\x00"),
    "blanks": (b" ", b"  two  ", b"\xc2\xa0"),
    "255-256-long": (b"a" * 255, b"b" * 256, b"c" * 257),
    "65535-65536-long": (b"d" * 65_535, b"e" * 65_536, b"f"),
}

# BYTES elements that are not UTF-8: only for binary data.
BYTE_STRINGS: Mapping[str, Sequence[bytes]] = {
    "every-byte": (bytes(range(256)), bytes(range(255, -1, -1))),
    "high-bytes": (b"\xff", b"\xfe\xff", b"\x80\x81\x82"),
    "cut-letter": ("é".encode()[:1], "猫".encode()[:2], b"\xc0\x80", b"\xed\xa0\x80"),
    "like-a-big-prefix": (b"\xff\xff\xff\xff", b"\x00\x00\x00\x80"),
}

# UINT8 tensors that look like other content to a server that interprets binary data.
LOOKALIKES: Mapping[str, bytes] = {
    "json-object": b'{"outputs":[]}',
    "closing-braces": b"]}]}}",
    "quote": b'"',
    "blanks-first": b" \r\n\t 1",
    "blanks-only": b"    ",
    "head-and-body": b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "request": b"POST /v2 HTTP/1.1\r\nHost: x\r\n\r\n",
    "last-chunk": b"0\r\n\r\n",
    "nul-first": b"\x00\x00\x00\x00{",
    "nul-last": b"{\x00\x00\x00\x00",
    "byte-order-mark": b"\xef\xbb\xbf{}",
    "gzip-magic": b"\x1f\x8b\x08\x00",
    "every-byte": bytes(range(256)),
}


def from_bits(name: str, datatype: str, bits: Sequence[int]) -> Tensor:
    """Return a one-dimensional floating-point tensor with these bit patterns."""
    dtype = DATATYPES[datatype].dtype
    return Tensor.from_values(name, datatype, np.array(bits, dtype=f"u{dtype.itemsize}").view(dtype))


def make_corner_tensor(name: str, datatype: str, group: str) -> Tensor:
    """Return the corner values of a group of an integer or floating-point datatype as a one-dimensional tensor.

    Raises KeyError: the datatype has no such group.
    """
    if datatype in INTEGER_CORNERS:
        return Tensor.from_values(name, datatype, list(INTEGER_CORNERS[datatype][group]))
    return from_bits(name, datatype, get_bit_groups(datatype)[group])


def get_bit_groups(datatype: str) -> Mapping[str, Sequence[int]]:
    """Return group -> bit patterns of a floating-point datatype, including values that JSON cannot represent."""
    zeros = {"zeros": (0, 1 << (8 * DATATYPES[datatype].dtype.itemsize - 1))}
    return {**FLOAT_CORNERS.get(datatype, {}), **BINARY_ONLY_CORNERS.get(datatype, zeros)}


def get_all_corners(datatype: str, *, json: bool = False) -> Any:
    """Return all corner values of a datatype other than BYTES; with `json`, only those that JSON can represent."""
    if datatype == "BOOL":
        return np.array([False, True])
    if datatype in INTEGER_CORNERS:
        values = [value for group in INTEGER_CORNERS[datatype].values() for value in group]
        return np.array(values, dtype=DATATYPES[datatype].dtype)
    groups = FLOAT_CORNERS.get(datatype, {}) if json else get_bit_groups(datatype)
    return from_bits("", datatype, [bits for group in groups.values() for bits in group]).array
