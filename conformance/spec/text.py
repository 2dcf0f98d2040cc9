"""Makes text from servers safe to display: no control characters, no bidi marks, limited length."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

# Control, format (bidi marks among them), surrogate, private use, unassigned, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# The pattern of commands in output that a CI system would execute: ##[command], ##vso[command].
_CI_COMMAND = re.compile(r"##(?=\w*\[)")


def escape_text(text: str, limit: int = 300) -> str:
    """Return `text` on one line with unsafe characters escaped, shortened to `limit` characters in its middle."""
    cut = shorten_middle(text, limit)
    shown = cut if cut.isprintable() else "".join(map(_escape_character, cut))
    shown = _CI_COMMAND.sub(r"#\\x23", shown)
    return shown if len(text) <= limit else f"{shown} ({len(text)} characters)"


def shorten_middle(text: str, limit: int) -> str:
    """Return a text without its middle if it is longer than `limit`: the cause of a long error is often at its end."""
    end = limit // 3
    return text if len(text) <= limit else f"{text[: limit - end]} ... {text[len(text) - end :]}"


def join_some(names: Sequence[str], max_names: int, separator: str = ", ") -> str:
    """Join the first `max_names` names, and append the number of the others, as in `a, b and 3 more`."""
    more = f" and {len(names) - max_names} more" if len(names) > max_names else ""
    return separator.join(names[:max_names]) + more


def format_count(number: int, noun: str) -> str:
    """Format a count, such as `1 row` or `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _escape_character(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE:
        return character.encode("unicode_escape").decode("ascii")
    return character


def format_shape(shape: Sequence[int] | None) -> str:
    """Format a shape for a message; None stands for an invalid shape."""
    return "no valid shape" if shape is None else f"shape {list(shape)}"


def format_element(value: Any, limit: int = 40) -> str:
    """Format one tensor element; a BYTES element is truncated to `limit` bytes."""
    if isinstance(value, bytes):
        shown = _format_bytes(value[:limit], cut=len(value) > limit)
        return shown if len(value) <= limit else f"{shown}... ({len(value)} bytes)"
    if isinstance(value, np.bool_ | bool):
        return "true" if value else "false"
    short = getattr(value, "itemsize", 8) == 2 and not isinstance(value, np.integer)
    return str(float(value) if short else value)  # the text of FP16 and BF16 has fewer digits than the value


def _format_bytes(octets: bytes, *, cut: bool) -> str:
    """Format bytes as a JSON string, or in hexadecimal if they are not UTF-8; `cut`: the end of the text is missing."""
    try:
        text = octets.decode()
    except UnicodeDecodeError as error:
        if not (cut and error.end == len(octets) and error.reason == "unexpected end of data"):
            return f"bytes {octets.hex(' ')}"
        text = octets[: error.start].decode()
    return escape_text(json.dumps(text, ensure_ascii=False))


def format_elements(array: np.ndarray[Any, Any], index: int = 0, count: int = 4) -> str:
    """Format up to `count` consecutive elements of a tensor in row-major order, including the element `index`."""
    flat = array.reshape(-1)
    first = 0 if index < count else index - count // 2
    window = flat[first : first + count]
    raw = window.view(np.uint8).tolist() if flat.dtype == np.bool_ else None
    elements = map(_format_bool_byte, raw) if raw is not None else (format_element(value, 16) for value in window)
    shown = ", ".join(elements)
    before = f"... from element {first}: " if first else ""
    return f"[{before}{shown}{', ...' if first + count < flat.size else ''}]"


def _format_bool_byte(byte: int) -> str:
    """Format the byte of a BOOL element, which may be neither 0 nor 1."""
    return ("false", "true")[byte] if byte < 2 else f"byte {byte:02x}"
