"""Text that is safe to show, whatever a server sent: no control characters, no bidi tricks, no endless strings."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

# Control, format (bidi marks among them), surrogate, private use, unassigned, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# How a line of output, anywhere in it, gives an order to the CI system that reads it: ##[command], ##vso[command].
_CI_COMMAND = re.compile(r"##(?=\w*\[)")


def escape_text(text: str, limit: int = 300) -> str:
    """Return `text` on one line with unsafe characters written as escapes, cut to `limit` characters."""
    cut = text[:limit]
    shown = cut if cut.isprintable() else "".join(map(_escaped, cut))
    shown = _CI_COMMAND.sub(r"#\\x23", shown)
    return shown if len(text) <= limit else f"{shown}... ({len(text)} characters)"


def join_some(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first names, and how many there are beside."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def format_count(number: int, noun: str) -> str:
    """Return a number of things, such as `1 row` or `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _escaped(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE:
        return character.encode("unicode_escape").decode("ascii")
    return character


def format_shape(shape: Sequence[int] | None) -> str:
    """Return a shape as a message shows it; None is one that is none."""
    return "no valid shape" if shape is None else f"shape {list(shape)}"


def format_element(value: Any, limit: int = 40) -> str:
    """Return one tensor element as text, of a longer BYTES element the first `limit` bytes."""
    if isinstance(value, bytes):
        shown = _octets(value[:limit], cut=len(value) > limit)
        return shown if len(value) <= limit else f"{shown}... ({len(value)} bytes)"
    if isinstance(value, np.bool_ | bool):
        return "true" if value else "false"
    short = getattr(value, "itemsize", 8) == 2 and not isinstance(value, np.integer)
    return str(float(value) if short else value)  # FP16 and BF16 show fewer digits than they have


def _octets(octets: bytes, *, cut: bool) -> str:
    """Return bytes as JSON writes a string, or as hexadecimal digits where they are no text; `cut`: more follow."""
    try:
        text = octets.decode()
    except UnicodeDecodeError as error:
        if not (cut and error.end == len(octets) and error.reason == "unexpected end of data"):
            return f"bytes {octets.hex(' ')}"
        text = octets[: error.start].decode()
    return escape_text(json.dumps(text, ensure_ascii=False))


def format_elements(array: np.ndarray[Any, Any], around: int = 0, count: int = 4) -> str:
    """Return elements of a tensor, row by row, as text: `count` of them, element `around` among them."""
    flat = array.reshape(-1)
    first = 0 if around < count else around - count // 2
    window = flat[first : first + count]
    raw = window.view(np.uint8).tolist() if flat.dtype == np.bool_ else None
    shown = ", ".join(map(_flag, raw) if raw is not None else (format_element(value, 16) for value in window))
    before = f"... from element {first}: " if first else ""
    return f"[{before}{shown}{', ...' if first + count < flat.size else ''}]"


def _flag(byte: int) -> str:
    """Return a BOOL element by its byte, which may be one that stands for nothing."""
    return ("false", "true")[byte] if byte < 2 else f"byte {byte:02x}"
