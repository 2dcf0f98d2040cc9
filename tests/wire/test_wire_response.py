"""Responses taken apart: good ones into their tensors, each broken one into one finding, and never an exception.

Heads are written by hand; offsets in the rows count from the end of the JSON.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.wire.finding import KINDS, REQUEST_KINDS, Finding
from conformance.wire.response import parse

A = '{"name":"A","datatype":"INT16","shape":[2],"parameters":{"binary_data_size":4}}'
B = '{"name":"B","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":11}}'
C = '{"name":"C","datatype":"FP32","shape":[1,2],"data":[[1,2.5]]}'
A_BYTES = bytes.fromhex("0102 feff")
B_BYTES = bytes.fromhex("03000000 616263 00000000")
A_ELEMENTS, B_ELEMENTS, C_ELEMENTS = [513, -2], [b"abc", b""], [[1.0, 2.5]]


def head(*outputs: str) -> bytes:
    """Return the JSON of an answer with these outputs."""
    return ('{"model_name":"m","outputs":[' + ",".join(outputs) + "]}").encode()


# outputs, tail, elements by name
GOOD = [
    ((A,), A_BYTES, {"A": A_ELEMENTS}),
    ((A, B), A_BYTES + B_BYTES, {"A": A_ELEMENTS, "B": B_ELEMENTS}),
    ((B, A), B_BYTES + A_BYTES, {"A": A_ELEMENTS, "B": B_ELEMENTS}),
    ((B, C, A), B_BYTES + A_BYTES, {"A": A_ELEMENTS, "B": B_ELEMENTS, "C": C_ELEMENTS}),
    ((C,), b"", {"C": C_ELEMENTS}),
]


@pytest.mark.parametrize(("outputs", "tail", "elements"), GOOD)
def test_good_answers(outputs: tuple[str, ...], tail: bytes, elements: dict[str, Any]) -> None:
    text = head(*outputs)
    answer = parse(text + tail, str(len(text)))
    assert answer.findings == ()
    assert answer.json_end == len(text)
    assert answer.document == json.loads(text)
    for name, expected in elements.items():
        output = answer.output(name)
        assert output is not None
        assert output.array is not None
        assert output.array.tolist() == expected
    assert answer.names() == tuple(json.loads(output)["name"] for output in outputs)
    assert answer.output("NONE") is None


def test_numeric_outputs_share_the_bodys_memory() -> None:
    text = head(B, A)
    body = text + B_BYTES + A_BYTES
    output = parse(body, str(len(text))).output("A")
    assert output is not None
    assert output.array is not None
    assert output.span == (len(text) + 11, len(text) + 15)
    assert np.shares_memory(output.array, np.frombuffer(body, dtype=np.uint8))


ALL_OF_IT = ", where JSON and tensors end"

# body, header: framings that are unusual and right
TOLERATED = [
    (head(C), None),
    (head(C), str(len(head(C)))),
    (head(C), "000" + str(len(head(C)))),
    (head(C) + b" \r\n", None),
    (head(A) + b" \n" + A_BYTES, str(len(head(A)) + 2)),
    (head('{"name":"E","datatype":"INT8","shape":[0],"parameters":{"binary_data_size":0}}'), None),
    (head('{"name":"E","datatype":"BYTES","shape":[0,3],"parameters":{"binary_data_size":0}}'), None),
    (head('{"name":"C","datatype":"INT8","shape":[1],"data":[1],"parameters":null}'), None),
    (head('{"name":"C","datatype":"INT8","shape":[1],"data":[1],"parameters":{"binary_data_size":null}}'), None),
    (head('{"name":"N","datatype":"INT8","shape":[],"data":[1],"parameters":{"x":[]},"y":{}}'), None),
]


@pytest.mark.parametrize(("body", "header"), TOLERATED)
def test_tolerated_framings_have_no_finding(body: bytes, header: str | None) -> None:
    answer = parse(body, header)
    assert answer.findings == ()
    assert all(output.array is not None for output in answer.outputs)


def sized(size: str, rest: str = '"name":"A","datatype":"INT16","shape":[2]') -> str:
    """Return an output with this text as its binary_data_size."""
    return f'{{{rest},"parameters":{{"binary_data_size":{size}}}}}'


def stated(rest: str, name: str = '"A"') -> str:
    """Return an output with these members, this name, and one JSON element."""
    return f'{{"name":{name},{rest},"data":[1]}}'


def shaped(shape: str) -> str:
    """Return an INT8 output with this text as its shape, and one JSON element."""
    return stated(f'"datatype":"INT8","shape":{shape}')


SIZE = "outputs[0].parameters.binary_data_size"
DATATYPE = "a datatype of the protocol"
SHAPE = "an array of dimensions"
BYTES_1 = '"name":"B","datatype":"BYTES","shape":[1]'
BYTES_2 = '"name":"B","datatype":"BYTES","shape":[2]'

# outputs, tail; kind, field, offset from the JSON's end, expected, actual
ONE_FAULT = [
    ((sized("4.0"),), "0102feff", "integer-with-a-point", SIZE, None, "4", "4.0"),
    ((sized("4.5"),), "0102feff", "size-not-integer", SIZE, None, "an integer", "4.5"),
    ((sized('"4"'),), "0102feff", "size-not-integer", SIZE, None, "an integer", '"4"'),
    ((sized("true"),), "0102feff", "size-not-integer", SIZE, None, "an integer", "true"),
    ((sized("[4]"),), "0102feff", "size-not-integer", SIZE, None, "an integer", "[4]"),
    ((sized("-4"),), "0102feff", "size-negative", SIZE, None, "0 or more", "-4"),
    ((sized("4"),), "0102fe", "size-beyond-body", SIZE, 0, "at most 3, the rest of the body", "4"),
    ((B, sized("4")), B_BYTES.hex() + "0102", "size-beyond-body", SIZE.replace("0", "1"), 11,
     "at most 2, the rest of the body", "4"),
    ((sized("99999999999999999999", BYTES_1),), "00", "size-beyond-body", SIZE, 0,
     "at most 1, the rest of the body", "99999999999999999999"),
    ((sized("8"),), "0102feff", "size-mismatch", SIZE, 0, "4 for INT16 [2]", "8"),
    ((sized("8"),), "0102feff00000000", "size-mismatch", SIZE, 0, "4 for INT16 [2]", "8"),
    ((sized("8"), B), "0102feff" + B_BYTES.hex(), "size-mismatch", SIZE, 0, "4 for INT16 [2]", "8"),
    ((sized("0"),), "", "size-mismatch", SIZE, 0, "4 for INT16 [2]", "0"),
    ((A,), "0102feff 00", "trailing-bytes", "body", 4, "JSON+4 bytes", "JSON+5 bytes"),
    ((C,), "00", "trailing-bytes", "body", 0, "JSON+0 bytes", "JSON+1 bytes"),
    ((A[:-1] + ',"data":[1,2]}',), "0102feff", "data-and-size", "outputs[0]", None, "data or binary_data_size", "both"),
    ((C[: C.index(',"data"')] + "}",), "", "data-missing", "outputs[0]", None, "data or binary_data_size", "neither"),
    (('{"name":"E","datatype":"INT8","shape":[0],"data":null}',), "", "data-missing", "outputs[0]", None,
     "data or binary_data_size", "neither"),
    ((A, "[]"), "0102feff", "output-invalid", "outputs[1]", None, "an object", "[]"),
    (("null", A), "0102feff", "output-invalid", "outputs[0]", None, "an object", "null"),
    ((shaped("[1]").replace('"name":"A",', ""),), "", "name-missing", "outputs[0].name", None, "a name", "nothing"),
    ((stated('"datatype":"INT8","shape":[1]', '""'),), "", "name-missing", "outputs[0].name", None, "a name", '""'),
    ((stated('"datatype":"INT8","shape":[1]', "5"),), "", "name-missing", "outputs[0].name", None, "a name", "5"),
    ((C, A.replace('"A"', '"C"')), "0102feff", "name-duplicate", "outputs[1].name", None,
     "a name other than that of outputs[0]", '"C"'),
    ((stated('"datatype":"STRING","shape":[1]'),), "", "datatype-unknown", "outputs[0].datatype", None, DATATYPE,
     '"STRING"'),
    ((stated('"datatype":[],"shape":[1]'),), "", "datatype-unknown", "outputs[0].datatype", None, DATATYPE, "[]"),
    ((stated('"shape":[1]'),), "", "datatype-unknown", "outputs[0].datatype", None, DATATYPE, "nothing"),
    ((stated('"datatype":"INT8"'),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, "nothing"),
    ((shaped("1"),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, "1"),
    ((shaped("[-1]"),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, "[-1]"),
    ((shaped("[1.0]"),), "", "integer-with-a-point", "outputs[0].shape", None, "dimensions written as integers",
     "[1.0]"),
    ((shaped('["1"]'),), "", "shape-no-integers", "outputs[0].shape", None, "dimensions written as integers", '["1"]'),
    ((shaped("[1.5]"),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, "[1.5]"),
    ((shaped('["-1"]'),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, '["-1"]'),
    ((shaped("[true]"),), "", "shape-invalid", "outputs[0].shape", None, SHAPE, "[true]"),
    ((shaped(f"[0,{2**62},{2**62}]"),), "", "shape-invalid", "outputs[0].shape", None,
     SHAPE, "[0, 4611686018427387904, 4611686018427387904]"),
    ((shaped(str([1] * 33)),), "", "shape-invalid", "outputs[0].shape", None, SHAPE,
     "an array of length 33"),
    ((C[:-1] + ',"parameters":[]}',), "", "parameters-invalid", "outputs[0].parameters", None, "an object", "[]"),
    (('{"name":"A","datatype":"INT16","shape":[2],"parameters":4}',), "0102feff", "parameters-invalid",
     "outputs[0].parameters", None, "an object", "4"),
    ((stated('"datatype":"BOOL","shape":[1]'),), "", "bool-number", "outputs[0].data", None, "true or false", "1"),
    ((A, '{"name":"D","datatype":"INT8","shape":[2],"data":["-1","7"]}'), "0102feff", "integer-string",
     "outputs[1].data", None, "numbers", '"-1"'),
    ((A, '{"name":"D","datatype":"INT8","shape":[1],"data":7}'), "0102feff", "data-value", "outputs[1].data", None,
     "an array", "7"),
    ((shaped("[2]"),), "", "data-count", "outputs[0].data", None,
     "2 elements for the shape [2]", "1 elements"),
    ((shaped(f"[{2**62},{2**62}]"),), "", "data-count", "outputs[0].data", None,
     f"{2**124} elements for the shape [{2**62}, {2**62}]", "1 elements"),
    ((A, sized("3", '"name":"L","datatype":"BOOL","shape":[3]')), "0102feff 010200", "bool-byte",
     "tensor 1 L element 1", 5, "00 or 01", "02"),
    ((A, sized("6", BYTES_2)), "0102feff 000000000100", "bytes-prefix-truncated", "tensor 1 B element 1", 8,
     "a length prefix of 4 bytes", "2 bytes"),
    ((A, sized("5", BYTES_1)), "0102feff 0300000061", "bytes-past-end", "tensor 1 B element 0", 4,
     "a length of at most 1", "a length of 3 with 1 bytes left"),
    ((A, sized("5", BYTES_2)), "0102feff 0100000061", "bytes-count", "tensor 1 B", 9, "2 elements", "1 elements"),
    ((sized("9", BYTES_1), A), "010000006100000000 0102feff", "bytes-count", "tensor 0 B", 5, "1 elements",
     "2 elements"),
    ((A, sized("7", BYTES_1)), "0102feff 01000000610000", "bytes-stray", "tensor 1 B", 9,
     "the end of the tensor after 1 elements", "2 more bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("outputs", "tail", "kind", "field", "offset", "expected", "actual"), ONE_FAULT)
def test_one_fault_in_the_outputs_is_one_finding(
    outputs: tuple[str, ...], tail: str, kind: str, field: str, offset: int | None, expected: str, actual: str
) -> None:
    text = head(*outputs)
    if kind == "trailing-bytes":
        expected, actual = (f"{len(text) + int(each[5])} bytes" for each in (expected, actual))
        expected += ALL_OF_IT
    answer = parse(text + bytes.fromhex(tail), str(len(text)))
    place = None if offset is None else len(text) + offset
    assert answer.findings == (Finding(kind, field, place, expected, actual),)
    assert answer.find_by_kind(kind) == answer.findings
    assert answer.find_by_kind() == ()


# The body of the next rows: 92 bytes of JSON, then 2 bytes of tensor.
SMALL = b'{"outputs":[{"name":"A","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}'
RANGE = "a number from 1 to 94"
JSON_END = "92, where the JSON ends"

# header; kind, offset, expected, actual
HEADERS = [
    (None, "inference-header-missing", None, JSON_END, "no such header"),
    ("", "inference-header-text", None, "decimal digits", '""'),
    ("abc", "inference-header-text", None, "decimal digits", '"abc"'),
    ("92 ", "inference-header-text", None, "decimal digits", '"92 "'),
    ("92\n", "inference-header-text", None, "decimal digits", '"92\\n"'),
    ("+92", "inference-header-text", None, "decimal digits", '"+92"'),
    ("9_2", "inference-header-text", None, "decimal digits", '"9_2"'),
    ("0x5c", "inference-header-text", None, "decimal digits", '"0x5c"'),
    ("92.0", "inference-header-text", None, "decimal digits", '"92.0"'),
    ("\uff19\uff12", "inference-header-text", None, "decimal digits", '"\\uff19\\uff12"'),
    ("-92", "inference-header-negative", None, RANGE, '"-92"'),
    ("-0", "inference-header-negative", None, RANGE, '"-0"'),
    ("0", "inference-header-zero", None, RANGE, '"0"'),
    ("95", "inference-header-beyond-body", 94, RANGE, '"95"'),
    ("9" * 5000, "inference-header-beyond-body", 94, RANGE, '"' + "9" * 60 + '"... (5000 characters)'),
    ("91", "inference-header-cuts-json", 91, JSON_END, "91"),
    ("1", "inference-header-cuts-json", 1, JSON_END, "1"),
    ("93", "inference-header-covers-binary", 93, JSON_END, "93"),
    ("94", "inference-header-covers-binary", 94, JSON_END, "94"),
]


@pytest.mark.parametrize(("header", "kind", "offset", "expected", "actual"), HEADERS)
def test_a_wrong_header_is_one_finding_and_the_tensors_are_read(
    header: str | None, kind: str, offset: int | None, expected: str, actual: str
) -> None:
    assert len(SMALL) == 92
    answer = parse(SMALL + b"\x01\xff", header)
    assert answer.findings == (Finding(kind, "Inference-Header-Content-Length", offset, expected, actual),)
    (output,) = answer.outputs
    assert output.array is not None
    assert output.array.tolist() == [1, -1]
    assert answer.json_end == 92


def test_a_header_of_0_on_json_alone_is_a_finding_of_its_own() -> None:
    body = b'{"outputs":[{"name":"A","datatype":"INT8","shape":[2],"data":[1,-1]}]}'
    answer = parse(body, "0")
    assert [finding.kind for finding in answer.findings] == ["inference-header-on-json"]
    assert (answer.json_end, answer.names()) == (len(body), ("A",))
    assert next(finding.kind for finding in parse(b"\x01\xff", "0").findings) == "inference-header-zero"


# body; kind, field, offset, expected, actual
DOCUMENTS = [
    (b"", "json-invalid", "json", 0, "JSON", "Expecting value"),
    (b"Internal Server Error", "json-invalid", "json", 0, "JSON", "Expecting value"),
    (b'{"outputs":[', "json-invalid", "json", 12, "JSON", "Expecting value"),
    ("{'ü'".encode(), "json-invalid", "json", 1, "JSON", "Expecting property name enclosed in double quotes"),
    ('{"ü" 1}'.encode(), "json-invalid", "json", 6, "JSON", "Expecting ':' delimiter"),
    (b'{"x":' + b"1" * 5000 + b"}", "json-invalid", "json", 5, "a number that can be read", "a number of 5000 digits"),
    (b'{"x":' + b"[" * 100_000, "json-too-deep", "json", 68, "at most depth 64", "depth 65"),
    (b'{"outputs":[],"x":"\xff"}', "json-not-utf8", "json", 19, "UTF-8", "byte ff"),
    (b'{"outputs":[],"x":1,"x":2}', "json-duplicate-member", "json", None, 'one member "x"', "2 of them"),
    (b'{"outputs":[],"NaN":[-Infinity,NaN]}', "json-non-finite", "json", 21, "finite numbers", "-Infinity"),
    (b"[1]", "json-not-object", "json", 0, "an object", "[1]"),
    (b"null", "json-not-object", "json", 0, "an object", "null"),
    (b'{"error":"x"}', "outputs-missing", "outputs", None, "an array", "nothing"),
    (b'{"outputs":null}', "outputs-missing", "outputs", None, "an array", "nothing"),
    (b'{"outputs":{}}', "outputs-invalid", "outputs", None, "an array", "an object"),
    (b'{"x":"' + b"{" * 100_000 + b'"}', "json-too-large", "json", None, "at most 100000 objects", "100001 braces"),
]


@pytest.mark.parametrize("with_header", [False, True])
@pytest.mark.parametrize(("body", "kind", "field", "offset", "expected", "actual"), DOCUMENTS)
def test_one_fault_in_the_json_is_one_finding(
    body: bytes, kind: str, field: str, offset: int | None, expected: str, actual: str, with_header: bool
) -> None:
    answer = parse(body, str(len(body)) if with_header and body else None)
    assert answer.findings == (Finding(kind, field, offset, expected, actual),)
    assert answer.outputs == ()


@pytest.mark.parametrize("with_header", [False, True])
def test_json_beyond_the_limit_is_one_finding(with_header: bool) -> None:
    body = b'"' + b"x" * 2**26 + b'"'
    found = ("json-too-large", "json", 2**26, f"at most {2**26} bytes", f"{2**26 + 2} bytes")
    test_one_fault_in_the_json_is_one_finding(body, *found, with_header)


def test_outputs_beyond_a_thousand_are_not_read() -> None:
    entry = b'{"name":"%d","datatype":"INT8","shape":[1],"data":[1]}'
    body = b'{"outputs":[' + b",".join(entry % number for number in range(1001)) + b"]}"
    answer = parse(body, None)
    assert answer.findings == (Finding("outputs-too-many", "outputs", None, "at most 1000", "1001"),)
    assert len(answer.outputs) == 1000


def test_the_rows_produce_every_kind() -> None:
    produced = {row[2] for row in ONE_FAULT} | {row[1] for row in HEADERS} | {row[1] for row in DOCUMENTS}
    with_a_test_of_its_own = {"inference-header-on-json", "outputs-too-many", "message-too-large"}
    assert produced == set(KINDS) - with_a_test_of_its_own - REQUEST_KINDS


@pytest.mark.parametrize("text", [b'{"outputs":[]}', head(C)])
def test_without_header_and_binary_outputs_bytes_after_the_json_are_left_over(text: bytes) -> None:
    answer = parse(text + b"}x", None)
    assert answer.findings == (
        Finding("trailing-bytes", "body", len(text), f"{len(text)} bytes{ALL_OF_IT}", f"{len(text) + 2} bytes"),
    )


def test_text_after_an_error_object_is_not_overlooked() -> None:
    answer = parse(b'{"error":"x"} Bad Request', None)
    assert [finding.kind for finding in answer.findings] == ["outputs-missing", "trailing-bytes"]
    assert answer.document == {"error": "x"}


def test_inconsistent_sizes_are_replaced_by_native_sizes() -> None:
    wrong = A.replace(":4", ":8")
    text = head(wrong, C, A.replace('"A"', '"D"'), B)
    answer = parse(text + A_BYTES + bytes.fromhex("0300 0400") + B_BYTES, str(len(text)))
    assert [finding.kind for finding in answer.findings] == ["size-mismatch"]
    assert [output.array.tolist() for output in answer.outputs if output.array is not None] == [
        A_ELEMENTS,
        C_ELEMENTS,
        [3, 4],
        B_ELEMENTS,
    ]


def test_wrong_but_consistent_sizes_split_the_body() -> None:
    text = head(A.replace(":4", ":8"), A.replace('"A"', '"D"'))
    answer = parse(text + A_BYTES + b"\0\0\0\0" + bytes.fromhex("0300 0400"), str(len(text)))
    assert [finding.kind for finding in answer.findings] == ["size-mismatch"]
    first, second = answer.outputs
    assert first.array is None
    assert second.array is not None
    assert second.array.tolist() == [3, 4]


def test_declared_sizes_precede_native_sizes_that_also_fit() -> None:
    text = head(sized("8"), sized("4", '"name":"D","datatype":"INT64","shape":[1]'))
    answer = parse(text + bytes(12), str(len(text)))
    assert [finding.kind for finding in answer.findings] == ["size-mismatch", "size-mismatch"]
    assert [output.span for output in answer.outputs] == [(len(text), len(text) + 8), (len(text) + 8, len(text) + 12)]


def test_tensors_after_unknown_size_are_not_read() -> None:
    text = head(sized('"11"', BYTES_2), A)
    answer = parse(text + B_BYTES + A_BYTES + b"\0", str(len(text)))
    assert [finding.kind for finding in answer.findings] == ["size-not-integer"]
    assert [(output.span, output.array) for output in answer.outputs] == [(None, None), (None, None)]


def test_bytes_that_are_not_utf8_in_json_data_are_kept() -> None:
    body = b'{"outputs":[{"name":"B","datatype":"BYTES","shape":[1],"data":["a\xff"]}]}'
    answer = parse(body, None)
    assert [finding.kind for finding in answer.findings] == ["json-not-utf8"]
    output = answer.output("B")
    assert output is not None
    assert output.array is not None
    assert output.array.tolist() == [b"a\xff"]


HEADER_VALUES = st.none() | st.text(max_size=8) | st.integers(-5, 300).map(str)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["BYTES", "INT8"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["A", "B", ""]) | VALUES,
        "datatype": st.sampled_from(["BOOL", "INT8", "FP32", "BYTES", "BF16", "STRING"]) | VALUES,
        "shape": st.lists(st.integers(0, 5) | st.integers(), max_size=4) | VALUES,
        "data": st.lists(VALUES, max_size=4) | VALUES,
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": st.integers(-1, 20) | VALUES}) | VALUES,
    },
)


def check(body: bytes, header: str | None) -> None:
    """Whatever came in, the answer is consistent and its texts are printable ASCII in one line."""
    answer = parse(body, header)
    assert 0 <= answer.json_end <= len(body)
    for finding in answer.findings:
        assert finding.offset is None or 0 <= finding.offset <= len(body)
        assert str(finding).isascii()
        assert str(finding).isprintable()
    for output in answer.outputs:
        assert set(output.findings) <= set(answer.findings)
        assert output.array is None or output.array.shape == output.shape


@given(st.binary(max_size=200), HEADER_VALUES)
def test_random_bytes_never_raise(body: bytes, header: str | None) -> None:
    check(body, header)


@given(st.lists(OUTPUTS | VALUES, max_size=4), st.binary(max_size=20), HEADER_VALUES, st.booleans())
def test_strange_outputs_never_raise(outputs: list[Any], tail: bytes, header: str | None, right: bool) -> None:
    text = json.dumps({"outputs": outputs}).encode()
    check(text + tail, str(len(text)) if right else header)


@given(st.data())
def test_mutated_good_answers_never_raise(data: st.DataObject) -> None:
    text = head(A, B, C)
    body = bytearray(text + A_BYTES + B_BYTES)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(len(body), start + 4)))
        body[start:end] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"[", b'"', b"}", b"-", b"9" * 20, b"1e999"])
        )
    check(bytes(body), data.draw(st.sampled_from([None, str(len(text)), "0", str(len(body))])))


@pytest.mark.parametrize(
    "value", ["9" * 4300, "1e999999999", "-1e99999999999999999999", "[" * 60 + "]" * 60, '"' + "\\ud800" * 99 + '"']
)
@pytest.mark.parametrize("member", ["name", "datatype", "shape", "data", "parameters", "size", "dimension", "element"])
def test_monstrous_members_never_raise(member: str, value: str) -> None:
    nested = {
        "size": f'"parameters":{{"binary_data_size":{value}}}',
        "dimension": f'"shape":[{value},{value}]',
        "element": f'"data":[{value}]',
    }.get(member, f'"{member}":{value}')
    for datatype in ("INT8", "FP64", "BYTES", "BOOL"):
        for rest in ("", ',"data":[1]', ',"parameters":{"binary_data_size":1}'):
            body = f'{{"outputs":[{{"name":"A","datatype":"{datatype}","shape":[1]{rest},{nested}}}]}}'.encode()
            check(body + b"\x01", str(len(body)))
            check(body, None)
