"""Strict JSON according to RFC 8259: extensions that Python's decoder accepts are refused.

This module refuses repeated members (it is ambiguous which value counts), NaN and Infinity, and signs of an attack:
deep nesting, and more text, values, arrays or objects than the limits allow. A short text is parsed at once, a long
text in slices, so that it does not block other requests.
"""

from __future__ import annotations

import json
from typing import Any

from reference_server.errors import InferenceError, format_value
from reference_server.limits import get_limits
from reference_server.sliced_json import Reader

MAX_DEPTH = 32
CONTAINERS = (dict, list)
MAX_ONE_PASS_CHARS = 64 * 1024  # characters; a text up to this length is parsed at once
TOO_LARGE = 413


def parse_object(data: bytes | memoryview) -> dict[str, Any]:
    """Parse `data` as one JSON object; whitespace around it is allowed."""
    if len(data) > get_limits().json:
        raise InferenceError(f"the JSON is over the limit of {get_limits().json} bytes", TOO_LARGE)
    try:
        value = read(str(data, "utf-8"))
    except UnicodeDecodeError as error:
        raise InferenceError(f"the JSON is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise make_depth_refusal() from None
    except json.JSONDecodeError as error:
        raise InferenceError(f"not JSON: {error.msg} at character {error.pos}") from None
    except ValueError:  # Python's limit on the digits of an integer
        raise InferenceError("the JSON has an integer with too many digits") from None
    if not isinstance(value, dict):
        raise InferenceError(f"the JSON must be an object, not {format_value(value)}")
    check_depth(value)
    return value


def read(text: str) -> Any:
    """Parse a text; raises the errors of `Reader.read`, and RecursionError for a short but deeply nested text."""
    if text.startswith("\ufeff"):  # like `json.loads`
        raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
    if len(text) <= MAX_ONE_PASS_CHARS:
        return ONE_PASS_DECODER.decode(text)
    count = SizeCounter()
    return Reader(text, build_object, refuse_constant, count.count_values, count.count_container).read()


class SizeCounter:
    """Counts the values and containers of a long text."""

    def __init__(self) -> None:
        self.limits = get_limits()
        self.elements = self.containers = 0

    def count_values(self, more: int) -> None:
        """Count values; refuse too many."""
        self.elements += more
        if self.elements > self.limits.elements:
            raise InferenceError(f"the JSON has more than {self.limits.elements} values", TOO_LARGE)

    def count_container(self, depth: int) -> None:
        """Count an array, an object or a member of one; refuse too many, and too deep nesting."""
        if depth > MAX_DEPTH:
            raise make_depth_refusal()
        self.containers += 1
        if self.containers > self.limits.containers:
            raise InferenceError(
                f"the JSON has more than {self.limits.containers} arrays, objects and members", TOO_LARGE
            )


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a parsed object; refuse a repeated member."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise InferenceError(f"the JSON has the member {format_value(name)} twice in one object")
        members[name] = value
    return members


def refuse_constant(name: str) -> None:
    """Refuse NaN, Infinity or -Infinity, which Python accepts and JSON does not have."""
    raise InferenceError(f"not JSON: {name} is not a JSON number")


# Created once, since creating one costs as much as parsing a typical request.
ONE_PASS_DECODER = json.JSONDecoder(object_pairs_hook=build_object, parse_constant=refuse_constant)


def check_depth(value: dict[str, Any]) -> None:
    """Refuse nesting beyond MAX_DEPTH; works level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, CONTAINERS)
        ]
        if not level:
            return
    raise make_depth_refusal()


def make_depth_refusal() -> InferenceError:
    """Return the refusal of deep nesting."""
    return InferenceError(f"the JSON is nested more than {MAX_DEPTH} levels deep")
