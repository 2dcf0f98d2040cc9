"""Text that is safe to show, whatever a server sent: no control characters, no bidi tricks, no endless strings."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np

# Control, format (bidi marks among them), surrogate, private use, unassigned, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def safe(text: str, limit: int = 300) -> str:
    """Return `text` on one line with unsafe characters written as escapes, cut to `limit` characters."""
    cut = text[:limit]
    shown = "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _UNSAFE else c for c in cut
    )
    return shown if len(text) <= limit else f"{shown}... ({len(text)} characters)"


def element(value: Any) -> str:
    """Return one tensor element as text."""
    if isinstance(value, bytes):
        shown = repr(value[:40])[1:]
        return shown if len(value) <= 40 else f"{shown}... ({len(value)} bytes)"
    if isinstance(value, np.bool_ | bool):
        return "true" if value else "false"
    return str(value)


def elements(array: np.ndarray[Any, Any], around: int = 0, count: int = 8) -> str:
    """Return elements of a tensor, row by row, as text: `count` of them, element `around` among them."""
    flat = array.reshape(-1)
    first = 0 if around < count else around - count // 2
    shown = ", ".join(element(value) for value in flat[first : first + count])
    before = f"... from element {first}: " if first else ""
    after = f", ... ({flat.size} elements)" if first + count < flat.size else ""
    return f"[{before}{shown}{after}]"
