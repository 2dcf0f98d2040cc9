"""Pages are written in CommonMark, as GitHub reads it; MkDocs reads an older Markdown. They differ in lists.

Python-Markdown takes a list for a part of the paragraph above it unless a blank line is between them, and what belongs
to an item must be indented by four spaces, where CommonMark takes as many as the marker is wide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKER = re.compile(r"\s*(?:[-+*]|\d+[.)]) *")
_OWN = 4  # spaces that Python-Markdown asks for
_PARSER = MarkdownIt("commonmark").enable("table")


@cache
def parse(text: str) -> Sequence[Token]:
    """Return the tokens of a page; a long one takes a second."""
    return _PARSER.parse(text)


def convert_for_mkdocs(text: str) -> str:
    """Return a page with its lists as Python-Markdown reads them; everything else is as it was."""
    lines = text.split("\n")
    tokens = parse(text)
    depths, offsets = _items(tokens, lines)
    first = {line for token in _lists(tokens) for line in _begins(token)}
    written: list[str] = []
    for number, line in enumerate(lines):
        if number in first and written and written[-1].strip():
            written.append("")
        written.append(_indented(line, depths[number], offsets[number]))
    return "\n".join(written)


def _lists(tokens: Sequence[Token]) -> Iterator[Token]:
    return (token for token in tokens if token.type in ("bullet_list_open", "ordered_list_open"))


def _begins(token: Token) -> list[int]:
    return [token.map[0]] if token.map else []


def _items(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return for each line in how many items it is, and how far its text is indented by them.

    The line on which an item begins counts for those around it alone.
    """
    depths, offsets = [0] * len(lines), [0] * len(lines)
    for token in tokens:
        if token.type == "list_item_open" and token.map:
            begin, end = token.map
            marker = _MARKER.match(lines[begin])
            width = len(marker.group()) if marker else 0
            for number in range(begin + 1, end):
                depths[number] += 1
                offsets[number] = width
    return depths, offsets


def _indented(line: str, depth: int, offset: int) -> str:
    """Return a line with four spaces for each item that it is in, in place of those that CommonMark asks for."""
    if not depth or not line.strip():
        return line
    bare = line[offset:] if not line[:offset].strip() else line.lstrip()
    return " " * (_OWN * depth) + bare
