"""Formats requests and answers as lines for a page: JSON with long lines folded, tensors as digits, both truncated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.roles.golden_requests import Value
from conformance.spec.text import format_element
from conformance.wire.datatypes import DATATYPES

WIDTH = 100
SHOWN_BYTES, SHOWN_VALUES, SHOWN_TEXT, SHOWN_JSON = 24, 6, 48, 900


def format_json(octets: bytes) -> Iterator[str]:
    """Yield JSON as sent, with long lines folded."""
    text = octets.decode("utf-8", "backslashreplace")
    cut = text if len(text) <= SHOWN_JSON else f"{text[:SHOWN_JSON]} ... ({len(octets)} bytes)"
    for line in cut.splitlines():
        yield from _fold_line(line)


def _fold_line(line: str) -> Iterator[str]:
    """Yield a line of JSON in pieces that fit the page, split after a comma if possible."""
    while len(line) > WIDTH:
        end = line.rfind(",", 0, WIDTH)
        cut = end + 1 if end > 0 else WIDTH
        yield line[:cut]
        line = line[cut:]
    yield line


def format_bytes(name: str, octets: bytes, width: int, values: tuple[Value, ...] | None = None) -> Iterator[str]:
    """Yield a line that names the bytes, and a line with their hexadecimal digits."""
    meaning = f" = {format_values(values)}" if values else ""
    yield f"<{name}, {len(octets)} bytes{meaning}>"
    if octets:
        cut = octets[:SHOWN_BYTES]
        elements = (cut[start : start + width].hex(" ") for start in range(0, len(cut), width))
        yield "  " + "  ".join(elements) + (" ..." if len(octets) > len(cut) else "")


def find_group_width(datatype: str) -> int:
    """Return the number of bytes in a group of digits: one element; four bytes for BYTES, whose elements vary."""
    known = DATATYPES.get(datatype)
    return (known.size if known else None) or 4


def format_values(values: Iterable[Value]) -> str:
    """Return the first elements of a tensor, as many as fit a short line."""
    every = [format_element(value, 16) for value in values]
    shown = every[:SHOWN_VALUES]
    while len(shown) > 1 and len(", ".join(shown)) > SHOWN_TEXT:
        shown.pop()
    return ", ".join(shown) + (", ..." if len(every) > len(shown) else "")
