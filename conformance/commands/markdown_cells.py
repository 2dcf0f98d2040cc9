"""Lines of Markdown tables in the pages that are generated from our own files."""

from __future__ import annotations

import re
from collections.abc import Iterable


def format_row(cells: Iterable[str]) -> str:
    """Return one line of a table, ending in a newline."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def format_link(text: str, url: str) -> str:
    """Return a link; brackets in its text are escaped."""
    shown = re.sub(r"([][])", r"\\\1", text)
    return f"[{shown}]({url})"
