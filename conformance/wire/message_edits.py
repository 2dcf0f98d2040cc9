"""Edits of encoded messages: of the path, headers, body and binary data of requests and of answers. Sans-I/O.

`edits` changes the document before it is encoded; these edits change the message. `encode_edited` makes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from conformance.wire.edits import DocumentEdit, ValueChange, chain, find_entry
from conformance.wire.request import INFERENCE_HEADER, Message

HeaderValue = str | int | Callable[[Message], object]


@dataclass(frozen=True, slots=True)
class Path:
    """Sends the request to another path, which is given, or computed from the message."""

    path: str | Callable[[Message], str]

    def __call__(self, message: Message) -> Message:
        """Return the changed message."""
        return replace(message, path=self.path(message) if callable(self.path) else self.path)


@dataclass(frozen=True, slots=True)
class Header:
    """Sets a header to a value, or to several values, one header each; without a value, removes it."""

    name: str
    values: HeaderValue | tuple[HeaderValue, ...] = ()

    def __call__(self, message: Message) -> Message:
        """Return the changed message."""
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        headers = [(self.name, str(value(message) if callable(value) else value)) for value in values]
        plain = message.with_header(self.name, None)
        return replace(plain, headers=(*plain.headers, *headers))


@dataclass(frozen=True, slots=True)
class Body:
    """Replaces the body by these bytes, or by those that a function computes from it."""

    value: bytes | ValueChange

    def __call__(self, message: Message) -> Message:
        """Return the changed message."""
        return message.with_body(_compute_bytes(self.value, message.body))


@dataclass(frozen=True, slots=True)
class Data:
    """Replaces the binary data of one tensor, but no size; None stands for all tensors, else `of` is as in a path."""

    value: bytes | ValueChange
    of: str | None = "0"

    def __call__(self, message: Message) -> Message:
        """Return the changed message."""
        if self.of is None:
            return message.with_body(message.body[: message.json_length] + _compute_bytes(self.value, b""))
        entries = [{"name": name, "datatype": datatype} for name, datatype, *_ in message.spans]
        index = range(len(entries))[find_entry(entries, self.of)]
        name, datatype, start, end = message.spans[index]
        data = _compute_bytes(self.value, message.body[start:end])
        by = start + len(data) - end
        later = [(name, datatype, start + by, end + by) for name, datatype, start, end in message.spans[index + 1 :]]
        spans = (*message.spans[:index], (name, datatype, start, end + by), *later)
        return replace(message, body=message.body[:start] + data + message.body[end:], spans=spans)


MessageEdit = Path | Header | Body | Data
Edit = DocumentEdit | MessageEdit


def _compute_bytes(value: bytes | ValueChange, old: bytes) -> bytes:
    return value if isinstance(value, bytes) else bytes(value(old))


def set_length(*values: HeaderValue) -> Header:
    """Return an edit that sets the inference header, or several; without a value, removes it."""
    return Header(INFERENCE_HEADER, values)


def measure_json(change: ValueChange = int) -> HeaderValue:
    """Return the length of the JSON as a value of a header, changed by a function."""
    return lambda message: change(message.json_length)


def measure_body(change: ValueChange = int) -> HeaderValue:
    """Return the length of the body as a value of a header, changed by a function."""
    return lambda message: change(len(message.body))


def encode_edited(encode: Callable[[DocumentEdit], Message], edits: Iterable[Edit]) -> Message:
    """Return a message to which these edits were made.

    Args:
        encode: changes the document of the message by an edit, and encodes it.
        edits: edits of the document and of the encoded message, each kind in its order.
    """
    edits = tuple(edits)
    message = encode(chain(*[edit for edit in edits if not isinstance(edit, MessageEdit)]))
    for edit in edits:
        message = edit(message) if isinstance(edit, MessageEdit) else message
    return message
