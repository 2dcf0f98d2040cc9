"""Where the JSON of a body ends, by the inference header or by its own account, and which tensors it describes.

What a response and a request have in common: `member` says which of the two it is. Never raises.
"""

from __future__ import annotations

import re
from typing import Any, Final

from conformance.wire.finding import Finding, shown
from conformance.wire.json_text import Parsed, parse, parse_prefix
from conformance.wire.outputs import Member, described, shown_member
from conformance.wire.request import INFERENCE_HEADER

BLANKS: Final = b" \t\r\n"


def find_items(
    parsed: Parsed, member: Member = "outputs"
) -> tuple[dict[str, Any] | None, dict[int, dict[str, Any]], list[Finding]]:
    """Return the document, the objects that describe tensors by their places, and what is wrong on the way to them."""
    document = parsed.value
    if not parsed.is_json:
        return None, {}, []
    if not isinstance(document, dict):
        return None, {}, [Finding("json-not-object", "json", 0, "an object", shown(document))]
    items = document.get(member)
    if not isinstance(items, list):
        kind = f"{member}-missing" if items is None else f"{member}-invalid"
        return document, {}, [Finding(kind, member, None, "an array", shown_member(items))]
    wrong = [
        Finding(f"{member[:-1]}-invalid", f"{member}[{index}]", None, "an object", shown(item))
        for index, item in enumerate(items)
        if not isinstance(item, dict)
    ]
    return document, {index: item for index, item in enumerate(items) if isinstance(item, dict)}, wrong


def find_json(body: bytes, header: str | None, member: Member = "outputs") -> tuple[int, Parsed, list[Finding]]:
    """Return where the JSON ends, the JSON, and what is wrong with the header that there is."""
    if header is None:
        return (*_by_itself(body, member), [])
    fault = _header_fault(header, len(body))
    if fault is not None:
        return (*_by_itself(body, member), [fault])
    length = int(header)
    covered = parse(body[:length])
    end = parse_prefix(body)
    if end is None or (covered.is_json and (length == end or not states_sizes_from(body, end, end, member))):
        return length, covered, []
    kind = "inference-header-cuts-json" if length < end else "inference-header-covers-binary"
    return end, parse(body[:end]), [Finding(kind, INFERENCE_HEADER, length, f"{end}, where the JSON ends", str(length))]


def _header_fault(header: str, size: int) -> Finding | None:
    """Return what keeps the header from being a place in the body."""
    expected = f"a number from 1 to {size}"
    if re.fullmatch("-[0-9]+", header):
        return Finding("inference-header-negative", INFERENCE_HEADER, None, expected, shown(header))
    if not re.fullmatch("[0-9]+", header):
        return Finding("inference-header-text", INFERENCE_HEADER, None, "decimal digits", shown(header))
    digits = header.lstrip("0")
    if not digits:
        return Finding("inference-header-zero", INFERENCE_HEADER, None, expected, shown(header))
    if len(digits) > 18 or int(digits) > size:
        return Finding("inference-header-beyond-body", INFERENCE_HEADER, size, expected, shown(header))
    return None


def _by_itself(body: bytes, member: Member) -> tuple[int, Parsed]:
    """Return where the JSON ends by its own account, and the JSON.

    Blanks up to the body's end are part of it, unless its sizes say that they are binary data.
    """
    end = parse_prefix(body)
    if end is None or (not body[end:].strip(BLANKS) and not states_sizes_from(body, end, end, member)):
        end = len(body)
    return end, parse(body[:end])


def states_sizes_from(body: bytes, end: int, start: int, member: Member) -> bool:
    """Whether the JSON that ends at `end` states sizes, and these fill the body from `start` on."""
    if start == len(body):
        return False
    _, items, _ = find_items(parse(body[:end]), member)
    sizes = [described(index, item, {}).declared_size or 0 for index, item in items.items()]
    return 0 < sum(sizes) == len(body) - start
