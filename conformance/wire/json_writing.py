"""JSON in every spelling that a client or a server may choose: the same document to every reader.

Source: RFC 8259, 2 "JSON Grammar", 4 "Objects", 6 "Numbers" and 7 "Strings".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

WriteText = Callable[[str], str]


def write_plain(text: str) -> str:
    """Return a JSON string with the escapes that it cannot go without."""
    return json.dumps(text, ensure_ascii=False)


def write_ascii(text: str) -> str:
    r"""Return a JSON string in ASCII: any other character is a `\u` escape, or two of them."""
    return json.dumps(text)


def write_escaped(text: str) -> str:
    r"""Return a JSON string in which every character is a `\u` escape, or two of them beyond U+FFFF."""
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2)) + '"'


def write_first_escaped(text: str) -> str:
    r"""Return a JSON string of which the first character is a `\u` escape."""
    return write_escaped(text[:1])[:-1] + write_plain(text[1:])[1:]


def write_exponent(number: float) -> str:
    """Return a number with an exponent, exactly."""
    return format(number, ".17E")


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How JSON is written.

    Attributes:
        comma: between members and elements, with white space around it.
        colon: behind the name of a member, likewise.
        inside: white space behind an opening bracket and before a closing one.
        around: white space before and behind the whole.
        name: writes the names of members.
        text: writes other strings.
        number: writes floating-point numbers.
        sort: returns the names of an object's members in the order in which they are written.
        plain_members: names of members whose values are strings that `text` does not write.
        max_elements: longer lists are written by the library, which is fast.
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
        """Return a document as UTF-8."""
        return f"{self.around}{self._value(document)}{self.around}".encode()

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            members = (self._member(name, value[name]) for name in self.sort(list(value)))
            return f"{{{self.inside}{self.comma.join(members)}{self.inside}}}"
        if isinstance(value, list):
            if len(value) > self.max_elements or self._is_plain(value):
                is_ascii = self.text is not write_plain
                return json.dumps(value, ensure_ascii=is_ascii, separators=(self.comma, self.colon))
            return f"[{self.inside}{self.comma.join(map(self._value, value))}{self.inside}]"
        if isinstance(value, str):
            return self.text(value)
        return self.number(value) if isinstance(value, float) else json.dumps(value)

    def _member(self, name: str, value: Any) -> str:
        written = json.dumps(value) if name in self.plain_members else self._value(value)
        return f"{self.name(name)}{self.colon}{written}"

    def _is_plain(self, value: list[Any]) -> bool:
        """Say whether the library writes a list as this style does."""
        types = set(map(type, value))
        return not self.inside and (
            types <= {int, bool}
            or (types == {float} and self.number is json.dumps)
            or (types == {str} and self.text in (write_plain, write_ascii))
        )


COMPACT: Final = JsonStyle()
