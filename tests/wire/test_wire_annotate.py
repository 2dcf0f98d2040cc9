"""Places in words, and hex windows that a terminal can bear."""

from __future__ import annotations

import pytest

from conformance.wire import body_layout
from conformance.wire.body_layout import Field, Layout, find_field_label, format_hex_window
from conformance.wire.finding import KINDS, Finding, format_name, format_value
from conformance.wire.response import parse

HEAD = (
    b'{"outputs":[{"name":"J","datatype":"INT8","shape":[1],"data":[1]},'
    b'{"name":"OUT0","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}},'
    b'{"name":"a b","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":11}}]}'
)
TAIL = bytes.fromhex("01000000 02000000 03000000 616263 00000000 ee")

# offset from the JSON's end, words
PLACES = [
    (-1, "JSON"),
    (0, "tensor 1 OUT0 INT32 element 0"),
    (7, "tensor 1 OUT0 INT32 element 1"),
    (8, 'tensor 2 "a b" BYTES element 0 length prefix'),
    (12, 'tensor 2 "a b" BYTES element 0'),
    (15, 'tensor 2 "a b" BYTES element 1 length prefix'),
    (18, 'tensor 2 "a b" BYTES element 1 length prefix'),
    (19, "after the last tensor"),
    (999, "after the last tensor"),
]


@pytest.mark.parametrize(("offset", "words"), PLACES)
def test_places_in_an_answer(offset: int, words: str) -> None:
    answer = parse(HEAD + TAIL, str(len(HEAD)))
    assert find_field_label(answer, len(HEAD) + offset) == words


# datatype, bytes, offset in them, words
PARTS = [
    ("FP64", "", 9, "element 1"),
    ("STRING", "00", 0, "byte 0"),
    ("BYTES", "0000", 1, "byte 1"),
    ("BYTES", "00000000 0000", 5, "element 1 length prefix"),
    ("BYTES", "ff000000 6162", 5, "element 0"),
]


@pytest.mark.parametrize(("datatype", "text", "offset", "words"), PARTS)
def test_places_in_a_request(datatype: str, text: str, offset: int, words: str) -> None:
    body = b"{}" + bytes.fromhex(text)
    layout = Layout(2, [("IN", datatype, 2, 2 + max(len(body) - 2, 16))], body)
    assert find_field_label(layout, 2 + offset) == f"tensor 0 IN {datatype} {words}"


def test_without_a_body_bytes_elements_are_not_told_apart() -> None:
    assert find_field_label(Layout(2, [("IN", "BYTES", 2, 9)]), 5) == "tensor 0 IN BYTES byte 3"


BODY = bytes(range(0x1C, 0x30)) + b"abc\x7f\xff"

WINDOWS = [
    (8, 3, ["0000  1c 1d 1e 1f 20 21 22 23  .... !\"#", "0008  24 25 26 27 28 29 2a 2b  $%&'()*+",
            "0010  2c 2d 2e 2f 61 62 63 7f  ,-./abc."]),
    (3, 1, ["0003  1f 20 21 22 23 24 25 26  . !\"#$%&"]),
    (3, 3, ["0003  1f 20 21 22 23 24 25 26  . !\"#$%&", "000b  27 28 29 2a 2b 2c 2d 2e  '()*+,-.",
            "0013  2f 61 62 63 7f ff        /abc.."]),
    (24, 3, ["0010  2c 2d 2e 2f 61 62 63 7f  ,-./abc.", "0018  ff                       ."]),
    (99, 1, ["0018  ff                       ."]),
]  # fmt: skip


@pytest.mark.parametrize(("offset", "rows", "lines"), WINDOWS)
def test_hex_window(offset: int, rows: int, lines: list[str]) -> None:
    assert format_hex_window(BODY, offset, rows=rows).split("\n") == lines


def test_hex_window_of_nothing_and_beyond_64_kib() -> None:
    assert format_hex_window(b"", 0) == ""
    assert format_hex_window(bytes(0x10002), 0x10000, rows=1) == "10000  00 00                    .."


def test_a_finding_is_one_line() -> None:
    finding = Finding("size-mismatch", "outputs[0]", 7, "4", "8")
    assert str(finding) == "size-mismatch: outputs[0] at byte 7: expected 4, got 8"
    assert str(Finding("outputs-missing", "outputs", None, "an array", "nothing")) == (
        "outputs-missing: outputs: expected an array, got nothing"
    )


def test_kinds_are_a_closed_table_of_sentences() -> None:
    with pytest.raises(ValueError, match="unknown kind of finding: 'size'"):
        Finding("size", "outputs[0]", None, "", "")
    assert all(meaning.endswith(".") and "\n" not in meaning for meaning in KINDS.values())


SHOWN = [
    (True, "true"),
    (None, "null"),
    (4.0, "4.0"),
    ("\x1b[31m\n", '"\\u001b[31m\\n"'),
    ("x" * 61, '"' + "x" * 60 + '"... (61 characters)'),
    (2**128, "an integer of 129 bits"),
    ([1, "a"], '[1, "a"]'),
    ([[1]], "an array of length 1"),
    (list(range(9)), "an array of length 9"),
    ({"a": 1}, "an object"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN)
def test_format_value(value: object, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("name", "text"), [("OUT0", "OUT0"), ("a/b.c-d", "a/b.c-d"), ("", '""'), ("a\nb", '"a\\nb"'), ("ü", '"\\u00fc"')]
)
def test_format_name(name: str, text: str) -> None:
    assert format_name(name) == text


# --- the parts of a body ---------------------------------------------------------------------------------------------


def parts(layout: Layout, length: int) -> list[Field]:
    found = list(body_layout.list_fields(layout, length))
    assert [field.start for field in found] == [0, *(field.end for field in found[:-1])] or not found
    assert not found or found[-1].end == length
    return found


def test_the_parts_of_an_answer() -> None:
    answer = parse(HEAD + TAIL, str(len(HEAD)))
    end = len(HEAD)
    assert parts(Layout.from_answer(answer), end + len(TAIL)) == [
        Field(0, end, "JSON"),
        Field(end, end + 8, "tensor 1 OUT0 INT32", 4),
        Field(end + 8, end + 15, 'tensor 2 "a b" BYTES element 0'),
        Field(end + 15, end + 19, 'tensor 2 "a b" BYTES element 1'),
        Field(end + 19, end + 20, "after the last tensor"),
    ]


def test_bytes_outside_tensors_are_labelled() -> None:
    assert parts(Layout(0, [("R", "UINT8", 3, 5)]), 6) == [
        Field(0, 3, "no tensor"),
        Field(3, 5, "tensor 0 R UINT8", 1),
        Field(5, 6, "after the last tensor"),
    ]
    assert parts(Layout(0), 4) == [Field(0, 4, "no tensor")]
    assert parts(Layout(0), 0) == []


def test_tensors_that_overlap_or_go_on_behind_the_body_are_cut() -> None:
    assert parts(Layout(2, [("A", "INT8", 2, 4), ("B", "INT8", 3, 99)]), 6) == [
        Field(0, 2, "JSON"),
        Field(2, 4, "tensor 0 A INT8", 1),
        Field(4, 6, "tensor 1 B INT8", 1),
    ]


def test_elements_beyond_limit_are_one_field() -> None:
    body = bytes(4) * (body_layout.MAX_ELEMENTS + 5)
    found = parts(Layout(0, [("A", "BYTES", 0, len(body))], body), len(body))
    assert len(found) == body_layout.MAX_ELEMENTS
    assert found[-1].label == f"tensor 0 A BYTES element {body_layout.MAX_ELEMENTS - 1} and what follows"
    assert found[-1].end - found[-1].start == 4 * 6


@pytest.mark.parametrize("datatype", ["BYTES", "ODD"])
def test_undecodable_bytes_are_one_field(datatype: str) -> None:
    assert parts(Layout(0, [("A", datatype, 0, 3)], b"\xff\xff\xff"), 3) == [Field(0, 3, f"tensor 0 A {datatype}")]
