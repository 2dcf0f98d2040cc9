"""Escapes foreign text for Markdown (GFM): text from a server stays literal and on one line, also in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from conformance.spec.text import escape_text

MAX_LINE_CHARS = 20_000  # of a line in a code block
_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "\\`*[]|~#$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # an underscore within a word is literal
# Characters that trigger autolinks; they are replaced by entities.
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def text(foreign: str, limit: int = 300) -> str:
    """Escape all Markdown in `foreign`, cut to `limit` characters."""
    shown = _EMPHASIS.sub(r"\\_", escape_text(foreign, limit).translate(_SPECIAL))
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", shown)


def code(foreign: str, limit: int = 300) -> str:
    """Return `foreign` as inline code that is valid in tables, with a fence that the text does not contain."""
    shown = escape_text(foreign, limit)
    if not shown.strip():
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    gap = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{gap}{shown}{gap}{fence}".replace("|", "\\|")


def row(cells: list[str]) -> str:
    """Return one line of a table; the cells are Markdown."""
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table; the cells are Markdown."""
    return [row(head), f"|{'---|' * len(head)}", *map(row, rows)]


def fence_lines(lines: Iterable[str], language: str = "text", limit: int = MAX_LINE_CHARS) -> Iterator[str]:
    """Yield lines, each cut to `limit` characters, as a code block with a fence that the lines do not contain."""
    shown = [escape_text(line, limit) for line in lines]
    runs = (run for line in shown for run in re.findall("`+", line))
    fence = "`" * max(3, 1 + max(map(len, runs), default=0))
    yield f"{fence}{language}"
    yield from shown
    yield fence
