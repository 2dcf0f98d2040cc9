"""Escapes foreign text for Markdown (GFM): text from a server stays literal and on one line, also in tables."""

from __future__ import annotations

import re

from conformance.spec.text import escape_text

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
