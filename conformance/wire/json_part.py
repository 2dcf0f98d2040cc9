"""Finds where the JSON of a body ends, by the inference header or by parsing, and the tensor objects in the JSON.

Responses and requests share these functions; `member` selects `outputs` or `inputs`. Never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from conformance.wire import json_text
from conformance.wire.finding import Finding, format_value
from conformance.wire.json_text import ParsedJson, parse_json
from conformance.wire.outputs import Member, format_member, parse_output
from conformance.wire.request import INFERENCE_HEADER

BLANKS: Final = b" \t\r\n"
MAX_TENSORS: Final = 1000
Reader = Callable[[int], ParsedJson]  # parses the body up to an offset


def find_tensor_objects(
    parsed: ParsedJson, member: Member = "outputs"
) -> tuple[dict[str, Any] | None, dict[int, dict[str, Any]], list[Finding]]:
    """Return the document, its tensor objects by index, and the findings about the document and `member`.

    The document is None if the text is not a JSON object.
    """
    document = parsed.value
    if not parsed.is_json:
        return None, {}, []
    if not isinstance(document, dict):
        return None, {}, [Finding("json-not-object", "json", 0, "an object", format_value(document))]
    items = document.get(member)
    if not isinstance(items, list):
        kind = f"{member}-missing" if items is None else f"{member}-invalid"
        return document, {}, [Finding(kind, member, None, "an array", format_member(items))]
    wrong = []
    if len(items) > MAX_TENSORS:
        wrong.append(Finding(f"{member}-too-many", member, None, f"at most {MAX_TENSORS}", str(len(items))))
    read = list(enumerate(items[:MAX_TENSORS]))
    wrong += [
        Finding(f"{member[:-1]}-invalid", f"{member}[{index}]", None, "an object", format_value(item))
        for index, item in read
        if not isinstance(item, dict)
    ]
    return document, {index: item for index, item in read if isinstance(item, dict)}, wrong


def locate_json(body: bytes, header: str | None, member: Member = "outputs") -> tuple[int, ParsedJson, list[Finding]]:
    """Return the offset at which the JSON ends, the parsed JSON, and the findings about the inference header.

    `header` is the value of the inference header, None if absent.
    """
    read = cache(lambda end: parse_json(body[:end]))  # each prefix is parsed once
    own_end = _find_obvious_end(body, header, read) or json_text.find_value_end(body)
    if own_end is not None and not read(own_end).is_json:
        own_end = None
    if header is None:
        return (*_find_end_by_parsing(body, own_end, member, read), [])
    fault = _find_header_fault(header, len(body))
    if fault is not None:
        return (*_find_end_by_parsing(body, own_end, member, read), [fault])
    length = parse_number(header)
    if own_end is None or _is_header_plausible(body, length, own_end, member, read):
        return length, read(length), []
    kind = "inference-header-cuts-json" if length < own_end else "inference-header-covers-binary"
    expected = f"{own_end}, where the JSON ends"
    return own_end, read(own_end), [Finding(kind, INFERENCE_HEADER, length, expected, str(length))]


def _find_obvious_end(body: bytes, header: str | None, read: Reader) -> int | None:
    """Return the end of the JSON if it can be found without a search: one JSON object ends where it should.

    It should end at the offset in the inference header, or without a header at the end of the body. Return None if no
    JSON object ends there.
    """
    end = len(body)
    if header is not None:
        end = min(end, int(header)) if re.fullmatch("[0-9]{1,18}", header) else 0
    return end if body[end - 1 : end] == b"}" and isinstance(read(end).value, dict) else None


def _is_header_plausible(body: bytes, length: int, own_end: int, member: Member, read: Reader) -> bool:
    """Return whether the inference header can be right although the first JSON value ends earlier, at `own_end`.

    The header is plausible if it covers valid JSON, and the sizes that the first value declares do not fill the rest of
    the body.
    """
    if not read(length).is_json:
        return False
    return length == own_end or not _do_sizes_sum_to(read(own_end), len(body) - own_end, member)


def parse_number(digits: str) -> int:
    """Parse decimal digits with any number of leading zeros; `int` limits the number of digits."""
    return int(digits.lstrip("0") or "0")


def _find_header_fault(header: str, size: int) -> Finding | None:
    """Return a finding if the inference header is not a number from 1 to `size`, the length of the body."""
    expected = f"a number from 1 to {size}"
    if re.fullmatch("-[0-9]+", header):
        return Finding("inference-header-negative", INFERENCE_HEADER, None, expected, format_value(header))
    if not re.fullmatch("[0-9]+", header):
        return Finding("inference-header-text", INFERENCE_HEADER, None, "decimal digits", format_value(header))
    digits = header.lstrip("0")
    if not digits:
        return Finding("inference-header-zero", INFERENCE_HEADER, None, expected, format_value(header))
    if len(digits) > 18 or int(digits) > size:
        return Finding("inference-header-beyond-body", INFERENCE_HEADER, size, expected, format_value(header))
    return None


def _find_end_by_parsing(body: bytes, own_end: int | None, member: Member, read: Reader) -> tuple[int, ParsedJson]:
    """Return the end of the JSON without regard to the inference header, and the parsed JSON.

    White space after the JSON value belongs to the JSON, unless the declared sizes say that it is binary data.
    """
    end = own_end
    if end is None or (not body[end:].strip(BLANKS) and not _do_sizes_sum_to(read(end), len(body) - end, member)):
        end = len(body)
    return end, read(end)


def do_sizes_fill_body(body: bytes, end: int, start: int, member: Member) -> bool:
    """Return whether the sizes declared in the JSON, which ends at `end`, sum to the bytes of the body from `start`."""
    return _do_sizes_sum_to(parse_json(body[:end]), len(body) - start, member)


def _do_sizes_sum_to(parsed: ParsedJson, size: int, member: Member) -> bool:
    """Return whether the sum of the sizes declared in the JSON is `size`; False if `size` is 0."""
    if size == 0:
        return False
    _, items, _ = find_tensor_objects(parsed, member)
    sizes = [parse_output(index, item, {}).declared_size or 0 for index, item in items.items()]
    return 0 < sum(sizes) == size
