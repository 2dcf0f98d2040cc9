"""JSON written in every way that RFC 8259 allows and a server may choose."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


def write_plain_text(text: str) -> str:
    """Write a string with the escapes that it cannot go without."""
    return json.dumps(text, ensure_ascii=False)


def write_ascii_text(text: str) -> str:
    r"""Write a string in ASCII: whatever else is in it becomes `\uXXXX`, beyond U+FFFF as two surrogates."""
    return json.dumps(text)


def write_escaped_text(text: str) -> str:
    r"""Write every character of a string as `\uXXXX`."""
    units = text.encode("utf-16-be", "surrogatepass")
    return '"' + "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2)) + '"'


def write_exponent(number: float) -> str:
    """Write a floating-point number with an exponent, exactly."""
    return format(number, ".17E")


@dataclass(frozen=True, slots=True)
class JsonWriting:
    """How JSON is written.

    Attributes:
        gap: white space at every place where it is allowed.
        name: how names of members are written; `text`: other strings; `number`: floating-point numbers.
        around: white space before and behind the whole.
    """

    gap: str = ""
    name: Callable[[str], str] = write_plain_text
    text: Callable[[str], str] = write_plain_text
    number: Callable[[float], str] = repr
    around: str = ""

    def written(self, document: Any) -> bytes:
        """Return a document as UTF-8."""
        return f"{self.around}{self._value(document)}{self.around}".encode()

    def _value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, dict):
            pairs = [f"{self.name(key)}{self.gap}:{self.gap}{self._value(member)}" for key, member in value.items()]
            return self._enclosed("{", pairs, "}")
        if isinstance(value, list):
            return self._enclosed("[", [self._value(member) for member in value], "]")
        return json.dumps(value)

    def _enclosed(self, first: str, members: list[str], last: str) -> str:
        between = f"{self.gap},{self.gap}"
        return f"{first}{self.gap}{between.join(members)}{self.gap}{last}"


COMPACT: Final = JsonWriting()
