"""Where the brackets of a JSON text stand, without reading its values: block by block, at the speed of numpy.

What a hostile text costs has to be known before it is parsed: how deep it nests, how many objects it makes. Brackets
inside strings are not structure. A text that is no JSON gets some answer, too; its parser has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_BLOCK: Final = 1 << 16
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BLANKS = re.compile(rb"[ \t\r\n]*")
_QUOTE: Final = ord('"')
# By how much each byte changes the depth.
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1

Depths = NDArray[Any]


def find_too_deep(text: bytes, limit: int) -> int | None:
    """Return the offset of the first bracket that stands inside more than `limit - 1` others, or None."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return None
    for start, depths in _depths(text, 0):
        if depths.max() > limit:
            return start + int(np.argmax(depths > limit))
    return None


def find_value_end(text: bytes) -> int | None:
    """Return where the object or array ends that a text begins with, behind blanks; None without one or its end."""
    begin = _BLANKS.match(text).end()  # type: ignore[union-attr]  # it matches nothing, too
    if text[begin : begin + 1] not in (b"[", b"{"):
        return None
    for start, depths in _depths(text, begin):
        if depths.min() <= 0:
            return start + int(np.argmax(depths <= 0)) + 1
    return None


def _depths(text: bytes, begin: int) -> Iterator[tuple[int, Depths]]:
    """Yield the place of each block, and how many brackets are open behind each of its bytes."""
    depth, in_string = 0, False
    while begin < len(text):
        end = min(begin + _BLOCK, len(text))
        # An escape is two bytes that mean neither quote nor bracket; one that the block would divide belongs to it.
        plain = _ESCAPE.sub(b"__", text[begin:end])
        if plain.endswith(b"\\"):
            end, plain = min(end + 1, len(text)), plain[:-1] + b"__"
        octets = np.frombuffer(plain, np.uint8, end - begin)
        inside = np.logical_xor.accumulate(octets == _QUOTE) ^ in_string
        steps = _STEPS[octets]
        steps[inside] = 0
        depths = np.cumsum(steps, dtype=np.int32) + depth
        yield begin, depths
        depth, in_string, begin = int(depths[-1]), bool(inside[-1]), end
