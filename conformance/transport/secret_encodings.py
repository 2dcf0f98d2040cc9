"""How a server may write a secret that it repeats: as it is, in hexadecimal digits, in base64, with escapes.

Case and the two alphabets of base64 make no difference (`fold`), nor do escapes of JSON, URLs, Python and HTML
(`unescape`).
"""

from __future__ import annotations

import re
from array import array
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

_FOLD: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_ESCAPE: Final = re.compile(
    rb'(?:%|\\u00|\\x)([0-9a-f]{2})|&#x([0-9a-f]{2});|&#([0-9]{1,3});|\\(["/]|\\(?![ux"/]))|&(amp|lt|gt|quot);'
)
_NAMES: Final = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"'}


def fold(octets: bytes) -> bytes:
    """Return as many bytes, in which case and alphabet of base64 make no difference."""
    return octets.translate(_FOLD)


def list_encodings(secret: str) -> Iterator[tuple[bytes, bool]]:
    """Yield what a secret may be written as, folded; each with whether it consists of digits, as numbers do."""
    for octets in dict.fromkeys((secret.encode("utf-8", "replace"), secret.encode("latin-1", "replace"))):
        yield fold(octets), octets.isdigit()
        for digits in (octets.hex(), octets.hex(" "), octets.hex(":")):
            yield digits.encode(), True
        for before in range(3):
            yield fold(_base64(octets, before)), False


def _base64(octets: bytes, before: int) -> bytes:
    """Return the characters of base64 that bytes alone determine, where so many bytes stand before them."""
    first, end = -(-before * 8 // 6), (before + len(octets)) * 8 // 6
    return b64encode(bytes(before) + octets)[first:end]


def unescape(text: bytes) -> tuple[bytes, Callable[[int], int]]:
    """Return a folded text with every escape resolved, and what finds the offset in the text of one in the result."""
    places, surplus = array("q"), array("q", (0,))  # where escapes are resolved, and bytes that each leaves out so far

    def resolve(match: re.Match[bytes]) -> bytes:
        places.append(match.start() - surplus[-1])
        surplus.append(surplus[-1] + len(match[0]) - 1)
        in_html, decimal, character, name = match.groups()[1:]
        if digits := match[1] or in_html:
            return fold(bytes((int(digits, 16),)))
        if decimal:
            return fold(bytes((int(decimal) & 0xFF,)))
        return character or _NAMES[name]

    plain = _ESCAPE.sub(resolve, text)
    return plain, lambda offset: offset + surplus[bisect_left(places, offset)]
