"""JSON as others write it: values exact, liberties reported, and nothing raised for any text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.wire.json_text import parse_json, parse_json_prefix

VALUES = [
    (b"9007199254740993", 2**53 + 1),
    (b"9007199254740993.0", 2**53 + 1),
    (b"1.8446744073709551615e19", 2**64 - 1),
    (b"-18446744073709551616.0", -(2**64)),
    (b"1e999999999", 10**400),
    (b"-1e99999999999999999999999", -(10**400)),
    (b"0.1", 0.1),
    (b"1e-99999999999999999999999", 0.0),
    (b"12345678901234567890.5", 12345678901234567890.5),
    (b"-Infinity", -math.inf),
    (b' {"a":[null,true]}\r\n', {"a": [None, True]}),
    ('"ü"'.encode(), "ü"),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: bytes, value: Any) -> None:
    parsed = parse_json(text)
    assert parsed.value == value
    assert type(parsed.value) is type(value)
    assert parsed.is_json


def test_null_is_json() -> None:
    assert parse_json(b"null") == (None, ())
    assert parse_json(b"null").is_json
    assert not parse_json(b"nul").is_json


# text, the findings' kinds and offsets in their order
FINDINGS = [
    (b'{"a":1,"b":{"a":2}}', []),
    (b'{"a":1,"b":2,"a":3}', [("json-duplicate-member", None)]),
    (b'["NaN",NaN]', [("json-non-finite", 7)]),
    (b'["\\"NaN",-Infinity]', [("json-non-finite", 9)]),
    (b'["\xff"]', [("json-not-utf8", 2)]),
    (b'["\xff" 1]', [("json-not-utf8", 2), ("json-invalid", 5)]),
    (b'["\xc3\xbc" 1]', [("json-invalid", 6)]),
    (b'\xef\xbb\xbf{"a":1}', [("json-invalid", 0)]),
    (b'{"a":1}x', [("json-invalid", 7)]),
    (b'"\x01"', [("json-invalid", 1)]),
    (b"[01]", [("json-invalid", 2)]),
    (b"[" * 64 + b"]" * 64, []),
    (b"[" * 65 + b"]" * 65, [("json-too-deep", 64)]),
    (b'"' + b"[" * 65 + b'"', []),
    (b'["' + b'\\"' * 50_000, [("json-invalid", 1)]),
]


@pytest.mark.parametrize(("text", "findings"), FINDINGS)
def test_findings(text: bytes, findings: list[tuple[str, int | None]]) -> None:
    assert [(finding.kind, finding.offset) for finding in parse_json(text).findings] == findings


PREFIXES = [
    (b'{"a":1}', 7),
    (b'{"a":1}{"b":2}', 7),
    (b' \n{"a":"}"}\xff\x00', 11),
    (b'{"a":"\\"}"}}}', 11),
    (b'{"a":["\xff"]}"', 11),
    (b"[1]]", 3),
    (b"{}", 2),
    (b"", None),
    (b"12 {}", None),
    (b"{a}", None),
    (b'{"a":1', None),
    (b'{"a":"', None),
    (b"}{", None),
    (b"[}", None),
    (b"[" * 65 + b"]" * 65, None),
]


@pytest.mark.parametrize(("body", "end"), PREFIXES)
def test_prefix(body: bytes, end: int | None) -> None:
    assert parse_json_prefix(body) == end


@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:0123456789.eE+-\\untrfalsNI ', max_size=40).map(str.encode))
def test_any_text_is_read_without_raising(text: bytes) -> None:
    parsed = parse_json(text)
    assert parsed.is_json or parsed.value is None
    end = parse_json_prefix(text)
    assert end is None or parse_json(text[:end]).is_json


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False) | st.text()), st.binary())
def test_a_prefix_ends_where_the_json_does(value: dict[str, Any], tail: bytes) -> None:
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert parse_json_prefix(text + tail) == len(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("[-0]", "[-0.0]"), ("[-0.0]", "[-0.0]"), ("[-01]", "None"), ("[-10, 0]", "[-10, 0]")]
)
def test_minus_zero_keeps_its_sign(text: str, expected: str) -> None:
    assert str(parse_json(text.encode()).value) == expected
