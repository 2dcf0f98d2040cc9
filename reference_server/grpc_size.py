"""How large a message is, before it is read: a few bytes of protobuf can stand for much memory and time.

Raw contents are kept as they are, so that they count for nothing here. Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reference_server.errors import InferenceError
from reference_server.limits import get_limits

Message = Any  # the generated classes have no types
Field = tuple[int, int]  # its number, and how many bytes its value has

RAW_INPUTS: Final = 7  # the number of the field raw_input_contents in a ModelInferRequest
MAX_UNCHECKED_BYTES: Final = 64 * 1024  # bytes of which not much can be made
PER_ENTRY: Final = 4  # fields of a message for each entry of inputs; two are what it takes
TOO_LARGE: Final = 413
_VARINT, _FIXED_64, _DELIMITED, _FIXED_32 = 0, 1, 2, 5  # the types on the wire
_SIZES: Final = {_FIXED_64: 8, _FIXED_32: 4}


def check_message(octets: bytes) -> None:
    """Refuse a message that has more fields, or more bytes beside raw contents, than are read."""
    if len(octets) <= MAX_UNCHECKED_BYTES:
        return
    beside, most = len(octets), PER_ENTRY * get_limits().entries
    for count, (number, size) in enumerate(read_fields(octets)):
        if count >= most:
            raise InferenceError(f"the message has more than {most} fields", status=TOO_LARGE)
        beside -= size if number == RAW_INPUTS else 0
    if beside > get_limits().json:
        raise InferenceError(
            f"the message has {beside} bytes beside raw contents, and {get_limits().json} are taken", status=TOO_LARGE
        )


def check_elements(message: Message) -> None:
    """Refuse typed contents of more elements than are read."""
    count = sum(len(values) for entry in message.inputs for _, values in entry.contents.ListFields())
    if count > get_limits().elements:
        raise InferenceError(
            f"the contents have {count} elements, and {get_limits().elements} are taken", status=TOO_LARGE
        )


def read_fields(octets: bytes) -> Iterator[Field]:
    """Yield the fields of a message; of bytes that are none, some."""
    at = 0
    while at < len(octets):
        tag, at = read_varint(octets, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            size = read_varint(octets, at)[1] - at
        elif kind == _DELIMITED:
            size, at = read_varint(octets, at)
        else:
            size = _SIZES.get(kind, 0)
        yield tag >> 3, size
        at += size


def read_varint(octets: bytes, at: int) -> tuple[int, int]:
    """Return an integer of up to ten groups of seven bits, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(octets):
            break
        byte, at = octets[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at
