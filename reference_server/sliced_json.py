"""Reads a long JSON text in slices, within limits that hold while it is read.

Python's reader keeps every other thread waiting until it is through, and takes whatever fits memory. Here it gets runs
of scalars a slice at a time; what is around them is read by this module. Which texts are JSON, and what each is, is as
there, positions of mistakes included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

SLICE = 32 * 1024  # characters; about a millisecond

_BLANKS = re.compile(r"[ \t\n\r]*")
# Scalars, a string among them at most, each up to its comma.
_SCALARS = re.compile(r"""(?:[^"\[\]{},]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{},]*+)?,)*+""", re.DOTALL)


class Reader:
    """Reads one text.

    Attributes:
        text: the JSON.
        pairs: makes an object of its members, as `object_pairs_hook`.
        count: is called with how many values were read, before they are kept; raises where they are too many.
        enter: is called for each array and object, and each member of one, with how deep it stands, 1 for the first;
            raises likewise.
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
        """Return the value that the whole text is.

        Raises:
            JSONDecodeError: it is none.
            ValueError: an integer has more digits than Python reads.
        """
        value, end = self._value(self._skip(0), 1)
        if (end := self._skip(end)) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, end)
        return value

    def _skip(self, at: int) -> int:
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if first == "[":
            self.enter(depth)
            return self._array(self._skip(at + 1), depth)
        if first == "{":
            self.enter(depth)
            return self._object(self._skip(at + 1), depth)
        self.count(1)
        if first == '"':
            text: tuple[str, int] = scanstring(self.text, at + 1, True)
            return text
        return self._scalars.raw_decode(self.text, at)

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        """Read an array from its first value on."""
        items: list[Any] = []
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            at = self._run(items, at)
            item, at = self._value(at, depth + 1)
            items.append(item)
            at = self._skip(at)
            mark = self.text[at : at + 1]
            if mark == "]":
                return items, at + 1
            if mark != ",":
                raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
            at = self._skip(at + 1)

    def _run(self, items: list[Any], at: int) -> int:
        """Read the scalars that a comma follows, a slice at a time, and return where the next value begins."""
        while (run := _SCALARS.match(self.text, at, at + SLICE)) and (cut := run.end() - 1) >= at:
            if cut == at:  # nothing in front of a comma, which the reader would take for an empty array
                raise JSONDecodeError("Expecting value", self.text, at)
            try:
                found = self._scalars.decode(f"[{self.text[at:cut]}]")
            except JSONDecodeError as error:
                raise JSONDecodeError(error.msg, self.text, at + error.pos - 1) from None
            self.count(len(found))
            items += found
            at = self._skip(cut + 1)
        return at

    def _object(self, at: int, depth: int) -> tuple[Any, int]:
        """Read an object from its first member on."""
        members: list[tuple[str, Any]] = []
        if self.text[at : at + 1] == "}":
            return self.pairs(members), at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
            self.enter(depth)
            name, at = scanstring(self.text, at + 1, True)
            at = self._skip(at)
            if self.text[at : at + 1] != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self.text, at)
            value, at = self._value(self._skip(at + 1), depth + 1)
            members.append((name, value))
            at = self._skip(at)
            mark = self.text[at : at + 1]
            if mark == "}":
                return self.pairs(members), at + 1
            if mark != ",":
                raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
            at = self._skip(at + 1)
