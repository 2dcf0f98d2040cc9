"""Lines of terminal output, with a style from which the writer derives colors and wrapping."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Style(StrEnum):
    """The style of a line, from which the writer derives its color."""

    PLAIN = "plain"
    BAD = "bad"
    WARNING = "warning"
    HEAD = "head"
    ASIDE = "aside"


# Markup arguments for pytest's terminal writer.
MARKUP: Mapping[Style, Mapping[str, bool]] = {
    Style.PLAIN: {},
    Style.BAD: {"red": True, "bold": True},
    Style.WARNING: {"yellow": True, "bold": True},
    Style.HEAD: {"bold": True},
    Style.ASIDE: {"light": True},
}
MIN_WIDTH = 60  # columns; a narrower terminal wraps by itself


@dataclass(frozen=True, slots=True)
class Line:
    """A line of terminal output.

    Attributes:
        hang: the indentation of continuation lines, in columns.
        is_whole: whether the line is never wrapped, so that users can copy it.
    """

    text: str
    style: Style = Style.PLAIN
    hang: int = 0
    is_whole: bool = False

    def wrap(self, width: int | None) -> list[str]:
        """Wrap the line to a width in columns; do not wrap it if the width is None, as for output to a file."""
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
