"""Answers over gRPC: honest ones are what a protobuf library makes of the same fields, each wrong one is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tritonclient.grpc import service_pb2

from conformance.checks.client.answers import CALL_STYLES
from conformance.checks.client.wrong_answers import make_outputs
from conformance.checks.support.client_rows import make_small_inference, make_tensor
from conformance.clients.answers.errors import ERRORS
from conformance.clients.answers.honest_calls import CallStyle, encode_varint
from conformance.clients.answers.wrong_calls import UNENDED_CALLS, WRONG_CALLS
from conformance.wire import grpc_answer
from conformance.wire.client_request import ClientRequest
from conformance.wire.datatypes import OIP_DATATYPES
from conformance.wire.grpc_request import fill_contents
from conformance.wire.tensor import Tensor, find_first_difference

CALL = ClientRequest("GRPC", "/inference.GRPCInferenceService/ModelInfer")


def answered(style: CallStyle, *tensors: Tensor) -> bytes:
    return style(CALL, make_small_inference("call", id="id-7"), tensors).message


@pytest.mark.parametrize("form", ["raw", "typed"])
@pytest.mark.parametrize("datatype", OIP_DATATYPES)
def test_an_honest_answer_is_the_message_that_a_library_makes(datatype: str, form: Any) -> None:
    one = make_tensor("call", "OUT0", datatype, (2, 3))
    style = CallStyle(form=form)
    message = service_pb2.ModelInferResponse(
        model_name=make_small_inference("call").model, model_version="1", id="id-7"
    )
    entry = message.outputs.add(name="OUT0", datatype=datatype, shape=[2, 3])
    if form == "raw" or datatype == "FP16":
        message.raw_output_contents.append(bytes(one.to_bytes()))
    else:
        fill_contents(entry.contents, one)
    assert service_pb2.ModelInferResponse.FromString(answered(style, one)) == message


@pytest.mark.parametrize("name", CALL_STYLES)
def test_every_call_style_has_same_tensors(name: str) -> None:
    tensors = (
        *make_outputs("call"),
        make_tensor("call", "OUT2", "INT64", (2,)),
        make_tensor("call", "OUT3", "BOOL", (5,)),
    )
    taken = grpc_answer.parse(answered(CALL_STYLES[name], *tensors))
    assert taken.findings == ()
    for one in tensors:
        output = taken.output(one.name)
        assert output is not None
        assert output.array is not None
        assert output.shape == one.shape
        assert find_first_difference(one.array, output.array, one.datatype) is None


@pytest.mark.parametrize("name", [name for name in WRONG_CALLS if name != "typed-field-of-another-datatype"])
def test_a_wrong_answer_is_wrong(name: str) -> None:
    message = WRONG_CALLS[name](CALL, make_small_inference("call"), make_outputs("call")).message
    taken = grpc_answer.parse(message)
    assert taken.findings != () or taken.document is None


def test_contents_in_the_field_of_another_datatype_are_there() -> None:
    script = WRONG_CALLS["typed-field-of-another-datatype"]
    message = service_pb2.ModelInferResponse.FromString(
        script(CALL, make_small_inference("call"), make_outputs("call")).message
    )
    fields = [field.name for field, _ in message.outputs[0].contents.ListFields()]
    assert (message.outputs[0].datatype, fields) == ("INT32", ["fp32_contents"])


def test_errors_and_answers_that_never_come_say_so() -> None:
    for error in ERRORS.values():
        answer = error.answer_call(CALL, make_small_inference("call"), ())
        assert (answer.code, answer.details, answer.message) == (error.code, error.message, b"")
    assert UNENDED_CALLS["silent"](CALL, make_small_inference("call"), ()).is_silent
    assert UNENDED_CALLS["cancelled"](CALL, make_small_inference("call"), ()).is_cancelled
    assert UNENDED_CALLS["closed"](CALL, make_small_inference("call"), ()).is_closed


@pytest.mark.parametrize(
    ("value", "octets"),
    [(0, "00"), (127, "7f"), (128, "80 01"), (300, "ac 02"), (-1, "ff " * 9 + "01"), (2**64 - 1, "ff " * 9 + "01")],
)
def test_integers_are_written_in_groups_of_seven_bits(value: int, octets: str) -> None:
    assert encode_varint(value) == bytes.fromhex(octets)
