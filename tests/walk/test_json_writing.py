"""Spellings of JSON: other bytes, and the same document to a reader that is not ours."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from conformance.checks.walk.axes import NEUTRAL, NUMBERS, WRITING
from conformance.checks.walk.json_writing import UNKNOWN, write_json
from tests.support.tables import on_each

DOCUMENT: dict[str, Any] = {
    "id": 'q"\\/😀é\t',
    "inputs": [
        {"name": "IN", "shape": [2, 2], "datatype": "FP64", "data": [1e-20, -0.0, 0.1, 123456.75]},
        {"name": "T", "shape": [2], "datatype": "BYTES", "data": ["", "\u0000猫"], "parameters": {"a": True}},
    ],
    "outputs": [{"name": "OUT", "parameters": {"binary_data": False}}],
}
STYLES = [
    dict(zip(("members", "escapes", "spaces", "numbers"), values, strict=True))
    for values in product(WRITING["members"], WRITING["escapes"], WRITING["spaces"], NUMBERS["numbers"])
]


@on_each(STYLES)
def test_a_reader_finds_the_same_document(style: dict[str, str]) -> None:
    assert json.loads(write_json(DOCUMENT, {**NEUTRAL, **style})) == DOCUMENT


def text(**style: str) -> str:
    return write_json(DOCUMENT, {**NEUTRAL, **style}).decode()


@pytest.mark.parametrize(
    ("style", "piece"),
    [
        ({}, '{"id":"q\\"\\\\/😀é\\t","inputs":[{"name":"IN","shape":[2,2],"datatype":"FP64","data":[1e-20,-0.0,'),
        ({"members": "reversed"}, '"data":[1e-20,-0.0,0.1,123456.75],"datatype":"FP64","shape":[2,2],"name":"IN"}'),
        ({"members": "sorted"}, '{"data":[1e-20'),
        ({"escapes": "ascii"}, "\\ud83d\\ude00\\u00e9"),
        ({"escapes": "names"}, '"\\u0069nputs":[{"\\u006eame":"\\u0049N"'),
        ({"escapes": "every"}, '"\\u004f\\u0055\\u0054"'),
        ({"spaces": "blanks"}, '"shape" : [2 , 2] , '),
        ({"spaces": "lines"}, ',\r\n\t"datatype":\n '),
        ({"numbers": "exponents"}, "[9.9999999999999995e-21,-0.0000000000000000e0,1.0000000000000001e-1,"),
        ({"numbers": "capitals"}, "9.9999999999999995E-21"),
        ({"numbers": "long"}, "0.10000000000000001,123456.75"),
    ],
)
def test_spellings(style: dict[str, str], piece: str) -> None:
    assert piece in text(**style)


@pytest.mark.parametrize("where", [value for value in WRITING["unknown"] if value != "none"])
def test_an_unknown_member_stands_where_it_is_said_and_nowhere_else(where: str) -> None:
    found = json.loads(write_json(DOCUMENT, {**NEUTRAL, "unknown": where}))
    owner = {"top": found, "input": found["inputs"][0], "output": found["outputs"][0]}.get(where) or found["parameters"]
    del owner[UNKNOWN]
    if where == "parameters":
        assert found.pop("parameters") == {}
    assert found == DOCUMENT
