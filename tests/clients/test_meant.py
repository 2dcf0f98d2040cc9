"""Whether a request says what its caller meant, over HTTP: what is open is free, each difference is one miss."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.clients.inference import AskedOutput, Inference
from conformance.clients.meant import differences
from conformance.clients.rules import judged
from conformance.wire.received import Received
from conformance.wire.tensor import Tensor
from tests.clients.made_requests import data, framed, ids, inputs, octets, one, plain, raw, rows

INT = Tensor.of("A", "INT32", [16909060, -2])
TEXT = Tensor.of("B", "BYTES", [b"abc", b""])
BOOL = Tensor.of("C", "BOOL", [True, False, True])
I2, I2_BYTES = one("A", "INT32", "[2]", 8), octets("04030201 feffffff")
TEXTS, TEXT_BYTES = one("B", "BYTES", "[2]", 11), octets("03000000 616263 00000000")
BOOLS, BOOL_BYTES = one("C", "BOOL", "[3]", 3), octets("01 00 01")
J2 = data("A", "INT32", "[2]", "[16909060,-2]")


def meant(*tensors: Tensor, **more: Any) -> Inference:
    """Return an inference of a model `m`."""
    return Inference("m", tensors or (INT,), **more)


def of(datatype: str, values: Any) -> Inference:
    return meant(Tensor.of("A", datatype, values))


def nan(bits: str, dtype: str) -> Inference:
    """Return an inference of one NaN with these bytes."""
    array = np.frombuffer(octets(bits), dtype)
    return meant(Tensor("A", {"<f2": "FP16", "<f4": "FP32", "<f8": "FP64"}[dtype], (1,), array))


def asked(rest: str) -> Received:
    return plain(inputs(J2, rest=rest))


def output(parameters: str = "", name: str = "X") -> str:
    given = f',"parameters":{parameters}' if parameters else ""
    return f',"outputs":[{{"name":"{name}"{given}}}]'


X = AskedOutput("X")
BINARY = replace(X, form="binary")
AS_JSON = replace(X, form="json")
CLASSES = replace(X, classes=3)
TOP = ',"parameters":{"binary_data_output":true}'

SAID: list[tuple[str, Received, Inference]] = [
    ("binary", framed(inputs(I2), I2_BYTES), meant()),
    ("json-where-binary-was-asked", plain(inputs(J2)), meant(forms=("binary",))),
    ("binary-where-json-was-asked", framed(inputs(I2), I2_BYTES), meant(forms=("json",))),
    (
        "inputs-in-another-order",
        framed(inputs(TEXTS, BOOLS, I2), TEXT_BYTES + BOOL_BYTES + I2_BYTES),
        meant(INT, TEXT, BOOL),
    ),
    ("mixed", framed(inputs(TEXTS, J2), TEXT_BYTES), meant(INT, TEXT)),
    ("encoded-name", plain(inputs(J2), path="/v2/models/a%2Fb%20%C3%A9/infer"), replace(meant(), model="a/b é")),
    ("name-encoded-needlessly", plain(inputs(J2), path="/v2/models/%6d/infer"), meant()),
    ("version", plain(inputs(J2), path="/v2/models/m/versions/3/infer"), meant(version="3")),
    ("a-version-of-the-clients-own", plain(inputs(J2), path="/v2/models/m/versions/1/infer"), meant()),
    ("rank-0", plain(inputs(data("A", "INT32", "[]", "[5]"))), meant(Tensor.of("A", "INT32", 5, ()))),
    ("empty", framed(inputs(one("A", "FP32", "[0,3]", 0))), meant(Tensor.of("A", "FP32", [], (0, 3)))),
    ("2^53+1", plain(inputs(data("A", "INT64", "[1]", "[9007199254740993]"))), of("INT64", [2**53 + 1])),
    ("largest-uint64", plain(inputs(data("A", "UINT64", "[1]", "[18446744073709551615]"))), of("UINT64", [2**64 - 1])),
    ("shortest-fp32", plain(inputs(data("A", "FP32", "[1]", "[0.1]"))), of("FP32", [np.float32(0.1)])),
    (
        "fp32-as-its-double",
        plain(inputs(data("A", "FP32", "[1]", "[0.10000000149011612]"))),
        of("FP32", [np.float32(0.1)]),
    ),
    ("-0.0", plain(inputs(data("A", "FP32", "[1]", "[-0.0]"))), of("FP32", [-0.0])),
    ("-0", plain(inputs(data("A", "FP64", "[2]", "[-0,1]"))), of("FP64", [-0.0, 1])),
    ("nan-with-payload", framed(inputs(one("A", "FP32", "[1]", 4)), octets("0100c07f")), nan("0100c07f", "<f4")),
    ("payload-lost", framed(inputs(one("A", "FP32", "[1]", 4)), octets("0000c07f")), nan("0100c07f", "<f4")),
    ("payload-lost-fp16", framed(inputs(one("A", "FP16", "[1]", 2)), octets("007e")), nan("017e", "<f2")),
    ("sign-of-0-lost", plain(inputs(data("A", "FP32", "[1]", "[0.0]"))), of("FP32", [-0.0])),
    ("number-as-text", plain(inputs(data("A", "INT32", "[2]", '["16909060",-2]'))), meant()),
    ("nul-behind", framed(inputs(one("A", "BYTES", "[1]", 7)), octets("03000000 610000")), of("BYTES", [b"a\0\0"])),
    ("not-utf-8", framed(inputs(one("A", "BYTES", "[1]", 6)), octets("02000000 fffe")), of("BYTES", [b"\xff\xfe"])),
    ("text-with-nul-as-json", plain(inputs(data("A", "BYTES", "[1]", '["a\\u0000"]'))), of("BYTES", [b"a\0"])),
    ("raw", raw(I2_BYTES), meant(is_raw=True)),
    ("raw-bytes-bare", raw(b"abc"), meant(Tensor.of("A", "BYTES", [b"abc"]), is_raw=True)),
    ("raw-bytes-with-length", raw(octets("03000000 616263")), meant(Tensor.of("A", "BYTES", [b"abc"]), is_raw=True)),
    ("raw-unasked", raw(I2_BYTES), meant()),
    ("no-outputs", asked(""), meant()),
    ("outputs-unasked", asked(output()), meant()),
    ("id-unasked", asked(',"id":"x"'), meant()),
    ("id", asked(',"id":"\\u00e9"'), meant(id="é")),
    ("output", asked(output()), meant(outputs=(X,))),
    ("output-in-a-form-left-open", asked(output('{"binary_data":true}')), meant(outputs=(X,))),
    ("outputs-in-another-order", asked(',"outputs":[{"name":"Y"},{"name":"X"}]'), meant(outputs=(X, AskedOutput("Y")))),
    ("output-binary", asked(output('{"binary_data":true}')), meant(outputs=(BINARY,))),
    ("output-binary-by-the-default", asked(TOP + output()), meant(outputs=(BINARY,))),
    ("output-json", asked(output('{"binary_data":false}')), meant(outputs=(AS_JSON,))),
    ("output-json-unsaid", asked(output()), meant(outputs=(AS_JSON,))),
    ("output-json-under-the-default", asked(TOP + output('{"binary_data":false}')), meant(outputs=(AS_JSON,))),
    ("output-json-unsaid-under-the-default", asked(TOP + output()), meant(outputs=(AS_JSON,))),
    ("all-binary", asked(TOP), meant(all_outputs="binary")),
    ("all-binary-listed", asked(output('{"binary_data":true}')), meant(all_outputs="binary")),
    ("all-json", asked(""), meant(all_outputs="json")),
    ("classes", asked(output('{"classification":3}')), meant(outputs=(CLASSES,))),
    ("classes-as-3.0", asked(output('{"classification":3.0}')), meant(outputs=(CLASSES,))),
    ("unreadable", plain("{"), meant(id="x")),
    ("cut-short", replace(framed(inputs(I2)), trouble="cut"), meant()),
]


@pytest.mark.parametrize(("received", "inference"), rows(SAID))
def test_what_the_caller_meant_is_no_miss(received: Received, inference: Inference) -> None:
    assert differences(received, inference) == ()


DIFFERENT: list[tuple[str, Received, Inference, list[str]]] = [
    ("another-model", plain(inputs(J2)), replace(meant(), model="n"), ["POST"]),
    ("name-encoded-twice", plain(inputs(J2), path="/v2/models/a%2520b/infer"), replace(meant(), model="a b"), ["POST"]),
    ("blank-as-plus", plain(inputs(J2), path="/v2/models/a+b/infer"), replace(meant(), model="a b"), ["POST"]),
    ("version-left-out", plain(inputs(J2)), meant(version="3"), ["POST"]),
    ("another-version", plain(inputs(J2), path="/v2/models/m/versions/1/infer"), meant(version="3"), ["POST"]),
    ("input-left-out", plain(inputs(J2)), meant(INT, BOOL), ["VALUES"]),
    ("input-too-many", framed(inputs(J2, BOOLS), BOOL_BYTES), meant(), ["VALUES"]),
    ("input-twice", plain(inputs(J2, J2)), meant(), ["VALUES"]),
    ("input-renamed", plain(inputs(J2.replace("A", "input0"))), meant(), ["VALUES"]),
    ("another-datatype", plain(inputs(J2.replace("INT32", "INT64"))), meant(), ["VALUES"]),
    ("another-shape", framed(inputs(I2.replace("[2]", "[1,2]")), I2_BYTES), meant(), ["VALUES"]),
    ("another-value", framed(inputs(I2), I2_BYTES[::-1]), meant(), ["VALUES"]),
    ("another-value-in-json", plain(inputs(data("A", "INT32", "[2]", "[16909060,2]"))), meant(), ["VALUES"]),
    ("big-endian", framed(inputs(I2), octets("01020304 fffffffe")), meant(), ["LITTLE-ENDIAN"]),
    ("big-endian-bf16", framed(inputs(one("A", "BF16", "[1]", 2)), octets("3f80")), of("BF16", [1]), ["LITTLE-ENDIAN"]),
    ("out-of-range", plain(inputs(data("A", "UINT8", "[1]", "[4294967240]"))), of("UINT8", [200]), ["VALUES"]),
    ("out-of-range-beside-text", plain(inputs(data("A", "INT8", "[2]", '["x",255]'))), of("INT8", [1, -1]), ["VALUES"]),
    ("fp32-out-of-range", plain(inputs(data("A", "FP32", "[1]", "[1e39]"))), of("FP32", [3e38]), ["VALUES"]),
    ("2^53", plain(inputs(data("A", "INT64", "[1]", "[9007199254740992]"))), of("INT64", [2**53 + 1]), ["VALUES"]),
    ("sign-of-0-lost-in-binary", framed(inputs(one("A", "FP32", "[1]", 4)), bytes(4)), of("FP32", [-0.0]), ["VALUES"]),
    ("nul-lost", framed(inputs(one("A", "BYTES", "[1]", 5)), octets("01000000 61")), of("BYTES", [b"a\0"]), ["VALUES"]),
    ("replaced-for-utf-8", plain(inputs(data("A", "BYTES", "[1]", '["\\ufffd"]'))), of("BYTES", [b"\xff"]), ["VALUES"]),
    ("empty-element-lost", plain(inputs(data("A", "BYTES", "[1]", '["a"]'))), of("BYTES", [b"a", b""]), ["VALUES"]),
    (
        "order-of-numbers",
        framed(inputs(I2, one("D", "UINT32", "[2]", 8)), octets("01000000 02000000") + I2_BYTES),
        meant(INT, Tensor.of("D", "UINT32", [1, 2])),
        ["ORDER"],
    ),
    (
        "order-of-callers",
        framed(inputs(BOOLS, TEXTS, I2), I2_BYTES + TEXT_BYTES + BOOL_BYTES),
        meant(INT, TEXT, BOOL),
        ["ORDER"],
    ),
    ("raw-of-other-bytes", raw(I2_BYTES[:4]), meant(is_raw=True), ["VALUES"]),
    ("raw-with-more-in-front", raw(b'{"inputs":[]}' + I2_BYTES), meant(is_raw=True), ["RAW"]),
    ("raw-with-more-than-nothing", raw(b"{}"), meant(Tensor.of("A", "FP64", []), is_raw=True), ["RAW"]),
    ("raw-of-two-inputs", raw(I2_BYTES + TEXT_BYTES), meant(INT, TEXT), ["VALUES"]),
    ("raw-asked-and-not-sent", framed(inputs(I2), I2_BYTES), meant(is_raw=True), ["RAW"]),
    ("raw-where-outputs-were-asked", raw(I2_BYTES), meant(outputs=(X,)), ["OUTPUTS"]),
    ("id-left-out", asked(""), meant(id="x"), ["OUTPUTS"]),
    ("another-id", asked(',"id":"X"'), meant(id="x"), ["OUTPUTS"]),
    ("output-left-out", asked(""), meant(outputs=(X,)), ["OUTPUTS"]),
    ("another-output", asked(output(name="Y")), meant(outputs=(X,)), ["OUTPUTS"]),
    ("output-too-many", asked(',"outputs":[{"name":"Y"},{"name":"X"}]'), meant(outputs=(X,)), ["OUTPUTS"]),
    ("output-json-instead", asked(output()), meant(outputs=(BINARY,)), ["OUTPUTS"]),
    ("output-binary-instead", asked(output('{"binary_data":true}')), meant(outputs=(AS_JSON,)), ["OUTPUTS"]),
    ("own-parameter-overrides", asked(TOP + output('{"binary_data":false}')), meant(outputs=(BINARY,)), ["OUTPUTS"]),
    ("all-json-instead", asked(""), meant(all_outputs="binary"), ["OUTPUTS"]),
    ("all-binary-instead", asked(TOP), meant(all_outputs="json"), ["OUTPUTS"]),
    ("listed-json-instead-of-all", asked(output('{"binary_data":false}')), meant(all_outputs="binary"), ["OUTPUTS"]),
    ("classes-left-out", asked(output()), meant(outputs=(CLASSES,)), ["OUTPUTS"]),
    ("other-classes", asked(output('{"classification":2}')), meant(outputs=(CLASSES,)), ["OUTPUTS"]),
    ("classes-unasked", asked(output('{"classification":2}')), meant(outputs=(X,)), ["OUTPUTS"]),
    ("classes-of-all-unasked", asked(output('{"classification":2}')), meant(), ["OUTPUTS"]),
    (
        "classes-of-the-request",
        asked(',"parameters":{"classification":3}' + output()),
        meant(outputs=(CLASSES,)),
        ["OUTPUTS"],
    ),
    (
        "binary-data-beside",
        asked(',"outputs":[{"name":"X","binary_data":true}]'),
        meant(outputs=(BINARY,)),
        ["OUTPUTS"],
    ),
    ("binary-data-output-on-it", asked(output('{"binary_data_output":true}')), meant(outputs=(BINARY,)), ["OUTPUTS"]),
    ("values-and-id", plain(inputs(J2.replace("-2", "2"))), meant(id="x"), ["VALUES", "OUTPUTS"]),
]


@pytest.mark.parametrize(("received", "inference", "expected"), rows(DIFFERENT))
def test_a_difference_is_one_miss(received: Received, inference: Inference, expected: list[str]) -> None:
    misses = differences(received, inference)
    assert ids(misses) == expected
    for miss in misses:
        assert f"{miss.expected}{miss.actual}".isascii()
        assert f"{miss.expected}{miss.actual}".isprintable()


MEANT = meant(id="5", outputs=(replace(X, form="binary", classes=3),))
REST = ',"id":"5","outputs":[{"name":"X","parameters":{"binary_data":true,"classification":3}}]'


def rested(text: str) -> Received:
    """Return a request with another end than REST."""
    return plain(inputs(J2, rest=text))


# name, request: its bytes are wrong in themselves, which the rules say
JUDGED_ELSEWHERE: list[tuple[str, Received]] = [
    ("header-off", framed(inputs(I2, rest=REST), I2_BYTES, count=3)),
    ("size-off", framed(inputs(one("A", "INT32", "[2]", 16), rest=REST), I2_BYTES)),
    ("data-short", framed(inputs(I2, rest=REST), I2_BYTES[:4])),
    ("data-too-few", plain(inputs(data("A", "INT32", "[2]", "[1]"), rest=REST))),
    ("path", plain(inputs(J2, rest=REST), path="/infer")),
    ("datatype-of-numpy", plain(inputs(J2.replace("INT32", "int32"), rest=REST))),
    ("inputs-an-object", plain('{"inputs":{"A":' + J2 + "}" + REST + "}")),
    ("inputs-without-names", plain(inputs(J2.replace('"name":"A",', ""), rest=REST))),
    ("latin-1", plain(inputs(J2.replace("A", "é"), rest=REST).encode("latin-1"))),
    ("coding-not-applied", plain(inputs(J2, rest=REST), ("Content-Encoding", "gzip"))),
    ("id-a-number", rested(REST.replace('"5"', "5"))),
    ("outputs-of-names", rested(',"id":"5","outputs":["X"]')),
    ("outputs-an-object", rested(',"id":"5","outputs":{"X":{}}')),
    ("classes-a-string", rested(REST.replace("3", '"3"'))),
    ("binary-data-a-string", rested(REST.replace("true", '"true"'))),
]


@pytest.mark.parametrize("received", rows(JUDGED_ELSEWHERE))
def test_what_is_wrong_in_itself_is_left_to_the_rules(received: Received) -> None:
    assert judged(received).misses != ()
    assert differences(received, MEANT) == ()


def test_bool_of_other_bytes_is_left_to_the_rules() -> None:
    received = framed(inputs(BOOLS), octets("ff 00 ff"))
    assert ids(judged(received).misses) == ["BOOL"]
    assert differences(received, meant(BOOL)) == ()


def test_a_raw_request_in_another_coding_than_it_says_is_left_to_the_rules() -> None:
    received = raw(zlib.compress(I2_BYTES), ("Content-Encoding", "gzip"))
    assert ids(judged(received).misses) == ["CODING"]
    assert differences(received, meant(is_raw=True)) == ()
