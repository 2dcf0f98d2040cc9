"""Parses a long JSON text in slices, and enforces limits while it reads.

Python's JSON decoder blocks all other threads until it finishes, and accepts whatever fits into memory. Here it decodes
runs of scalars a slice at a time, and this module parses the structure around them. It accepts the same texts with the
same results and the same error positions as Python's decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

SLICE = 32 * 1024  # characters; about a millisecond

_BLANKS = re.compile(r"[ \t\n\r]*")
# Scalars, each followed by a comma; a scalar contains at most one string.
_SCALARS = re.compile(r"""(?:[^"\[\]{},]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{},]*+)?,)*+""", re.DOTALL)


class Reader:
    """Parses one text.

    Attributes:
        pairs: builds an object from its members, like `object_pairs_hook`.
        count: called with the number of values read, before they are stored; raises if there are too many.
        enter: called with the depth of each array, object and member of an object, starting at 1; raises if there are
            too many or the depth is too large.
    """

    def __init__(
        self,
        text: str,
        pairs: Callable[[list[tuple[str, Any]]], Any],
        constant: Callable[[str], Any],
        count: Callable[[int], None],
        enter: Callable[[int], None],
    ) -> None:
        self.text = text
        self.pairs = pairs
        self.count = count
        self.enter = enter
        self._scalars = JSONDecoder(parse_constant=constant)

    def read(self) -> Any:
        """Parse the whole text and return its value.

        Raises:
            JSONDecodeError: the text is not JSON.
            ValueError: an integer has more digits than Python accepts.
        """
        value, end = self._parse_value(self._skip_white_space(0), 1)
        if (end := self._skip_white_space(end)) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, end)
        return value

    def _skip_white_space(self, at: int) -> int:
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at

    def _parse_value(self, at: int, depth: int) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if first == "[":
            self.enter(depth)
            return self._parse_array(self._skip_white_space(at + 1), depth)
        if first == "{":
            self.enter(depth)
            return self._parse_object(self._skip_white_space(at + 1), depth)
        self.count(1)
        if first == '"':
            text: tuple[str, int] = scanstring(self.text, at + 1, True)
            return text
        return self._scalars.raw_decode(self.text, at)

    def _parse_array(self, at: int, depth: int) -> tuple[list[Any], int]:
        """Parse an array, starting at its first value."""
        items: list[Any] = []
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            at = self._parse_scalars(items, at)
            item, at = self._parse_value(at, depth + 1)
            items.append(item)
            at = self._skip_white_space(at)
            mark = self.text[at : at + 1]
            if mark == "]":
                return items, at + 1
            if mark != ",":
                raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
            at = self._skip_white_space(at + 1)

    def _parse_scalars(self, items: list[Any], at: int) -> int:
        """Parse scalars that are followed by a comma, a slice at a time; return the offset of the next value."""
        while (run := _SCALARS.match(self.text, at, at + SLICE)) and (cut := run.end() - 1) >= at:
            if cut == at:  # nothing before the comma, which the decoder would accept as an empty array
                raise JSONDecodeError("Expecting value", self.text, at)
            try:
                found = self._scalars.decode(f"[{self.text[at:cut]}]")
            except JSONDecodeError as error:
                raise JSONDecodeError(error.msg, self.text, at + error.pos - 1) from None
            self.count(len(found))
            items += found
            at = self._skip_white_space(cut + 1)
        return at

    def _parse_object(self, at: int, depth: int) -> tuple[Any, int]:
        """Parse an object, starting at its first member."""
        members: list[tuple[str, Any]] = []
        if self.text[at : at + 1] == "}":
            return self.pairs(members), at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
            self.enter(depth)
            name, at = scanstring(self.text, at + 1, True)
            at = self._skip_white_space(at)
            if self.text[at : at + 1] != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self.text, at)
            value, at = self._parse_value(self._skip_white_space(at + 1), depth + 1)
            members.append((name, value))
            at = self._skip_white_space(at)
            mark = self.text[at : at + 1]
            if mark == "}":
                return self.pairs(members), at + 1
            if mark != ",":
                raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
            at = self._skip_white_space(at + 1)
