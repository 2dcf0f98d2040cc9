"""A minimal scanner of the protobuf encoding: offsets of entries and sizes, before a message is parsed.

A few bytes can require much memory: an empty output of two bytes takes a hundred once parsed. So everything except raw
contents, which stay unparsed, is counted first.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from conformance.wire.finding import Finding

RAW_OUTPUTS_FIELD: Final = 6  # the number of the field raw_output_contents in a ModelInferResponse
MAX_FIELDS: Final = 10_000  # of fields at the top level; an answer has two for each output, and a few more
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # bytes outside of raw contents
_VARINT, _FIXED_64, _DELIMITED, _GROUP, _END_GROUP, _FIXED_32 = range(6)  # the types on the wire
_SIZES: Final = {_FIXED_64: 8, _FIXED_32: 4, _GROUP: 0, _END_GROUP: 0}
_NESTING: Final = {_GROUP: 1, _END_GROUP: -1}

Span = tuple[int, int]


class Field(NamedTuple):
    """A field: its number, and the offsets of its value.

    The number is 0 inside a group, and if the value is not length-delimited: in the messages scanned here protobuf
    ignores such fields.
    """

    number: int
    start: int
    end: int


def scan_fields(body: bytes) -> Iterator[Field]:
    """Yield the fields of a valid message; for other bytes yield some fields. Never raises."""
    at = depth = 0
    while at < len(body):
        tag, at = _parse_varint(body, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            size = _parse_varint(body, at)[1] - at
        elif kind == _DELIMITED:
            size, at = _parse_varint(body, at)
        else:
            size = _SIZES.get(kind, len(body))
        depth += _NESTING.get(kind, 0)
        yield Field(tag >> 3 if kind == _DELIMITED and not depth else 0, at, at + size)
        at += size


def scan_raw_spans(body: bytes, number: int = RAW_OUTPUTS_FIELD) -> Iterator[Span]:
    """Yield the offsets of the entries of raw_output_contents, or of another field, in a valid message."""
    return ((field.start, field.end) for field in scan_fields(body) if field.number == number)


def find_excess(body: bytes, raw: int = RAW_OUTPUTS_FIELD) -> Finding | None:
    """Return a finding if a message exceeds the limits; entries of the field `raw` may have any size."""
    found = list(islice(scan_fields(body), MAX_FIELDS + 1))
    if len(found) > MAX_FIELDS:
        return Finding("message-too-large", "message", None, f"at most {MAX_FIELDS} fields", "more")
    beside = len(body) - sum(field.end - field.start for field in found if field.number == raw)
    if beside > MAX_MESSAGE_BYTES:
        return Finding(
            "message-too-large", "message", None, f"at most {MAX_MESSAGE_BYTES} bytes beside raw contents", f"{beside}"
        )
    return None


def _parse_varint(body: bytes, at: int) -> tuple[int, int]:
    """Parse a varint: groups of seven bits, the lowest first; also return its end."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift >= 70:
            break
    return value, at
