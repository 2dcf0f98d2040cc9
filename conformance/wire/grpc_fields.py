"""A minimal scanner of the protobuf encoding: finds the offsets and sizes of fields without parsing their values.

Parsing can need much memory: an empty output of two bytes takes a hundred bytes after parsing. So fields and bytes are
counted before a message is parsed, except the bytes of raw contents, which are not parsed.

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
    """The number of a field, and the offsets of its value.

    The number is 0 for fields that protobuf ignores in the scanned messages: fields inside a group, and fields whose
    value is not length-delimited.
    """

    number: int
    start: int
    end: int


def scan_fields(body: bytes) -> Iterator[Field]:
    """Yield the fields of a message; for bytes that are not a valid message, the fields are arbitrary. Never raises."""
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
    """Yield start and end of each entry of a repeated field, by default raw_output_contents, in a valid message."""
    return ((field.start, field.end) for field in scan_fields(body) if field.number == number)


def find_excess(body: bytes, raw: int = RAW_OUTPUTS_FIELD) -> Finding | None:
    """Return a finding if a message exceeds the limits; `raw` is the number of the field whose size is not limited."""
    found = list(islice(scan_fields(body), MAX_FIELDS + 1))
    if len(found) > MAX_FIELDS:
        return Finding("message-too-large", "message", None, f"at most {MAX_FIELDS} fields", "more")
    parsed_bytes = len(body) - sum(field.end - field.start for field in found if field.number == raw)
    if parsed_bytes > MAX_MESSAGE_BYTES:
        expected = f"at most {MAX_MESSAGE_BYTES} bytes outside of raw contents"
        return Finding("message-too-large", "message", None, expected, f"{parsed_bytes}")
    return None


def _parse_varint(body: bytes, at: int) -> tuple[int, int]:
    """Return the varint at an offset (groups of seven bits, the lowest first), and the offset after the varint."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift >= 70:
            break
    return value, at
