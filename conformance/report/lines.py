"""A line that a terminal shows: what it is, so that the writer can wrap and colour it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Style(StrEnum):
    """What a line is."""

    PLAIN = "plain"
    BAD = "bad"
    WARNING = "warning"
    HEAD = "head"
    ASIDE = "aside"


# What pytest's own writer takes.
MARKUP: Mapping[Style, Mapping[str, bool]] = {
    Style.PLAIN: {},
    Style.BAD: {"red": True, "bold": True},
    Style.WARNING: {"yellow": True, "bold": True},
    Style.HEAD: {"bold": True},
    Style.ASIDE: {"light": True},
}
MIN_WIDTH = 60  # columns; a terminal that is narrower still wraps for itself


@dataclass(frozen=True, slots=True)
class Line:
    """A line.

    Attributes:
        hang: columns by which what does not fit is indented.
        is_whole: it is never wrapped, since somebody copies it.
    """

    text: str
    style: Style = Style.PLAIN
    hang: int = 0
    is_whole: bool = False

    def wrapped(self, width: int | None) -> list[str]:
        """Return the line in pieces that fit; None is a file, which has no width."""
        if width is None or self.is_whole or len(self.text) <= width:
            return [self.text]
        return textwrap.wrap(
            self.text,
            max(width, MIN_WIDTH),
            subsequent_indent=" " * self.hang,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
