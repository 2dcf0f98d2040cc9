"""Foreign text in Markdown: whatever a server wrote stays text, on one line, in a table or outside (GFM)."""

from __future__ import annotations

import re

from conformance.spec.text import escape_text

_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "\\`*[]|~#$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # within a word an underscore is one
# What becomes a link without any brackets: an entity is text again once the page is shown.
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def text(foreign: str, limit: int = 300) -> str:
    """Return `foreign` as text that has no meaning in Markdown, cut to `limit` characters."""
    shown = _EMPHASIS.sub(r"\\_", escape_text(foreign, limit).translate(_SPECIAL))
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", shown)


def code(foreign: str, limit: int = 300) -> str:
    """Return `foreign` as code, with a fence that it does not contain; in tables too."""
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
