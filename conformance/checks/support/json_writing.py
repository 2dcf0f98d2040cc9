"""The JSON of a request written in other ways: other orders of members, escapes, white space, members nobody defined.

What a request asks for stays the same, and the inference header fits the text that is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message

Document = Mapping[str, Any]
Spell = Callable[[str], str]


def write_plain_string(text: str) -> str:
    """Return a JSON string as it is usually written."""
    return json.dumps(text, ensure_ascii=False)


def write_escaped_string(text: str) -> str:
    r"""Return a JSON string in which every character is a \u escape, or two of them."""
    octets = text.encode("utf-16-be")
    units = [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]
    return '"' + "".join(f"\\u{unit:04x}" for unit in units) + '"'


def write_first_escaped(text: str) -> str:
    r"""Return a JSON string of which the first character is a \u escape, with letters in upper case."""
    return (
        f'"\\u{ord(text[0]):04X}{write_plain_string(text[1:])[1:]}'
        if text and ord(text[0]) < 0x10000
        else write_plain_string(text)
    )


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write JSON.

    Attributes:
        order: the members of every object that come first, in this order; the others follow, last first where
            `backwards`.
        name: writes the names of members.
        text: writes the strings that are values.
        gap: white space on either side of every token.
    """

    order: tuple[str, ...] = ()
    backwards: bool = False
    name: Spell = write_plain_string
    text: Spell = write_plain_string
    gap: str = ""

    def written(self, value: Any) -> str:
        """Return a value as JSON."""
        gap = self.gap
        if isinstance(value, dict):
            members = (f"{gap}{self.name(name)}{gap}:{gap}{self._member(name, value)}" for name in self._sorted(value))
            return f"{{{gap}{f'{gap},{gap}'.join(members)}{gap}}}"
        if isinstance(value, list):
            return f"[{gap}{f'{gap},{gap}'.join(map(self.written, value))}{gap}]"
        return self.text(value) if isinstance(value, str) else json.dumps(value)

    def _member(self, name: str, owner: Mapping[str, Any]) -> str:
        """Return the value of a member; an id as it is usually written, for its escapes have checks of their own."""
        return json.dumps(owner[name]) if name == "id" else self.written(owner[name])

    def _sorted(self, names: Iterable[str]) -> list[str]:
        rest = [name for name in names if name not in self.order]
        first = [name for name in self.order if name in names]
        return first + (rest[::-1] if self.backwards else rest)


def written(request: InferRequest, style: Style) -> Message:
    """Return a request with its JSON written in a style."""
    return replace_json(request.message(), style.written(request.written()).encode())


def replace_json(message: Message, head: bytes) -> Message:
    """Return a message with another text in place of its JSON; the inference header, if there is one, fits it."""
    by = len(head) - message.json_length
    spans = tuple((name, datatype, start + by, end + by) for name, datatype, start, end in message.spans)
    sent = replace(message, body=head + message.body[message.json_length :], json_length=len(head), spans=spans)
    return sent if sent.header(INFERENCE_HEADER) is None else sent.with_header(INFERENCE_HEADER, str(len(head)))
