"""Describes a position in a body for failure messages: the label of the field there, and a hex dump around it.

A label names a field in words, such as "tensor 1 OUT0 INT32 element 2". The hex dump is printable ASCII.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_name
from conformance.wire.response import Answer

MAX_ELEMENTS = 64  # the number of elements of a BYTES tensor that get separate fields


@dataclass(frozen=True, slots=True)
class Layout:
    """The offsets of the JSON and of the binary tensors in a body of a request or response.

    Attributes:
        spans: (name, datatype, start, end) of the binary tensors, in the order of the body.
        body: the body, needed to find the elements of BYTES tensors; if empty, their elements get no labels.
        indices: the indices of the binary tensors in `inputs` or `outputs` of the JSON; if empty, 0, 1, 2 and so on, in
            the order of `spans`.
    """

    json_end: int
    spans: Iterable[tuple[str, str, int, int]] = ()
    body: bytes = b""
    indices: tuple[int, ...] = ()

    @classmethod
    def from_answer(cls, answer: Answer) -> Layout:
        """Return the layout of an answer."""
        placed = [(output, output.span) for output in answer.outputs if output.span is not None]
        spans = tuple((output.name, output.datatype, *span) for output, span in placed)
        return cls(answer.json_end, spans, answer.body, tuple(output.index for output, _ in placed))


def find_field_label(where: Answer | Layout, offset: int) -> str:
    """Return the label of the field that contains the byte at `offset`.

    Examples: "JSON", "tensor 1 OUT0 INT32 element 2", "tensor 2 OUT1 BYTES element 0 length prefix", "after the last
    tensor".
    """
    layout = Layout.from_answer(where) if isinstance(where, Answer) else where
    if offset < layout.json_end:
        return "JSON"
    for position, (name, datatype, start, end) in enumerate(layout.spans):
        if start <= offset < end:
            index = layout.indices[position] if layout.indices else position
            part = _find_element_label(datatype, layout.body[start:end], offset - start)
            return f"tensor {index} {format_name(name)} {format_name(datatype)} {part}"
    return "after the last tensor"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a body: the JSON, a tensor, an element of a BYTES tensor, or bytes that belong to no tensor.

    Attributes:
        start: the offset of the first byte.
        end: the offset after the last byte.
        size: the bytes of an element, if the field is a tensor whose elements have the same size; else 0.
    """

    start: int
    end: int
    label: str
    size: int = 0


def list_fields(layout: Layout, length: int) -> Iterator[Field]:
    """Yield the fields of a body of `length` bytes, without gaps."""
    at = min(layout.json_end, length)
    if at:
        yield Field(0, at, "JSON")
    for position, (name, datatype, start, end) in enumerate(layout.spans):
        first, last = max(start, at), min(end, length)
        if first > at:
            yield Field(at, first, "no tensor")
        if last > first:
            index = layout.indices[position] if layout.indices else position
            title = f"tensor {index} {format_name(name)} {format_name(datatype)}"
            yield from _list_element_fields(datatype, layout.body, first, last, title)
            at = last
    if at < length:
        yield Field(at, length, "after the last tensor" if at else "no tensor")


def _list_element_fields(datatype: str, body: bytes, start: int, end: int, title: str) -> Iterator[Field]:
    """Yield a tensor as one field, or for BYTES a field for each element."""
    known = DATATYPES.get(datatype)
    if known is not None and known.size is not None:
        yield Field(start, end, title, known.size)
        return
    places = strings.find_offsets(body[start:end]) if known is not None else []
    ends = [*(start + place for place in places[1:MAX_ELEMENTS]), end]
    for element, last in enumerate(ends if places else []):
        follows = " and what follows" if element + 1 == MAX_ELEMENTS < len(places) else ""
        yield Field(start, last, f"{title} element {element}{follows}")
        start = last
    if not places:
        yield Field(start, end, title)


def _find_element_label(datatype: str, data: bytes, offset: int) -> str:
    """Return the label of the element that contains the byte at `offset` in `data`, the bytes of a tensor."""
    known = DATATYPES.get(datatype)
    if known is not None and known.size is not None:
        return f"element {offset // known.size}"
    starts = strings.find_offsets(data) if known is not None else []
    if not starts:
        return f"byte {offset}"
    element = bisect_right(starts, offset) - 1
    content = starts[element] + strings.PREFIX.size
    length = int(strings.PREFIX.unpack_from(data, starts[element])[0])
    if offset < content:
        return f"element {element} length prefix"
    return f"element {element}" if offset < content + length else f"element {element + 1} length prefix"


def format_hex_window(body: bytes, offset: int, width: int = 8, rows: int = 3) -> str:
    r"""Return `rows` lines of a hex dump around `offset`; the byte at `offset` begins the middle line if possible.

    Lines look like `00d2  03 00 00 00 61 62 63 01  ....abc.`; a byte that is not printable ASCII becomes a dot. For an
    offset at or after the end of the body, the dump shows the last bytes. For an empty body, the dump is empty.
    """
    if not body:
        return ""
    at = max(0, min(offset, len(body) - 1))
    first = at - width * min(rows // 2, at // width)
    return "\n".join(
        _format_dump_line(body, start, width) for start in range(first, min(len(body), first + rows * width), width)
    )


def _format_dump_line(body: bytes, start: int, width: int) -> str:
    piece = body[start : start + width]
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
    return f"{start:04x}  {piece.hex(' '):<{3 * width - 1}}  {text}"
