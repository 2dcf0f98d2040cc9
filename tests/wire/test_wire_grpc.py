"""gRPC messages, byte by byte: requests as they are written, and answers as they are read. The hex is by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.transport.exchange import Exchange, Reply
from conformance.wire.grpc_answer import parse
from conformance.wire.grpc_fields import scan_raw_spans
from conformance.wire.grpc_request import GRPC_METHOD, make_grpc_call, make_infer_message, parse_request
from conformance.wire.request import InferRequest, Input, Names, RequestedOutput
from conformance.wire.tensor import Tensor


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


def length(data: bytes) -> bytes:
    """Return data behind its length, which is short here."""
    assert len(data) < 128
    return bytes([len(data)]) + data


def field(number: int, data: bytes) -> bytes:
    """Return a field that has its length in front."""
    return bytes([number << 3 | 2]) + length(data)


def tensor(name: str, datatype: str, shape: str, contents: bytes = b"") -> bytes:
    """Return an InferInputTensor or InferOutputTensor: they have the same numbers."""
    return (
        field(1, name.encode())
        + field(2, datatype.encode())
        + (field(3, octets(shape)) if shape else b"")
        + (field(5, contents) if contents else b"")
    )


# --- requests -------------------------------------------------------------------------------------------------------

# datatype, elements, number of the field, what it holds
TYPED = [
    ("BOOL", [True, False], field(1, octets("01 00"))),
    ("INT8", [1, -1], field(2, octets("01 ff ff ff ff ff ff ff ff ff 01"))),
    ("INT16", [300], field(2, octets("ac 02"))),
    ("INT32", [2], field(2, octets("02"))),
    ("INT64", [2**40], field(3, octets("80 80 80 80 80 20"))),
    ("UINT8", [255], field(4, octets("ff 01"))),
    ("UINT16", [3], field(4, octets("03"))),
    ("UINT32", [2**32 - 1], field(4, octets("ff ff ff ff 0f"))),
    ("UINT64", [2**64 - 1], field(5, octets("ff ff ff ff ff ff ff ff ff 01"))),
    ("FP32", [1.5], field(6, octets("00 00 c0 3f"))),
    ("FP64", [-2.0], field(7, octets("00 00 00 00 00 00 00 c0"))),
    ("BYTES", [b"a", b""], field(8, b"a") + field(8, b"")),
]


@pytest.mark.parametrize(("datatype", "values", "contents"), TYPED, ids=[row[0] for row in TYPED])
def test_typed_contents(datatype: str, values: list[Any], contents: bytes) -> None:
    request = InferRequest("", (Input(Tensor.from_values("X", datatype, values), binary=False),), model="m")
    message = make_infer_message(request)
    assert message.body == field(1, b"m") + field(5, tensor("X", datatype, f"{len(values):02x}", contents))
    assert (message.method, message.path) == (GRPC_METHOD, "/inference.GRPCInferenceService/ModelInfer")


def test_raw_contents_are_in_the_order_of_the_inputs() -> None:
    inputs = (Input(Tensor.from_values("B", "INT16", [258])), Input(Tensor.from_values("A", "BYTES", ["ab"])))
    message = make_infer_message(InferRequest("", inputs, model="m", version="3", id="i"))
    assert message.body == (
        field(1, b"m")
        + field(2, b"3")
        + field(3, b"i")
        + field(5, tensor("B", "INT16", "01"))
        + field(5, tensor("A", "BYTES", "01"))
        + field(7, octets("02 01"))
        + field(7, octets("02 00 00 00 61 62"))
    )


def test_outputs_with_the_servers_names_and_a_count() -> None:
    outputs = (RequestedOutput("OUT", classification=2), RequestedOutput("REST", binary_data=True))
    names = Names({"IN": "in"}, {"OUT": "out"})
    request = InferRequest("", (Input(Tensor.from_values("IN", "INT8", [1])),), outputs, model="m", names=names)
    parameter = field(1, b"classification") + field(2, octets("10 02"))
    assert make_infer_message(request).body == (
        field(1, b"m")
        + field(5, tensor("in", "INT8", "01"))
        + field(6, field(1, b"out") + field(2, parameter))
        + field(6, field(1, b"REST"))
        + field(7, octets("01"))
    )
    assert make_infer_message(request).names == {"out": "OUT"}


def test_empty_tensor_has_empty_contents() -> None:
    message = make_infer_message(
        InferRequest("", (Input(Tensor.from_values("X", "INT8", []), binary=False),), model="m")
    )
    assert message.body == field(1, b"m") + field(5, tensor("X", "INT8", "00") + octets("2a 00"))


def test_grpc_call_is_encoded_and_parsed() -> None:
    message = make_grpc_call("ModelReady", name="m")
    assert message.body == field(1, b"m")
    asked = parse_request(message)
    assert asked is not None
    assert asked.name == "m"
    assert parse_request(message.with_body(b"\xff")) is None


# --- answers --------------------------------------------------------------------------------------------------------


def test_an_answer_in_raw_contents() -> None:
    first, second = octets("01 00 00 00 02 00 00 00"), octets("01 00 00 00 61")
    head = field(1, b"m") + field(3, b"i") + field(5, tensor("A", "INT32", "02")) + field(5, tensor("B", "BYTES", "01"))
    body = head + field(6, first) + field(6, second)
    answer = parse(body)
    one, other = answer.outputs
    assert (one.name, one.datatype, one.shape, one.binary, other.shape) == ("A", "INT32", (2,), True, (1,))
    assert one.span == (len(head) + 2, len(head) + 10)
    assert one.array is not None
    assert one.array.tolist() == [1, 2]
    assert other.array is not None
    assert other.array.tolist() == [b"a"]
    assert list(scan_raw_spans(body)) == [one.span, other.span]
    assert answer.document is not None
    assert answer.document["id"] == "i"


@pytest.mark.parametrize(("datatype", "values", "contents"), TYPED, ids=[row[0] for row in TYPED])
def test_an_answer_in_typed_contents(datatype: str, values: list[Any], contents: bytes) -> None:
    (output,) = parse(field(5, tensor("A", datatype, f"{len(values):02x}", contents))).outputs
    assert (output.binary, output.span, output.findings) == (False, None, ())
    assert output.array is not None
    assert output.array.tolist() == values


@pytest.mark.parametrize(
    ("body", "kinds", "elements"),
    [
        (field(5, tensor("A", "INT32", "02", field(2, octets("01")))), ["data-count"], None),
        (field(5, tensor("A", "INT32", "02")), ["data-count"], None),
        (field(5, tensor("A", "INT32", "01")) + field(6, octets("01 00 00")), ["size-mismatch"], None),
        (field(5, tensor("A", "BYTES", "01")) + field(6, octets("02 00 00 00 61")), ["bytes-past-end"], None),
        (field(5, tensor("A", "INT8", "01", field(2, octets("ac 02")))), [], None),
        (field(5, tensor("A", "STRING", "01", field(8, b"a"))), [], None),
        (field(5, tensor("A", "INT32", "ff ff ff ff ff ff ff ff ff 01")), [], None),
        (field(5, tensor("A", "UINT32", "01", field(2, octets("05")))), [], [5]),
        (field(5, tensor("A", "INT32", "00")), [], []),
        (field(5, tensor("A", "INT32", "00")) + field(6, b""), [], []),
        (octets("ff ff"), [], None),
        (b"", [], None),
    ],
)
def test_each_fault_of_a_grpc_answer_is_a_finding(body: bytes, kinds: list[str], elements: list[int] | None) -> None:
    answer = parse(body)
    assert [finding.kind for finding in answer.findings] == kinds
    arrays = [output.array for output in answer.outputs]
    assert [array.tolist() for array in arrays if array is not None] == ([] if elements is None else [elements])


def test_raw_entries_that_are_too_few_are_for_outputs_without_contents() -> None:
    typed = field(5, tensor("A", "INT8", "01", field(2, octets("07"))))
    answer = parse(typed + field(5, tensor("B", "INT8", "01")) + field(6, octets("09")))
    assert [output.array.tolist() for output in answer.outputs if output.array is not None] == [[7], [9]]


def test_fields_that_are_not_known_are_passed_over() -> None:
    unknown = octets("50 96 01") + octets("59 0102030405060708") + octets("65 01020304")
    body = field(5, tensor("A", "FP32", "01")) + unknown + field(6, np.float32(2.5).tobytes())
    (output,) = parse(body).outputs
    assert output.array is not None
    assert output.array.tolist() == [2.5]


def test_raw_contents_in_unknown_group_are_ignored() -> None:
    group = octets("9b 06") + field(6, b"in a group") + octets("9c 06")  # field 99, which no message has
    body = field(6, b"a") + group + field(6, b"b")
    assert [body[start:end] for start, end in scan_raw_spans(body)] == [b"a", b"b"]


def test_raw_contents_of_wrong_wire_type_are_ignored() -> None:
    fixed = octets("31 00 01 02 03 04 05 06 07") + octets("35 00 01 02 03") + octets("30 01")  # 6, of three other types
    body = field(6, b"a") + fixed + field(6, b"b")
    assert [body[start:end] for start, end in scan_raw_spans(body)] == [b"a", b"b"]


MODEL_METADATA = b"\x0a\x01m\x12\x011\x22\x0e\x0a\x02IN\x12\x05INT32\x1a\x01\x03"  # name, versions, one input


def test_metadata_are_a_document() -> None:
    assert parse(MODEL_METADATA, "ModelMetadata").document == {
        "name": "m",
        "versions": ["1"],
        "platform": "",
        "inputs": [{"name": "IN", "datatype": "INT32", "shape": [3]}],
        "outputs": [],
    }


def test_no_bytes_are_a_document_of_default_values() -> None:
    assert parse(b"", "ModelReady").document == {"ready": False}


def test_maps_and_floats_of_an_answer_are_read() -> None:
    parameter = field(1, b"a") + field(2, field(1, b"b"))
    document = parse(field(1, field(14, parameter)), "ModelConfig").document
    assert document is not None
    assert document["config"]["parameters"] == {"a": {"string_value": "b"}}
    options = field(2, field(1, octets("00 00 00 00 00 00 f8 3f")))
    document = parse(field(1, octets("d2 01") + length(field(1, options))), "ModelConfig").document
    assert document is not None
    assert document["config"]["model_metrics"]["metric_control"][0]["histogram_options"] == {"buckets": [1.5]}


@pytest.mark.parametrize(("method", "body"), [("NoSuchMethod", b""), ("ServerLive", b"\xff")])
def test_an_unknown_method_and_invalid_bytes_have_no_document(method: str, body: bytes) -> None:
    assert parse(body, method).document is None


@pytest.mark.parametrize(("status", "document"), [(200, {"ready": False}), (404, None)])
def test_a_refusal_of_health_has_no_document(status: int, document: Any) -> None:
    call = make_grpc_call("ModelReady", name="m")
    assert Reply(Exchange(1, call, call.path, status)).answer.document == document
