"""Calls of ModelInfer and what answers them, both in protobuf's text form: typed, raw, classified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.grpc_serving import GrpcConnection, parse_message, serve


@pytest.fixture(scope="module")
def opened() -> Iterator[GrpcConnection]:
    with serve() as one:
        yield one


def check(opened: GrpcConnection, model: str, request: str, expected: str) -> None:
    """Compare a whole response, presence of `contents` included."""
    head = f'model_name: "{model}" model_version: "1" '
    answer = opened.infer(f'model_name: "{model}" {request}')
    assert answer == parse_message("ModelInferResponse", head + expected), str(answer)


# datatype: (field of the contents, its values, the same as raw contents); the answers are the same again
DATATYPES = {
    "BOOL": ("bool_contents", "[true, false, true]", r"\x01\x00\x01"),
    "UINT8": ("uint_contents", "[0, 1, 255]", r"\x00\x01\xff"),
    "UINT16": ("uint_contents", "[258, 0, 65535]", r"\x02\x01\x00\x00\xff\xff"),
    "UINT32": ("uint_contents", "[16909060, 0, 4294967295]", r"\x04\x03\x02\x01\x00\x00\x00\x00\xff\xff\xff\xff"),
    "UINT64": (
        "uint64_contents",
        "[9007199254740993, 0, 18446744073709551615]",
        r"\x01\x00\x00\x00\x00\x00\x20\x00" + r"\x00" * 8 + r"\xff" * 8,
    ),
    "INT8": ("int_contents", "[-128, 1, 127]", r"\x80\x01\x7f"),
    "INT16": ("int_contents", "[-32768, 258, -1]", r"\x00\x80\x02\x01\xff\xff"),
    "INT32": ("int_contents", "[-2147483648, 16909060, -2]", r"\x00\x00\x00\x80\x04\x03\x02\x01\xfe\xff\xff\xff"),
    "INT64": (
        "int64_contents",
        "[-9223372036854775808, 9007199254740993, -2]",
        r"\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00\x00\x20\x00\xfe" + r"\xff" * 7,
    ),
    "FP32": ("fp32_contents", "[1.5, -0.0, inf]", r"\x00\x00\xc0\x3f\x00\x00\x00\x80\x00\x00\x80\x7f"),
    "FP64": (
        "fp64_contents",
        "[1.5, -0.0, 5e-324]",
        r"\x00\x00\x00\x00\x00\x00\xf8\x3f\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00\x00\x00\x00",
    ),
    "BYTES": (
        "bytes_contents",
        r'["", "a\x00", "\xff"]',
        r"\x00\x00\x00\x00\x02\x00\x00\x00a\x00\x01\x00\x00\x00\xff",
    ),
}
RAW_ONLY = {"FP16": r"\x00\x3c\x66\x2e\x00\x80", "BF16": r"\xc0\x3f\x10\xc0\x00\x80"}


@pytest.mark.parametrize("datatype", DATATYPES)
def test_typed(opened: GrpcConnection, datatype: str) -> None:
    field, values, _ = DATATYPES[datatype]
    tensor = f'datatype: "{datatype}" shape: 3 contents {{ {field}: {values} }}'
    check(
        opened,
        f"identity_{datatype.lower()}",
        f'id: "Füße" inputs {{ name: "INPUT" {tensor} }}',
        f'id: "Füße" outputs {{ name: "OUTPUT" {tensor} }}',
    )


@pytest.mark.parametrize("datatype", [*DATATYPES, *RAW_ONLY])
def test_raw(opened: GrpcConnection, datatype: str) -> None:
    raw = RAW_ONLY[datatype] if datatype in RAW_ONLY else DATATYPES[datatype][2]
    tensor = f'datatype: "{datatype}" shape: 3'
    check(
        opened,
        f"identity_{datatype.lower()}",
        f'inputs {{ name: "INPUT" {tensor} }} raw_input_contents: "{raw}"',
        f'outputs {{ name: "OUTPUT" {tensor} }} raw_output_contents: "{raw}"',
    )


@pytest.mark.parametrize("datatype", DATATYPES)
@pytest.mark.parametrize("contents", ["", "contents { }"])
def test_no_elements_need_no_contents(opened: GrpcConnection, datatype: str, contents: str) -> None:
    tensor = f'datatype: "{datatype}" shape: 0'
    check(
        opened,
        f"identity_{datatype.lower()}",
        f'inputs {{ name: "INPUT" {tensor} {contents} }}',
        f'outputs {{ name: "OUTPUT" {tensor} contents {{ }} }}',
    )


SCORES = 'inputs { name: "INPUT" datatype: "FP32" shape: 4 contents { fp32_contents: [0.25, 0.5, 0.125, 0.75] } }'
CLASSES_OF_2 = 'parameters { key: "classification" value { int64_param: 2 } }'

# (model, rest of the request, rest of the response)
ANSWERS = {
    "Triton, Classification Extension, GRPC; its errata put right": (
        "documented_scores",
        'inputs { name: "input0" datatype: "UINT32" shape: [2, 2] contents { uint_contents: [1, 2, 3, 4] } }'
        f'outputs {{ name: "output0" {CLASSES_OF_2} }}',
        'outputs { name: "output0" datatype: "BYTES" shape: 2 contents { bytes_contents: ["3.3:1", "2.4:3"] } }',
    ),
    "the same with labels, raw": (
        "documented_scores_labelled",
        'inputs { name: "input0" datatype: "UINT32" shape: [2, 2] }'
        r'raw_input_contents: "\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00"'
        f'outputs {{ name: "output0" {CLASSES_OF_2} }}',
        'outputs { name: "output0" datatype: "BYTES" shape: 2 }'
        r'raw_output_contents: "\x13\x00\x00\x003.3:1:index_1_label\x13\x00\x00\x002.4:3:index_3_label"',
    ),
    "more classes than there are": (
        "scores_some_labels",
        SCORES + 'outputs { name: "SCORES" parameters { key: "classification" value { int64_param: 4294967298 } } }',
        'outputs { name: "SCORES" datatype: "BYTES" shape: 4'
        ' contents { bytes_contents: ["0.75:3", "0.5:1:dog", "0.25:0:cat", "0.125:2"] } }',
    ),
    "a batch": (
        "scores_batching_labelled",
        'inputs { name: "INPUT" datatype: "FP32" shape: [2, 4] contents { fp32_contents: [1, 2, 3, 4, 8, 7, 6, 5] } }'
        f'outputs {{ name: "SCORES" {CLASSES_OF_2} }}',
        'outputs { name: "SCORES" datatype: "BYTES" shape: [2, 2]'
        ' contents { bytes_contents: ["4.0:3:fish", "3.0:2:bird", "8.0:0:cat", "7.0:1:dog"] } }',
    ),
    "one output classified, the other as it is, in the request's order": (
        "scores_two_outputs",
        'inputs { name: "IN_RANKS" datatype: "INT32" shape: 3 contents { int_contents: [5, -1, 7] } }'
        'inputs { name: "IN_SCORES" datatype: "FP32" shape: 4 contents { fp32_contents: [1, 2, 3, 4] } }'
        f'outputs {{ name: "RANKS" {CLASSES_OF_2} }} outputs {{ name: "SCORES" }}',
        'outputs { name: "RANKS" datatype: "BYTES" shape: 2 contents { bytes_contents: ["7:2:high", "5:0:low"] } }'
        'outputs { name: "SCORES" datatype: "FP32" shape: 4 contents { fp32_contents: [1, 2, 3, 4] } }',
    ),
    "an output without typed form makes all of them raw": (
        "documented_all_outputs",
        'inputs { name: "input_tensor" datatype: "FP32" shape: [1, 2] contents { fp32_contents: [32, -1.5] } }'
        f'outputs {{ name: "output_tensor1" {CLASSES_OF_2} }} outputs {{ name: "output_tensor0" }}',
        'outputs { name: "output_tensor1" datatype: "BYTES" shape: 2 }'
        'outputs { name: "output_tensor0" datatype: "FP16" shape: [3, 2] }'
        r'raw_output_contents: "\x06\x00\x00\x0032.0:0\x06\x00\x00\x0032.0:3"'
        r'raw_output_contents: "\x00\x50\x00\xbe\x00\xbe\x00\x50\x00\x00\x00\x00"',
    ),
    "classes of an output without typed form are texts": (
        "cast_fp32_fp16",
        'inputs { name: "INPUT" datatype: "FP32" shape: 2 contents { fp32_contents: [1, 2] } }'
        f'outputs {{ name: "OUTPUT" {CLASSES_OF_2} }}',
        'outputs { name: "OUTPUT" datatype: "BYTES" shape: 2 contents { bytes_contents: ["2.0:1", "1.0:0"] } }',
    ),
    "raw contents lie in the order of the request's inputs": (
        "add_sub",
        'model_version: "1" inputs { name: "A" datatype: "INT32" shape: 1 }'
        'inputs { name: "B" datatype: "INT32" shape: 1 }'
        r'raw_input_contents: "\x07\x00\x00\x00" raw_input_contents: "\x09\x00\x00\x00"'
        'outputs { name: "DIFFERENCE" } outputs { name: "SUM" }',
        'outputs { name: "DIFFERENCE" datatype: "INT32" shape: 1 } outputs { name: "SUM" datatype: "INT32" shape: 1 }'
        r'raw_output_contents: "\xfe\xff\xff\xff" raw_output_contents: "\x10\x00\x00\x00"',
    ),
    "an empty raw output has its entry": (
        "emit",
        'inputs { name: "COUNTS" datatype: "INT32" shape: 2 }'
        r'raw_input_contents: "\x00\x00\x00\x00\x02\x00\x00\x00"',
        'outputs { name: "NUMBERS" datatype: "INT32" shape: 0 } outputs { name: "TEXTS" datatype: "BYTES" shape: 2 }'
        r'raw_output_contents: "" raw_output_contents: "\x02\x00\x00\x00t1\x02\x00\x00\x00t2"',
    ),
    "no dimensions": (
        "rank0",
        'inputs { name: "INPUT" datatype: "INT32" contents { int_contents: 5 } }',
        'outputs { name: "OUTPUT" datatype: "INT32" contents { int_contents: 5 } }',
    ),
    "parameters of HTTP and unknown ones are nobody's business": (
        "identity_uint8",
        'parameters { key: "binary_data_output" value { string_param: "x" } }'
        'parameters { key: "classification" value { string_param: "x" } }'
        'inputs { name: "INPUT" datatype: "UINT8" shape: 1 contents { uint_contents: 7 }'
        ' parameters { key: "binary_data_size" value { int64_param: 9 } } }'
        'outputs { name: "OUTPUT" parameters { key: "binary_data" value { bool_param: true } }'
        ' parameters { key: "mine" value { } } }',
        'outputs { name: "OUTPUT" datatype: "UINT8" shape: 1 contents { uint_contents: 7 } }',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "request_text", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answer(opened: GrpcConnection, model: str, request_text: str, expected: str) -> None:
    check(opened, model, request_text, expected)
