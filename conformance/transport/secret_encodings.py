"""How a server may write a secret that it repeats: as it is, in hexadecimal digits, in base64 at any place of a text.

Case and the two alphabets of base64 are folded, and escapes (of JSON, URLs, HTML) are resolved, before anything is
looked for: see `fold` and `unescape`. Both keep track of where each byte stood.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

_FOLD: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_FOLDED: Final = np.frombuffer(_FOLD, np.uint8)
# Escapes of a byte by two hexadecimal digits: what stands in front of them, and behind.
_BY_DIGITS: Final = ((b"%", b""), (b"\\u00", b""), (b"\\x", b""), (b"&#x", b";"))
_BY_NAME: Final = {
    b"\\/": b"/",
    b'\\"': b'"',
    b"&amp;": b"&",
    b"&lt;": b"<",
    b"&gt;": b">",
    b"&quot;": b'"',
    **{f"&#{ord(character)};".encode(): character.encode() for character in "\"&'+/<=>"},
}
_MAX_ESCAPE_BYTES: Final = 7  # bytes of an escape
_NO_DIGIT: Final = 16
_DIGIT: Final = np.full(256, _NO_DIGIT, np.uint8)
_DIGIT[list(b"0123456789abcdef")] = range(16)


def fold(octets: bytes) -> bytes:
    """Return as many bytes, in which case and alphabet of base64 make no difference."""
    return octets.translate(_FOLD)


def list_encodings(secret: str) -> Iterator[tuple[bytes, bool]]:
    """Yield what a secret may be written as, folded; each with whether it is one of digits alone, as numbers are."""
    for octets in dict.fromkeys((secret.encode("utf-8", "replace"), secret.encode("latin-1", "replace"))):
        for text in dict.fromkeys(
            (octets, json.dumps(octets.decode("latin-1"), ensure_ascii=False)[1:-1].encode("latin-1"))
        ):
            yield fold(text), text.isdigit()
        for separator in ("", " ", ":"):
            yield (octets.hex(separator) if separator else octets.hex()).encode(), True
        for before in range(3):
            yield fold(_base64(octets, before)), False


def _base64(octets: bytes, before: int) -> bytes:
    """Return the characters of base64 that bytes alone determine, where so many bytes stand before them."""
    first, end = -(-before * 8 // 6), (before + len(octets)) * 8 // 6
    return b64encode(bytes(before) + octets)[first:end]


def unescape(text: bytes) -> tuple[bytes, NDArray[np.intp]] | None:
    """Return folded bytes with every escape resolved, and where each began, the end included; None without escapes."""
    by_digits = [form for form in _BY_DIGITS if form[0] in text]
    by_name = [name for name in _BY_NAME if name in text]
    if not (by_digits or by_name):
        return None
    octets = np.frombuffer(text + bytes(_MAX_ESCAPE_BYTES), np.uint8)
    values, is_kept = octets.copy(), np.ones(len(octets), bool)
    for before, after in by_digits:
        found = _beginning(octets, before)
        high, low = (_DIGIT[octets[found + len(before) + k]] for k in range(2))
        fits = (high < _NO_DIGIT) & (low < _NO_DIGIT)
        fits &= (octets[found + len(before) + 2] == after[0]) if after else True
        values[found[fits]] = _FOLDED[(high * _NO_DIGIT + low)[fits]]
        _drop(is_kept, found[fits], len(before) + 2 + len(after))
    for name in by_name:
        found = _beginning(octets, name)
        values[found] = _BY_NAME[name][0]
        _drop(is_kept, found, len(name))
    starts = np.flatnonzero(is_kept[: len(text)])
    return values[starts].tobytes(), np.append(starts, len(text))


def _beginning(octets: NDArray[np.uint8], text: bytes) -> NDArray[np.intp]:
    """Return where a text begins, with room for an escape behind it."""
    places = np.flatnonzero(octets[:-_MAX_ESCAPE_BYTES] == text[0])
    for k, octet in enumerate(text[1:], 1):
        places = places[octets[places + k] == octet]
    return places


def _drop(is_kept: NDArray[np.bool_], places: NDArray[np.intp], length: int) -> None:
    """Take out what stands behind the first byte of escapes of a length."""
    for k in range(1, length):
        is_kept[places + k] = False
