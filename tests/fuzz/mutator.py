"""Mutations that know what a message is made of: numbers that say sizes, objects in lists, parts that are cut.

Bytes changed at random seldom get past the JSON of a request. A change here leaves the rest as it is: a size that is
one too large, an input that stands twice, a header that fits the JSON again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

Change = Callable[[bytes, random.Random], bytes]

_NUMBER: Final = re.compile(rb"-?[0-9]+")
_OBJECT: Final = re.compile(rb"\{[^{}]*\}")
_LINE: Final = re.compile(rb"^[^\n]*;([^;\n]*)\n")
_WORDS: Final = (
    *(b"BOOL", b"UINT8", b"INT16", b"INT32", b"UINT64", b"FP16", b"FP32", b"FP64", b"BF16", b"BYTES", b"STRING"),
    *(b'"inputs"', b'"outputs"', b'"name"', b'"datatype"', b'"shape"', b'"data"', b'"parameters"'),
    *(b'"binary_data_size"', b'"binary_data"', b'"classification"', b'"shared_memory_region"'),
    *(b"null", b"true", b"false", b"NaN", b"-Infinity", b"1e400", b"-0.0", b"9007199254740993", b"[]", b"{}", b'""'),
    *(b'"\\ud800"', b'"\\u0000"', b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\0", b"\x1b[31m", b"\xe2\x80\xae"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"Expect: 100-continue\r\n", b"0\r\n\r\n"),
)
_SIZES: Final = (*range(9), 255, 256, 65536, *(2**bits - less for bits in (31, 32, 62, 63, 64) for less in (0, 1)))


def mutate(data: bytes, seed: int, by_chance: Callable[[bytes], bytes]) -> bytes:
    """Return an input with one to four changes; the same for the same seed.

    Args:
        data: the input.
        seed: of the choices made here.
        by_chance: changes bytes without knowing what they are.
    """
    chance = random.Random(seed)
    changes: tuple[Change, ...] = (*CHANGES, lambda given, _: by_chance(given), lambda given, _: by_chance(given))
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(changes)(data, chance)
    return data


def _number(data: bytes, chance: random.Random) -> bytes:
    """Change a number, wherever it stands."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    one = chance.choice(found)
    value = int(one[0][:18])
    other = chance.choice((value + 1, value - 1, value * 2, -value, value + 4, chance.choice(_SIZES)))
    return data[: one.start()] + str(other).encode() + data[one.end() :]


def _word(data: bytes, chance: random.Random) -> bytes:
    """Put a word in, or in the place of another one of JSON."""
    at = chance.randint(0, len(data))
    end = at if chance.random() < 0.5 else min(len(data), at + chance.randint(1, 8))
    return data[:at] + chance.choice(_WORDS) + data[end:]


def _other_word(data: bytes, chance: random.Random) -> bytes:
    """Put a word where another one stands."""
    present = [word for word in _WORDS if word in data]
    return data.replace(chance.choice(present), chance.choice(_WORDS), 1) if present else data


def _objects(data: bytes, chance: random.Random) -> bytes:
    """Take an object out, put it in twice, or change it with another one."""
    found = list(_OBJECT.finditer(data))
    if not found:
        return data
    one, other = sorted((chance.choice(found), chance.choice(found)), key=lambda match: match.start())
    head, tail = data[: one.start()], data[one.end() :]
    if one == other or chance.random() < 0.5:
        return head + chance.choice((b"", one[0] + b"," + one[0], b"[" + one[0] + b"]")) + tail
    between = data[one.end() : other.start()]
    return head + other[0] + between + one[0] + data[other.end() :]


def _header(data: bytes, _chance: random.Random) -> bytes:
    """Let the inference header in the first line fit the JSON again."""
    line = _LINE.match(data)
    end = data.rfind(b"}") + 1
    if line is None or end <= line.end():
        return data
    return data[: line.start(1)] + str(end - line.end()).encode() + data[line.end(1) :]


def _length(data: bytes, chance: random.Random) -> bytes:
    """Cut the end off, or let it grow."""
    if chance.random() < 0.5:
        return data[: len(data) - chance.randint(1, 8)]
    return data + chance.randbytes(chance.choice((1, 2, 4, 8)))


def _piece(data: bytes, chance: random.Random) -> bytes:
    """Repeat a piece, or move it elsewhere."""
    at = chance.randint(0, len(data))
    piece = data[at : at + chance.randint(1, 32)]
    rest = data if chance.random() < 0.5 else data[:at] + data[at + len(piece) :]
    to = chance.randint(0, len(rest))
    return rest[:to] + piece + rest[to:]


CHANGES: Final[tuple[Change, ...]] = (_number, _word, _other_word, _objects, _header, _length, _piece)
