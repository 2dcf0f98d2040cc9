"""Messages of gRPC, as the judge and the bundled server read them, held against protobuf's own reading."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError as NotAMessage

from conformance.spec import data_files as files
from conformance.wire import grpc_answer, parsed_call
from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_fields import scan_raw_spans
from conformance.wire.grpc_request import GRPC_METHOD, load_stubs
from reference_server import grpc_request
from reference_server.errors import InferenceError
from tests.fuzz.subjects.http_messages import MODELS, expect_cut, expect_equal, expect_shown

MAX_CASE_BYTES = 2048


def call(data: bytes) -> None:
    """Any call is taken apart, and its raw contents lie where protobuf sees them."""
    taken = parsed_call.parse(ClientRequest(GRPC_METHOD, "/ModelInfer", body=data))
    if taken is None:
        return
    entries = [data[start:end] for start, end in taken.entries]
    assert entries == list(taken.message.raw_input_contents)
    expect_shown(taken.findings, len(data))
    expect_cut(taken.inputs, 0, data)


def grpc_answers(data: bytes) -> None:
    """Any answer over gRPC is taken apart, and its raw contents lie where protobuf sees them."""
    taken = grpc_answer.parse(data)
    message = grpc_answer.parse_message(data)
    if message is None:
        return
    assert [data[start:end] for start, end in scan_raw_spans(data)] == list(message.raw_output_contents)
    expect_shown(taken.findings, len(data))
    expect_cut(taken.outputs, 0, data)


def both_grpc_decoders(data: bytes) -> None:
    """What the strict server accepts the judge finds nothing wrong with, and both read the same elements."""
    try:
        message = load_stubs().ModelInferRequest.FromString(data)
    except NotAMessage:
        return
    model = MODELS.get(message.model_name)
    taken = parsed_call.parse(ClientRequest(GRPC_METHOD, "/ModelInfer", body=data))
    if model is None or taken is None:
        return
    try:
        read = grpc_request.parse(model, message)
    except InferenceError:
        return
    assert not taken.findings
    for one in taken.inputs:
        assert one.array is not None
        assert one.shape == read.inputs[one.name].shape
        expect_equal(one.array, read.inputs[one.name].elements)


def calls() -> Iterator[bytes]:
    """Yield the golden calls."""
    for path in sorted(files.find_folder("fixtures").glob("grpc/*/request.bin")):
        if path.stat().st_size <= MAX_CASE_BYTES:
            yield path.read_bytes()


def answers() -> Iterator[bytes]:
    """Yield answers that echo the golden calls."""
    for data in calls():
        try:
            asked = load_stubs().ModelInferRequest.FromString(data)
        except NotAMessage:
            continue
        answer = load_stubs().ModelInferResponse(
            model_name=asked.model_name, raw_output_contents=asked.raw_input_contents
        )
        for entry in asked.inputs:
            output = answer.outputs.add(name=entry.name, datatype=entry.datatype, shape=entry.shape)
            output.contents.CopyFrom(entry.contents)
        yield answer.SerializeToString()
