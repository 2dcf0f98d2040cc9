"""Whether a request says what its caller meant, over HTTP: what is open is free, each difference is one miss."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.clients.inference import Inference, RequestedOutput
from conformance.clients.intent import find_differences
from conformance.clients.rules.judging import judge_request
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor
from tests.clients.made_requests import (
    framed,
    inputs,
    list_ids,
    make_json_input,
    make_sized_input,
    parse_hex,
    plain,
    raw,
    rows,
)

INT = Tensor.from_values("A", "INT32", [16909060, -2])
TEXT = Tensor.from_values("B", "BYTES", [b"abc", b""])
BOOL = Tensor.from_values("C", "BOOL", [True, False, True])
I2, I2_BYTES = make_sized_input("A", "INT32", "[2]", 8), parse_hex("04030201 feffffff")
TEXTS, TEXT_BYTES = make_sized_input("B", "BYTES", "[2]", 11), parse_hex("03000000 616263 00000000")
BOOLS, BOOL_BYTES = make_sized_input("C", "BOOL", "[3]", 3), parse_hex("01 00 01")
J2 = make_json_input("A", "INT32", "[2]", "[16909060,-2]")


def make_inference(*tensors: Tensor, **more: Any) -> Inference:
    return Inference("m", tensors or (INT,), **more)


def make_tensor_inference(datatype: str, values: Any) -> Inference:
    return make_inference(Tensor.from_values("A", datatype, values))


Case = tuple[str, ClientRequest, Inference]


def make_json_case(datatype: str, data: str, values: list[Any]) -> tuple[ClientRequest, Inference]:
    """Return a request with these data for an input of one dimension, and the inference of what the caller meant."""
    received = plain(inputs(make_json_input("A", datatype, f"[{len(values)}]", data)))
    return received, make_tensor_inference(datatype, values)


def make_binary_case(datatype: str, data: str, values: list[Any]) -> tuple[ClientRequest, Inference]:
    octets = parse_hex(data)
    received = framed(inputs(make_sized_input("A", datatype, f"[{len(values)}]", len(octets))), octets)
    return received, make_tensor_inference(datatype, values)


def nan(bits: str, dtype: str) -> Inference:
    """Return an inference of one NaN with these bytes."""
    array = np.frombuffer(parse_hex(bits), dtype)
    return make_inference(Tensor("A", {"<f2": "FP16", "<f4": "FP32", "<f8": "FP64"}[dtype], (1,), array))


def asked(rest: str) -> ClientRequest:
    return plain(inputs(J2, rest=rest))


def output(parameters: str = "", name: str = "X") -> str:
    given = f',"parameters":{parameters}' if parameters else ""
    return f',"outputs":[{{"name":"{name}"{given}}}]'


X = RequestedOutput("X")
BINARY = replace(X, form="binary")
AS_JSON = replace(X, form="json")
CLASSES = replace(X, classes=3)
TOP = ',"parameters":{"binary_data_output":true}'

SAID: list[Case] = [
    ("binary", framed(inputs(I2), I2_BYTES), make_inference()),
    ("json-where-binary-was-asked", plain(inputs(J2)), make_inference(forms=("binary",))),
    ("binary-where-json-was-asked", framed(inputs(I2), I2_BYTES), make_inference(forms=("json",))),
    (
        "inputs-in-another-order",
        framed(inputs(TEXTS, BOOLS, I2), TEXT_BYTES + BOOL_BYTES + I2_BYTES),
        make_inference(INT, TEXT, BOOL),
    ),
    ("mixed", framed(inputs(TEXTS, J2), TEXT_BYTES), make_inference(INT, TEXT)),
    (
        "encoded-name",
        plain(inputs(J2), path="/v2/models/a%2Fb%20%C3%A9/infer"),
        replace(make_inference(), model="a/b é"),
    ),
    ("name-encoded-needlessly", plain(inputs(J2), path="/v2/models/%6d/infer"), make_inference()),
    ("version", plain(inputs(J2), path="/v2/models/m/versions/3/infer"), make_inference(version="3")),
    ("whole-url", plain(inputs(J2), path="http://127.0.0.1:1/v2/models/m/infer"), make_inference()),
    ("a-version-of-the-clients-own", plain(inputs(J2), path="/v2/models/m/versions/1/infer"), make_inference()),
    (
        "rank-0",
        plain(inputs(make_json_input("A", "INT32", "[]", "[5]"))),
        make_inference(Tensor.from_values("A", "INT32", 5, ())),
    ),
    (
        "empty",
        framed(inputs(make_sized_input("A", "FP32", "[0,3]", 0))),
        make_inference(Tensor.from_values("A", "FP32", [], (0, 3))),
    ),
    ("2^53+1", *make_json_case("INT64", "[9007199254740993]", [2**53 + 1])),
    ("largest-uint64", *make_json_case("UINT64", "[18446744073709551615]", [2**64 - 1])),
    ("shortest-fp32", *make_json_case("FP32", "[0.1]", [np.float32(0.1)])),
    ("fp32-as-its-double", *make_json_case("FP32", "[0.10000000149011612]", [np.float32(0.1)])),
    ("-0.0", *make_json_case("FP32", "[-0.0]", [-0.0])),
    ("-0", *make_json_case("FP64", "[-0,1]", [-0.0, 1])),
    (
        "nan-with-payload",
        framed(inputs(make_sized_input("A", "FP32", "[1]", 4)), parse_hex("0100c07f")),
        nan("0100c07f", "<f4"),
    ),
    (
        "payload-lost",
        framed(inputs(make_sized_input("A", "FP32", "[1]", 4)), parse_hex("0000c07f")),
        nan("0100c07f", "<f4"),
    ),
    (
        "payload-lost-fp16",
        framed(inputs(make_sized_input("A", "FP16", "[1]", 2)), parse_hex("007e")),
        nan("017e", "<f2"),
    ),
    ("sign-of-0-kept", *make_json_case("FP32", "[-0.0]", [-0.0])),
    ("sign-of-0-without-a-fraction", *make_json_case("FP32", "[-0]", [-0.0])),
    ("number-as-text", plain(inputs(make_json_input("A", "INT32", "[2]", '["16909060",-2]'))), make_inference()),
    ("nul-behind", *make_binary_case("BYTES", "03000000 610000", [b"a\x00\x00"])),
    ("not-utf-8", *make_binary_case("BYTES", "02000000 fffe", [b"\xff\xfe"])),
    ("text-with-nul-as-json", *make_json_case("BYTES", '["a\\u0000"]', [b"a\x00"])),
    ("raw", raw(I2_BYTES), make_inference(is_raw=True)),
    ("raw-bytes-bare", raw(b"abc"), make_inference(Tensor.from_values("A", "BYTES", [b"abc"]), is_raw=True)),
    (
        "raw-bytes-with-length",
        raw(parse_hex("03000000 616263")),
        make_inference(Tensor.from_values("A", "BYTES", [b"abc"]), is_raw=True),
    ),
    ("raw-unasked", raw(I2_BYTES), make_inference()),
    ("no-outputs", asked(""), make_inference()),
    ("outputs-unasked", asked(output()), make_inference()),
    ("id-unasked", asked(',"id":"x"'), make_inference()),
    ("id", asked(',"id":"\\u00e9"'), make_inference(id="é")),
    ("output", asked(output()), make_inference(outputs=(X,))),
    ("output-in-a-form-left-open", asked(output('{"binary_data":true}')), make_inference(outputs=(X,))),
    (
        "outputs-in-another-order",
        asked(',"outputs":[{"name":"Y"},{"name":"X"}]'),
        make_inference(outputs=(X, RequestedOutput("Y"))),
    ),
    ("output-binary", asked(output('{"binary_data":true}')), make_inference(outputs=(BINARY,))),
    ("output-binary-by-the-default", asked(TOP + output()), make_inference(outputs=(BINARY,))),
    ("output-json", asked(output('{"binary_data":false}')), make_inference(outputs=(AS_JSON,))),
    ("output-json-unsaid", asked(output()), make_inference(outputs=(AS_JSON,))),
    ("output-json-under-the-default", asked(TOP + output('{"binary_data":false}')), make_inference(outputs=(AS_JSON,))),
    ("all-binary", asked(TOP), make_inference(all_outputs="binary")),
    ("all-binary-listed", asked(output('{"binary_data":true}')), make_inference(all_outputs="binary")),
    ("all-json", asked(""), make_inference(all_outputs="json")),
    ("classes", asked(output('{"classification":3}')), make_inference(outputs=(CLASSES,))),
    ("classes-as-3.0", asked(output('{"classification":3.0}')), make_inference(outputs=(CLASSES,))),
    ("unreadable", plain("{"), make_inference(id="x")),
    ("cut-short", replace(framed(inputs(I2)), trouble="cut"), make_inference()),
]


@pytest.mark.parametrize(("received", "inference"), rows(SAID))
def test_intended_request_has_no_differences(received: ClientRequest, inference: Inference) -> None:
    assert find_differences(received, inference) == ()


# by the requirements that are missed
DIFFERENT: dict[str, list[Case]] = {
    "POST": [
        ("another-model", plain(inputs(J2)), replace(make_inference(), model="n")),
        (
            "name-encoded-twice",
            plain(inputs(J2), path="/v2/models/a%2520b/infer"),
            replace(make_inference(), model="a b"),
        ),
        ("blank-as-plus", plain(inputs(J2), path="/v2/models/a+b/infer"), replace(make_inference(), model="a b")),
        ("version-left-out", plain(inputs(J2)), make_inference(version="3")),
        ("another-version", plain(inputs(J2), path="/v2/models/m/versions/1/infer"), make_inference(version="3")),
        ("version-made-up", plain(inputs(J2), path="/v2/models/m/versions/latest/infer"), make_inference()),
        ("path-made-up", plain(inputs(J2), path="/null/v2/models/m/infer"), make_inference()),
    ],
    "VALUES": [
        ("input-left-out", plain(inputs(J2)), make_inference(INT, BOOL)),
        ("input-too-many", framed(inputs(J2, BOOLS), BOOL_BYTES), make_inference()),
        ("input-twice", plain(inputs(J2, J2)), make_inference()),
        ("input-renamed", plain(inputs(J2.replace("A", "input0"))), make_inference()),
        ("another-datatype", plain(inputs(J2.replace("INT32", "INT64"))), make_inference()),
        ("another-shape", framed(inputs(I2.replace("[2]", "[1,2]")), I2_BYTES), make_inference()),
        ("another-value", framed(inputs(I2), I2_BYTES[::-1]), make_inference()),
        (
            "another-value-in-json",
            plain(inputs(make_json_input("A", "INT32", "[2]", "[16909060,2]"))),
            make_inference(),
        ),
        ("out-of-range", *make_json_case("UINT8", "[4294967240]", [200])),
        ("out-of-range-beside-text", *make_json_case("INT8", '["x",255]', [1, -1])),
        ("fp32-out-of-range", *make_json_case("FP32", "[1e39]", [3e38])),
        ("2^53", *make_json_case("INT64", "[9007199254740992]", [2**53 + 1])),
        (
            "sign-of-0-lost-in-binary",
            framed(inputs(make_sized_input("A", "FP32", "[1]", 4)), bytes(4)),
            make_tensor_inference("FP32", [-0.0]),
        ),
        ("nul-lost", *make_binary_case("BYTES", "01000000 61", [b"a\x00"])),
        ("replaced-for-utf-8", *make_json_case("BYTES", '["\\ufffd"]', [b"\xff"])),
        (
            "empty-element-lost",
            plain(inputs(make_json_input("A", "BYTES", "[1]", '["a"]'))),
            make_tensor_inference("BYTES", [b"a", b""]),
        ),
        ("raw-of-other-bytes", raw(I2_BYTES[:4]), make_inference(is_raw=True)),
        ("raw-of-two-inputs", raw(I2_BYTES + TEXT_BYTES), make_inference(INT, TEXT)),
    ],
    "LITTLE-ENDIAN": [
        ("big-endian", framed(inputs(I2), parse_hex("01020304 fffffffe")), make_inference()),
        ("big-endian-bf16", *make_binary_case("BF16", "3f80", [1])),
    ],
    "ORDER": [
        (
            "order-of-numbers",
            framed(inputs(I2, make_sized_input("D", "UINT32", "[2]", 8)), parse_hex("01000000 02000000") + I2_BYTES),
            make_inference(INT, Tensor.from_values("D", "UINT32", [1, 2])),
        ),
        (
            "order-of-callers",
            framed(inputs(BOOLS, TEXTS, I2), I2_BYTES + TEXT_BYTES + BOOL_BYTES),
            make_inference(INT, TEXT, BOOL),
        ),
    ],
    "RAW": [
        ("raw-with-more-in-front", raw(b'{"inputs":[]}' + I2_BYTES), make_inference(is_raw=True)),
        ("raw-with-more-than-nothing", raw(b"{}"), make_inference(Tensor.from_values("A", "FP64", []), is_raw=True)),
        ("raw-asked-and-not-sent", framed(inputs(I2), I2_BYTES), make_inference(is_raw=True)),
    ],
    "OUTPUTS": [
        ("raw-where-outputs-were-asked", raw(I2_BYTES), make_inference(outputs=(X,))),
        ("id-left-out", asked(""), make_inference(id="x")),
        ("another-id", asked(',"id":"X"'), make_inference(id="x")),
        ("output-left-out", asked(""), make_inference(outputs=(X,))),
        ("another-output", asked(output(name="Y")), make_inference(outputs=(X,))),
        ("output-too-many", asked(',"outputs":[{"name":"Y"},{"name":"X"}]'), make_inference(outputs=(X,))),
        ("output-json-instead", asked(output()), make_inference(outputs=(BINARY,))),
        ("output-binary-instead", asked(output('{"binary_data":true}')), make_inference(outputs=(AS_JSON,))),
        ("own-parameter-overrides", asked(TOP + output('{"binary_data":false}')), make_inference(outputs=(BINARY,))),
        ("all-json-instead", asked(""), make_inference(all_outputs="binary")),
        ("all-binary-instead", asked(TOP), make_inference(all_outputs="json")),
        ("listed-json-instead-of-all", asked(output('{"binary_data":false}')), make_inference(all_outputs="binary")),
        ("classes-left-out", asked(output()), make_inference(outputs=(CLASSES,))),
        ("other-classes", asked(output('{"classification":2}')), make_inference(outputs=(CLASSES,))),
        ("classes-unasked", asked(output('{"classification":2}')), make_inference(outputs=(X,))),
        ("classes-of-all-unasked", asked(output('{"classification":2}')), make_inference()),
        (
            "classes-of-the-request",
            asked(',"parameters":{"classification":3}' + output()),
            make_inference(outputs=(CLASSES,)),
        ),
        (
            "binary-data-beside",
            asked(',"outputs":[{"name":"X","binary_data":true}]'),
            make_inference(outputs=(BINARY,)),
        ),
        ("binary-data-output-on-it", asked(output('{"binary_data_output":true}')), make_inference(outputs=(BINARY,))),
    ],
    "MINUS-ZERO": [
        ("sign-of-0-lost", *make_json_case("FP32", "[0.0]", [-0.0])),
        ("sign-of-0-lost-without-a-fraction", *make_json_case("FP32", "[0]", [-0.0])),
    ],
    "OVERRIDE": [("output-json-unsaid-under-the-default", asked(TOP + output()), make_inference(outputs=(AS_JSON,)))],
    "VALUES OUTPUTS": [("values-and-id", plain(inputs(J2.replace("-2", "2"))), make_inference(id="x"))],
}


@pytest.mark.parametrize(
    ("received", "inference", "expected"),
    rows([(*case, names) for names, cases in DIFFERENT.items() for case in cases]),
)
def test_a_difference_is_one_miss(received: ClientRequest, inference: Inference, expected: str) -> None:
    misses = find_differences(received, inference)
    assert " ".join(list_ids(misses)) == expected
    for miss in misses:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


MEANT = make_inference(id="5", outputs=(replace(X, form="binary", classes=3),))
REST = ',"id":"5","outputs":[{"name":"X","parameters":{"binary_data":true,"classification":3}}]'


def make_other_end(text: str) -> ClientRequest:
    """Return a request with another end than REST."""
    return plain(inputs(J2, rest=text))


# name, request: its bytes are wrong in themselves, which the rules say
JUDGED_ELSEWHERE: list[tuple[str, ClientRequest]] = [
    ("header-off", framed(inputs(I2, rest=REST), I2_BYTES, count=3)),
    ("size-off", framed(inputs(make_sized_input("A", "INT32", "[2]", 16), rest=REST), I2_BYTES)),
    ("data-short", framed(inputs(I2, rest=REST), I2_BYTES[:4])),
    ("data-too-few", plain(inputs(make_json_input("A", "INT32", "[2]", "[1]"), rest=REST))),
    ("path", plain(inputs(J2, rest=REST), path="/infer")),
    ("datatype-of-numpy", plain(inputs(J2.replace("INT32", "int32"), rest=REST))),
    ("inputs-an-object", plain('{"inputs":{"A":' + J2 + "}" + REST + "}")),
    ("inputs-without-names", plain(inputs(J2.replace('"name":"A",', ""), rest=REST))),
    ("latin-1", plain(inputs(J2.replace("A", "é"), rest=REST).encode("latin-1"))),
    ("coding-not-applied", plain(inputs(J2, rest=REST), ("Content-Encoding", "gzip"))),
    ("id-a-number", make_other_end(REST.replace('"5"', "5"))),
    ("outputs-of-names", make_other_end(',"id":"5","outputs":["X"]')),
    ("outputs-an-object", make_other_end(',"id":"5","outputs":{"X":{}}')),
    ("classes-a-string", make_other_end(REST.replace("3", '"3"'))),
    ("binary-data-a-string", make_other_end(REST.replace("true", '"true"'))),
]


@pytest.mark.parametrize("received", rows(JUDGED_ELSEWHERE))
def test_request_that_violates_a_rule_has_no_differences(received: ClientRequest) -> None:
    assert judge_request(received).violations != ()
    assert find_differences(received, MEANT) == ()


def test_bool_of_other_bytes_is_left_to_the_rules() -> None:
    received = framed(inputs(BOOLS), parse_hex("ff 00 ff"))
    assert list_ids(judge_request(received).violations) == ["BOOL"]
    assert find_differences(received, make_inference(BOOL)) == ()


def test_a_raw_request_in_another_coding_than_it_says_is_left_to_the_rules() -> None:
    received = raw(zlib.compress(I2_BYTES), ("Content-Encoding", "gzip"))
    assert list_ids(judge_request(received).violations) == ["CODING"]
    assert find_differences(received, make_inference(is_raw=True)) == ()
