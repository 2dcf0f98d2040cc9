"""Writes JSON in different styles (white space, escapes, numbers), which all parse to the same document.

Source: RFC 8259, 2 "JSON Grammar", 4 "Objects", 6 "Numbers" and 7 "Strings".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii  # json.dumps makes an encoder for each string
from typing import Any, Final

WriteText = Callable[[str], str]


def write_plain(text: str) -> str:
    """Return a JSON string with only the necessary escapes."""
    return encode_basestring(text)


def write_ascii(text: str) -> str:
    r"""Return a JSON string in ASCII: other characters become one or two `\u` escapes."""
    return encode_basestring_ascii(text)


def write_escaped(text: str) -> str:
    r"""Return a JSON string of `\u` escapes only: one for each character, two for a character beyond U+FFFF."""
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2)) + '"'


def write_first_escaped(text: str) -> str:
    r"""Return a JSON string whose first character is a `\u` escape."""
    return write_escaped(text[:1])[:-1] + write_plain(text[1:])[1:]


def write_short_escapes(text: str) -> str:
    r"""Return a JSON string in which slashes are escaped as well, as `\/`."""
    return write_plain(text).replace("/", "\\/")


def write_exponent(number: float) -> str:
    """Format a number with an exponent, exactly."""
    return format(number, ".17E")


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """A style in which JSON is written.

    Attributes:
        comma: the comma between members and between elements, with optional white space.
        colon: the colon after the name of a member, with optional white space.
        inside: white space after each opening bracket and before each closing bracket.
        around: white space before and after the document.
        name: formats the names of members.
        text: formats other strings.
        number: formats floating-point numbers.
        sort: returns the names of an object's members in the order in which they are written.
        plain_members: names of members whose values are written by `json.dumps`, not in this style.
        max_elements: longer lists are written by `json.dumps`, which is faster.
    """

    comma: str = ","
    colon: str = ":"
    inside: str = ""
    around: str = ""
    name: WriteText = write_plain
    text: WriteText = write_plain
    number: Callable[[float], str] = json.dumps
    sort: Callable[[list[str]], Iterable[str]] = list
    plain_members: frozenset[str] = frozenset()
    max_elements: int = sys.maxsize

    def write(self, document: Any) -> bytes:
        """Return a document as JSON in this style, encoded as UTF-8."""
        return f"{self.around}{self._format_value(document)}{self.around}".encode()

    def _format_value(self, value: Any) -> str:
        if isinstance(value, dict):
            members = (self._format_member(name, value[name]) for name in self.sort(list(value)))
            return f"{{{self.inside}{self.comma.join(members)}{self.inside}}}"
        if isinstance(value, list):
            if len(value) > self.max_elements or self._is_plain(value):
                is_ascii = self.text is not write_plain
                return json.dumps(value, ensure_ascii=is_ascii, separators=(self.comma, self.colon))
            return f"[{self.inside}{self.comma.join(map(self._format_value, value))}{self.inside}]"
        if isinstance(value, str):
            return self.text(value)
        return self.number(value) if isinstance(value, float) else json.dumps(value)

    def _format_member(self, name: str, value: Any) -> str:
        written = json.dumps(value) if name in self.plain_members else self._format_value(value)
        return f"{self.name(name)}{self.colon}{written}"

    def _is_plain(self, value: list[Any]) -> bool:
        """Return whether `json.dumps` writes this list exactly as this style does."""
        types = set(map(type, value))
        return not self.inside and (
            types <= {int, bool}
            or (types == {float} and self.number is json.dumps)
            or (types == {str} and self.text in (write_plain, write_ascii))
        )


COMPACT: Final = JsonStyle()
