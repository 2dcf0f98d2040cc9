"""Protobuf's encoding, as far as a message has to be looked at before it is read: where entries lie, how much there is.

A few bytes can stand for much memory: an empty output of two bytes takes a hundred once it is read. So what a message
holds beside raw contents, which are kept as they are, is counted first.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from conformance.wire.finding import Finding

RAW_OUTPUTS_FIELD: Final = 6  # the number of the field raw_output_contents in a ModelInferResponse
MAX_FIELDS: Final = 10_000  # of fields of a message itself; an answer has two for each output, and a few
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # bytes beside raw contents
_VARINT, _FIXED_64, _DELIMITED, _GROUP, _END_GROUP, _FIXED_32 = range(6)  # the types on the wire
_SIZES: Final = {_FIXED_64: 8, _FIXED_32: 4, _GROUP: 0, _END_GROUP: 0}
_NESTING: Final = {_GROUP: 1, _END_GROUP: -1}

Span = tuple[int, int]


class Field(NamedTuple):
    """A field: its number, and where its value lies.

    The number is 0 within a group, and where the value has no length in front: protobuf knows no such field of a
    message of ours, whatever its number.
    """

    number: int
    start: int
    end: int


def scan_fields(body: bytes) -> Iterator[Field]:
    """Yield the fields of a message that protobuf takes; of any other bytes, some. Never raises."""
    at = depth = 0
    while at < len(body):
        tag, at = _varint(body, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            size = _varint(body, at)[1] - at
        elif kind == _DELIMITED:
            size, at = _varint(body, at)
        else:
            size = _SIZES.get(kind, len(body))
        depth += _NESTING.get(kind, 0)
        yield Field(tag >> 3 if kind == _DELIMITED and not depth else 0, at, at + size)
        at += size


def scan_raw_spans(body: bytes, number: int = RAW_OUTPUTS_FIELD) -> Iterator[Span]:
    """Yield where the entries of raw_output_contents, or of another field, lie in a message that protobuf takes."""
    return ((field.start, field.end) for field in scan_fields(body) if field.number == number)


def find_excess(body: bytes, raw: int = RAW_OUTPUTS_FIELD) -> Finding | None:
    """Return what makes a message larger than anybody reads; its entries of the field `raw` may be of any size."""
    found = list(islice(scan_fields(body), MAX_FIELDS + 1))
    if len(found) > MAX_FIELDS:
        return Finding("message-too-large", "message", None, f"at most {MAX_FIELDS} fields", "more")
    beside = len(body) - sum(field.end - field.start for field in found if field.number == raw)
    if beside > MAX_MESSAGE_BYTES:
        return Finding(
            "message-too-large", "message", None, f"at most {MAX_MESSAGE_BYTES} bytes beside raw contents", f"{beside}"
        )
    return None


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Return an integer of groups of seven bits, the lowest first, and where it ends."""
    value = shift = 0
    while at < len(body):
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift >= 70:
            break
    return value, at
