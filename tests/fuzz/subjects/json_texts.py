"""JSON texts: the reader against that of Python, and the structure that numpy sees against both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from conformance.wire import json_text
from conformance.wire.json_text import MAX_DEPTH, ParsedJson
from tests.fuzz.http_input import HttpInput, golden_requests

SMALL_BLOCK = 31  # so that a small input has many blocks


def reader(data: bytes) -> None:
    """A text is JSON to the judge if it is to Python, with the same value; beyond the judge's limits it is none."""
    parsed = json_text.parse_json(data)
    text = data.decode("utf-8", "surrogateescape")
    try:
        value = json.loads(text, parse_int=read_integer)
    except (ValueError, RecursionError):
        assert not parsed.is_json
        return
    is_too_deep = find_kinds(parsed) == {"json-too-deep"}
    if is_with_repeated_members(text):
        assert is_too_deep or "json-duplicate-member" in find_kinds(parsed)
    else:
        assert is_too_deep == (measure_depth(value) > MAX_DEPTH)
    assert is_too_deep or (parsed.is_json and is_same(parsed.value, value))


def read_integer(spelling: str) -> int | float:
    """Return an integer; `-0` keeps its sign, as in the reader, and so is a double."""
    return -0.0 if spelling == "-0" else int(spelling)


def find_kinds(parsed: ParsedJson) -> set[str]:
    """Return the kinds of the findings of a text."""
    return {finding.kind for finding in parsed.findings}


def structure(data: bytes) -> None:
    """The structure seen by numpy is that of the parser, whatever the size of its blocks."""
    ends = json_text.find_value_end(data)
    limit = data[0] % 8 + 1 if data else 1
    deeper = json_text.find_too_deep(data, limit)
    with patch.object(json_text, "_BLOCK", SMALL_BLOCK):
        assert json_text.find_value_end(data) == ends
        assert json_text.find_too_deep(data, limit) == deeper
    text = data.decode("utf-8", "surrogateescape")
    blanks = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = json.JSONDecoder().raw_decode(text, blanks)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict | list):
        return
    octets = text[:end].encode("utf-8", "surrogateescape")
    assert ends == len(octets)
    alone = json_text.find_too_deep(octets, limit)
    if "{" not in text[:end] or not is_with_repeated_members(text[:end]):
        assert (alone is None) == (measure_depth(value) <= limit)


def is_with_repeated_members(text: str) -> bool:
    """Say whether an object of a text has two members of one name: the value then lacks what is in the first."""
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated = repeated or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=members)
    return repeated


def measure_depth(value: Any) -> int:
    """Return how many arrays and objects stand inside each other."""
    level, found = [value], 0
    while inner := [one for one in level if isinstance(one, dict | list)]:
        level = [child for one in inner for child in (one.values() if isinstance(one, dict) else one)]
        found += 1
    return found


def is_same(ours: Any, theirs: Any) -> bool:
    """Say whether two values are one, but for numbers beyond doubles: what those become is the reader's own."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(value, theirs[name]) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(theirs, float):
        return is_same_number(ours, theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def is_same_number(ours: Any, theirs: float) -> bool:
    """Say whether a number is the double that Python makes of it, or exactly what that stands near."""
    if type(ours) is int:
        try:
            return float(ours) == theirs
        except OverflowError:
            return theirs in (float("inf"), -float("inf"))
    return type(ours) is float and (ours == theirs or (ours != ours and theirs != theirs))


def texts() -> Iterator[bytes]:
    """Yield the JSON of the golden requests, and odd texts."""
    for data in golden_requests():
        body = HttpInput.from_bytes(data).body
        yield body[: json_text.find_value_end(body)]
    yield from (
        b'{"a":[1,1.0,-0.0,9007199254740993.0,1e400,-1e400,1e5,12345678901234567890]}',
        b"[[[[[[[[[1]]]]]]]]]",
        b'{"a":"\\u0000\\ud800\\"[{","b":[NaN,Infinity,-Infinity,null,true]}',
        b'{"a":{"b":[1]},"a":1}',
        b'"\xff\xfe"',
        b" [1] trailing",
    )
