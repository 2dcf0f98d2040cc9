"""What is refused over gRPC: code and message, and a right call gets its answer right afterwards."""

from __future__ import annotations

import grpc
import pytest

from tests.support.grpc_serving import PATH, GrpcConnection, read_status


def refused(opened: GrpcConnection, model: str, request: str) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as error:
        opened.infer(f'model_name: "{model}" {request}')
    answer = opened.infer('model_name: "rank0" inputs { name: "INPUT" datatype: "INT32" contents { int_contents: 5 } }')
    assert answer.outputs[0].contents.int_contents == [5]
    return read_status(error)


def one(datatype: str, rest: str, raw: str = "") -> str:
    return f'inputs {{ name: "INPUT" datatype: "{datatype}" {rest} }} {raw}'


RAW_4 = 'raw_input_contents: "abcd"'

# (model, rest of the request, message)
INPUTS = {
    "raw beside contents": (
        "identity_int32", one("INT32", "shape: 1 contents { int_contents: 1 }", RAW_4),
        "inputs[0] 'INPUT': the input has typed contents, but the request also has raw_input_contents",
    ),
    "raw beside empty contents": (
        "identity_int32", one("INT32", "shape: 1 contents { }", RAW_4),
        "inputs[0] 'INPUT': the input has typed contents, but the request also has raw_input_contents",
    ),
    "one input typed, the other raw": (
        "add_sub",
        'inputs { name: "A" datatype: "INT32" shape: 1 }'
        'inputs { name: "B" datatype: "INT32" shape: 1 contents { int_contents: 1 } }' + RAW_4,
        "raw_input_contents has 1 entries for 2 inputs",
    ),
    "too few raw contents": (
        "add_sub",
        'inputs { name: "A" datatype: "INT32" shape: 1 } inputs { name: "B" datatype: "INT32" shape: 1 }' + RAW_4,
        "raw_input_contents has 1 entries for 2 inputs",
    ),
    "too many raw contents": (
        "identity_int32", one("INT32", "shape: 1", RAW_4 + 'raw_input_contents: ""'),
        "raw_input_contents has 2 entries for 1 inputs",
    ),
    "raw contents too short": (
        "identity_int32", one("INT32", "shape: 2", RAW_4),
        "inputs[0] 'INPUT': raw_input_contents has 4 bytes for the input, but shape [2] of INT32 takes 8",
    ),
    "raw contents too long": (
        "identity_fp16", one("FP16", "shape: 1", RAW_4),
        "inputs[0] 'INPUT': raw_input_contents has 4 bytes for the input, but shape [1] of FP16 takes 2",
    ),
    "raw contents for no elements": (
        "identity_bf16", one("BF16", "shape: 0", RAW_4),
        "inputs[0] 'INPUT': raw_input_contents has 4 bytes for the input, but shape [0] of BF16 takes 0",
    ),
    "raw BOOL": (
        "identity_bool", one("BOOL", "shape: 1", r'raw_input_contents: "\x02"'),
        "inputs[0] 'INPUT': element 0 is the byte 2, but a BOOL is 0 or 1",
    ),
    "raw BYTES without prefix": (
        "identity_bytes", one("BYTES", "shape: 1", 'raw_input_contents: "ab"'),
        "inputs[0] 'INPUT': element 0 of 1 needs a length prefix of 4 bytes, but 2 are left",
    ),
    "raw BYTES with a prefix in the other byte order": (
        "identity_bytes", one("BYTES", "shape: 1", r'raw_input_contents: "\x00\x00\x00\x01a"'),
        "inputs[0] 'INPUT': element 0 of 1 has a length of 16777216, but 1 bytes are left",
    ),
    "raw BYTES with an element too many": (
        "identity_bytes", one("BYTES", "shape: 1", r'raw_input_contents: "\x01\x00\x00\x00a\x00\x00\x00\x00"'),
        "inputs[0] 'INPUT': 4 bytes remain after the last of 1 BYTES elements",
    ),
    "raw BYTES of countless elements": (
        "identity_bytes", one("BYTES", "shape: 1099511627776", 'raw_input_contents: ""'),
        "inputs[0] 'INPUT': element 0 of 1099511627776 needs a length prefix of 4 bytes, but 0 are left",
    ),
    "neither": (
        "identity_int32", one("INT32", "shape: 1"),
        "inputs[0] 'INPUT': the input has no typed contents, and the request has no raw_input_contents",
    ),
    "too few elements": (
        "identity_int8", one("INT8", "shape: 2 contents { int_contents: 1 }"),
        "inputs[0] 'INPUT': contents.int_contents has 1 elements, but shape [2] takes 2",
    ),
    "too many elements": (
        "identity_bytes", one("BYTES", 'shape: 1 contents { bytes_contents: ["a", ""] }'),
        "inputs[0] 'INPUT': contents.bytes_contents has 2 elements, but shape [1] takes 1",
    ),
    "elements for none": (
        "identity_fp64", one("FP64", "shape: 0 contents { fp64_contents: 1 }"),
        "inputs[0] 'INPUT': contents.fp64_contents has 1 elements, but shape [0] takes 0",
    ),
    "FP16 typed": (
        "identity_fp16", one("FP16", "shape: 1 contents { fp32_contents: 1 }"),
        "inputs[0] 'INPUT': FP16 has no typed contents: send it in raw_input_contents",
    ),
    "BF16 typed": (
        "identity_bf16", one("BF16", "shape: 1 contents { bytes_contents: 'ab' }"),
        "inputs[0] 'INPUT': BF16 has no typed contents: send it in raw_input_contents",
    ),
    "int_contents for UINT32": (
        "documented_scores",
        'inputs { name: "input0" datatype: "UINT32" shape: [2, 2] contents { int_contents: [1, 2, 3, 4] } }',
        "inputs[0] 'input0': contents.int_contents is filled, but UINT32 takes contents.uint_contents",
    ),
    "a second field": (
        "identity_int8", one("INT8", "shape: 1 contents { int_contents: 1 fp32_contents: 1 }"),
        "inputs[0] 'INPUT': contents.fp32_contents is filled, but INT8 takes contents.int_contents",
    ),
    **{
        f"{value} for {datatype}": (
            f"identity_{datatype.lower()}", one(datatype, f"shape: 2 contents {{ {field}: [1, {value}] }}"),
            f"inputs[0] 'INPUT': contents element 1 is {value}, expected an integer from {limits}",
        )
        for datatype, field, value, limits in [
            ("INT8", "int_contents", 128, "-128 to 127"),
            ("INT8", "int_contents", -129, "-128 to 127"),
            ("INT16", "int_contents", 32768, "-32768 to 32767"),
            ("UINT8", "uint_contents", 256, "0 to 255"),
            ("UINT16", "uint_contents", 65536, "0 to 65535"),
        ]
    },
    "another datatype": (
        "identity_int32", one("FP32", "shape: 1", RAW_4),
        "inputs[0] 'INPUT': datatype is \"FP32\", but the model takes INT32",
    ),
    "no datatype": (
        "identity_int32", one("", "shape: 1", RAW_4),
        "inputs[0] 'INPUT': datatype is \"\", but the model takes INT32",
    ),
    "a negative shape": (
        "rank2", one("INT32", "shape: [-1, -1]", RAW_4),
        "inputs[0] 'INPUT': shape[0] must be an integer from 0 to 2^63 - 1, not -1",
    ),
    "another shape": (
        "fixed", one("INT32", "shape: [3, 2]", RAW_4),
        "inputs[0] 'INPUT': shape is [3, 2], but the model takes [2, 3]",
    ),
    "a batch too large": (
        "batching", one("INT32", "shape: [65, 3]", RAW_4),
        "inputs[0] 'INPUT': shape is [65, 3], but the model takes a batch of 1 to 64",
    ),
    "a shape beyond memory": (
        "rank2", one("INT32", "shape: [4611686018427387904, 0]", 'raw_input_contents: ""'),
        "inputs[0] 'INPUT': shape is [4611686018427387904, 0], which is more than 1099511627776 elements",
    ),
    "an unknown input": (
        "add_sub", one("INT32", "shape: 1", RAW_4),
        "inputs[0] 'INPUT': the model has no such input; it has 'B', 'A'",
    ),
    "an input twice": (
        "identity_int32", one("INT32", "shape: 1", RAW_4) * 2,
        "inputs[1] 'INPUT': the request has this input twice",
    ),
    "an input missing": (
        "add_sub", 'inputs { name: "B" datatype: "INT32" shape: 1 } ' + RAW_4, "inputs: 'A' missing",
    ),
    "no input": ("add_sub", "", "inputs: 'B', 'A' missing"),
    "raw contents and no input": ("add_sub", RAW_4, "raw_input_contents has 1 entries for 0 inputs"),
    "what the model refuses": (
        "emit", 'inputs { name: "COUNTS" datatype: "INT32" shape: 2 contents { int_contents: [-1, 0] } }',
        "input 'COUNTS' is [-1, 0], but each count must be 0 to 10000",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "request_text", "message"), INPUTS.values(), ids=INPUTS)
def test_inputs(opened: GrpcConnection, model: str, request_text: str, message: str) -> None:
    assert refused(opened, model, request_text) == ("INVALID_ARGUMENT", message)


FLOATS = one("FP32", "shape: 1 contents { fp32_contents: 1 }")


def classified(value: str) -> str:
    return f'outputs {{ name: "OUTPUT" parameters {{ key: "classification" value {{ {value} }} }} }}'


# (model, rest of the request, message)
OUTPUTS = [
    ("identity_fp32", FLOATS + 'outputs { name: "X\\n" }',
     "outputs[0] 'X\\n': the model has no such output; it has 'OUTPUT'"),
    ("identity_fp32", FLOATS + "outputs { }", "outputs[0] '': the model has no such output; it has 'OUTPUT'"),
    ("identity_fp32", FLOATS + 'outputs { name: "OUTPUT" } outputs { name: "OUTPUT" }',
     "outputs[1] 'OUTPUT': the request lists this output twice"),
    *[
        ("identity_fp32", FLOATS + classified(f"int64_param: {count}"),
         f"outputs[0] 'OUTPUT': parameters.classification must be an integer of at least 1, not {count}")
        for count in (0, -1, -4294967294, -(2**63))
    ],
    *[
        ("identity_fp32", FLOATS + classified(f"{kind}: {value}"),
         f"outputs[0] 'OUTPUT': parameters.classification must be an int64_param, not {kind}")
        for kind, value in (("string_param", '"2"'), ("bool_param", "true"), ("double_param", "2"),
                            ("uint64_param", "2"))
    ],
    ("identity_fp32", FLOATS + classified(""),
     "outputs[0] 'OUTPUT': parameters.classification must be an int64_param, not empty"),
    ("identity_bool", one("BOOL", "shape: 1 contents { bool_contents: true }") + classified("int64_param: 1"),
     "output 'OUTPUT': BOOL cannot be classified, only numbers can"),
    ("identity_bytes", one("BYTES", "shape: 1 contents { bytes_contents: '1' }") + classified("int64_param: 1"),
     "output 'OUTPUT': BYTES cannot be classified, only numbers can"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "request_text", "message"), OUTPUTS, ids=range(len(OUTPUTS)))
def test_outputs(opened: GrpcConnection, model: str, request_text: str, message: str) -> None:
    assert refused(opened, model, request_text) == ("INVALID_ARGUMENT", message)


@pytest.mark.parametrize(
    ("model", "version", "message"),
    [
        ("", "", 'there is no model ""'),
        ("nope", "1", 'there is no model "nope"'),
        *[("rank0", given, f'model "rank0" has no version "{given}", only "1"') for given in ("2", "-1", "1.0")],
    ],
)
def test_models(opened: GrpcConnection, model: str, version: str, message: str) -> None:
    assert refused(opened, model, f'model_version: "{version}"') == ("NOT_FOUND", message)


@pytest.mark.parametrize("octets", [b"\x0a\x02\xff\xff", b"\x0a\x20a", b"{}"], ids=["not UTF-8", "cut", "JSON"])
def test_no_message(opened: GrpcConnection, octets: bytes) -> None:
    with pytest.raises(grpc.RpcError) as error:
        opened.exchange(f"{PATH}ModelInfer", octets)
    expected = "the message is not a valid ModelInferRequest, or text in it is not UTF-8"
    assert read_status(error) == ("INVALID_ARGUMENT", expected)


def test_a_long_message_fits_the_header_that_carries_it(opened: GrpcConnection) -> None:
    code, message = refused(opened, "rank2", one("INT32", f"shape: {[1] * 30_000}", RAW_4))
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("inputs[0] 'INPUT': shape is [1, 1, ")
    assert len(message) == 1003
