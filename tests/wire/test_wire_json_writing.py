"""Spellings of JSON: the bytes of each, which a reader that is not ours finds to be the same document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.wire.json_writing import (
    COMPACT,
    JsonStyle,
    write_ascii,
    write_escaped,
    write_exponent,
    write_first_escaped,
    write_short_escapes,
)
from conformance.wire.request import INFERENCE_HEADER, frame
from conformance.wire.tensor import Tensor


@pytest.mark.parametrize(
    ("style", "value", "expected"),
    [
        (COMPACT, {"a": [1, "é"]}, '{"a":[1,"é"]}'),
        (JsonStyle(text=write_ascii), ["é😀"], r'["\u00e9\ud83d\ude00"]'),
        (JsonStyle(text=write_escaped), ["A😀", 1], r'["\u0041\ud83d\ude00",1]'),
        (JsonStyle(text=write_first_escaped), ["", "Aé", "😀"], r'["","\u0041é","\ud83d\ude00"]'),
        (JsonStyle(name=write_escaped), {"A": True}, r'{"\u0041":true}'),
        (JsonStyle("\t,\t", "\t:\t", "\t"), {"a": [1, None]}, '{\t"a"\t:\t[\t1\t,\tnull\t]\t}'),
        (JsonStyle(" , ", " : "), {"a": [1, 2], "b": [0.5]}, '{"a" : [1 , 2] , "b" : [0.5]}'),
        (JsonStyle(number=write_exponent), [0.25, 7], "[2.50000000000000000E-01,7]"),
        (JsonStyle(number=write_exponent, max_elements=1), [[0.5, 2.0]], "[[0.5,2.0]]"),
        (
            JsonStyle(text=write_escaped, plain_members=frozenset({"id"})),
            {"id": "a", "b": "a"},
            r'{"id":"a","b":"\u0061"}',
        ),
        (JsonStyle(sort=reversed), {"a": {"c": 1, "d": 2}, "b": {}}, '{"b":{},"a":{"d":2,"c":1}}'),
        (JsonStyle(around="\n"), {}, "\n{}\n"),
    ],
)
def test_json_is_written_in_a_style(style: JsonStyle, value: Any, expected: str) -> None:
    assert style.write(value) == expected.encode()
    assert json.loads(expected) == value


def test_rewritten_json_shifts_binary_data() -> None:
    message = frame("/m", {"a": 1}, [Tensor.from_values("T", "UINT8", [7])])
    changed = message.with_json(b'{"a" : 1}')
    assert changed.body == b'{"a" : 1}\7'
    assert changed.header(INFERENCE_HEADER) == "9"
    assert changed.spans == (("T", "UINT8", 9, 10),)


def test_rewritten_json_keeps_the_spelling_of_the_header() -> None:
    message = frame("/m", {"a": 1}, [Tensor.from_values("T", "UINT8", [7])])
    respelled = message.with_header(INFERENCE_HEADER, None).with_header(INFERENCE_HEADER.lower(), "7")
    assert respelled.with_json(b'{"a" : 1}').headers[-1] == (INFERENCE_HEADER.lower(), "9")


def test_short_escapes_escape_the_slash() -> None:
    assert write_short_escapes('a/b\\"\n\x01') == '"a\\/b\\\\\\"\\n\\u0001"'
