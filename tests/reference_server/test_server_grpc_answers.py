"""Calls of ModelInfer and their answers in text form, where HTTP and the golden cases say nothing of it."""

from __future__ import annotations

import pytest

from reference_server.grpc_contents import FIELDS
from tests.support.grpc_serving import GrpcConnection, parse_message


def check(opened: GrpcConnection, model: str, request: str, expected: str) -> None:
    """Compare a whole response, presence of `contents` included."""
    head = f'model_name: "{model}" model_version: "1" '
    answer = opened.infer(f'model_name: "{model}" {request}')
    assert answer == parse_message("ModelInferResponse", head + expected), str(answer)


@pytest.mark.parametrize("datatype", FIELDS)
@pytest.mark.parametrize("contents", ["", "contents { }"])
def test_no_elements_need_no_contents(opened: GrpcConnection, datatype: str, contents: str) -> None:
    tensor = f'datatype: "{datatype}" shape: 0'
    check(
        opened,
        f"identity_{datatype.lower()}",
        f'inputs {{ name: "INPUT" {tensor} {contents} }}',
        f'outputs {{ name: "OUTPUT" {tensor} contents {{ }} }}',
    )


CLASSES_OF_2 = 'parameters { key: "classification" value { int64_param: 2 } }'

# (model, rest of the request, rest of the response)
ANSWERS = {
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
