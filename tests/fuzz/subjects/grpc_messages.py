"""Messages of gRPC, as the judge and the bundled server read them, held against protobuf's own reading."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError as NotAMessage

from conformance.terms import data as files
from conformance.wire import grpc_answer, taken_apart_call
from conformance.wire.grpc_fields import raw_spans
from conformance.wire.grpc_request import GRPC_METHOD, stubs
from conformance.wire.received import Received
from reference_server import grpc_request
from reference_server.errors import InferenceError
from tests.fuzz.subjects.http_messages import MODELS, are_cut, are_equal, are_shown

LARGEST_CASE = 2048


def call(data: bytes) -> None:
    """Any call is taken apart, and its raw contents lie where protobuf sees them."""
    taken = taken_apart_call.take_apart(Received(GRPC_METHOD, "/ModelInfer", body=data))
    if taken is None:
        return
    entries = [data[start:end] for start, end in taken.entries]
    assert entries == list(taken.message.raw_input_contents)
    are_shown(taken.findings, len(data))
    are_cut(taken.inputs, 0, data)


def grpc_answers(data: bytes) -> None:
    """Any answer over gRPC is taken apart, and its raw contents lie where protobuf sees them."""
    taken = grpc_answer.take_apart(data)
    message = grpc_answer.response(data)
    if message is None:
        return
    assert [data[start:end] for start, end in raw_spans(data)] == list(message.raw_output_contents)
    are_shown(taken.findings, len(data))
    are_cut(taken.outputs, 0, data)


def both_grpc_decoders(data: bytes) -> None:
    """What the strict server accepts the judge finds nothing wrong with, and both read the same elements."""
    try:
        message = stubs().ModelInferRequest.FromString(data)
    except NotAMessage:
        return
    model = MODELS.get(message.model_name)
    taken = taken_apart_call.take_apart(Received(GRPC_METHOD, "/ModelInfer", body=data))
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
        are_equal(one.array, read.inputs[one.name].elements)


def calls() -> Iterator[bytes]:
    """Yield the golden calls."""
    for path in sorted(files.folder("fixtures").glob("grpc/*/request.bin")):
        if path.stat().st_size <= LARGEST_CASE:
            yield path.read_bytes()


def answers() -> Iterator[bytes]:
    """Yield answers that echo the golden calls."""
    for data in calls():
        try:
            asked = stubs().ModelInferRequest.FromString(data)
        except NotAMessage:
            continue
        answer = stubs().ModelInferResponse(model_name=asked.model_name, raw_output_contents=asked.raw_input_contents)
        for entry in asked.inputs:
            output = answer.outputs.add(name=entry.name, datatype=entry.datatype, shape=entry.shape)
            output.contents.CopyFrom(entry.contents)
        yield answer.SerializeToString()
