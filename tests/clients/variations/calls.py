"""Clients that call over gRPC in another way."""

from __future__ import annotations

from tests.clients import steps
from tests.clients.alterations import Original, variation
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, CallerResult, UnsupportedError
from tests.clients.honest.grpc_client import GrpcClient
from tests.clients.honest.protobuf import integer, message, text

raw_contents_alone = steps.CALL_REQUEST.fail(
    "", UnsupportedError("typed contents"), when=lambda asked: any(not tensor.is_binary for tensor in asked.inputs)
).says("A call always has raw contents; the client says that it cannot send typed ones.")
typed_contents_alone = steps.CALL_REQUEST.fail(
    "", UnsupportedError("raw contents"), when=lambda asked: any(tensor.is_binary for tensor in asked.inputs)
).says("A call always has typed contents; the client says that it cannot send raw ones.")


@variation("grpc_request.request")
def fields_in_reverse(_original: Original, asked: CallerRequest) -> bytes:
    """The fields of a call come in another order."""
    made = bytes(_original(CallerRequest(**{**vars(asked), "id": None})))
    return text(3, asked.id or "") + made


shape_not_packed = steps.SHAPE.instead("", lambda sizes: b"".join(integer(3, size) for size in sizes)).says(
    "The sizes of a shape are not packed."
)
integers_not_packed = steps.CONTENTS.instead(
    "",
    lambda tensor: b"".join(integer(2, one) for one in tensors.elements(tensor.datatype, tensor.data)),
    datatypes="INT8 INT16 INT32",
).says("Typed contents of integers are not packed.")
parameters_of_its_own_in_calls = steps.CALL_REQUEST.after(
    "", lambda made: made + message(4, text(1, "priority") + message(2, integer(2, 1))) + message(1000, b"own")
).says("A call has parameters and fields that no document defines.")
id_of_its_own_in_calls = steps.CALL_REQUEST.after(
    "", lambda made, asked: made + (text(3, "own-1") if asked.id is None else b"")
).says("Where the caller gives no id, the client does.")
binary_data_in_calls = steps.CALL_OUTPUT.after(
    "", lambda said: said + message(2, text(1, "binary_data") + message(2, integer(1, 1)))
).says("An output that a call asks for has the parameter `binary_data`, as one client sends it.")


@variation("grpc_request.request")
def inputs_sorted_in_calls(original: Original, asked: CallerRequest) -> bytes:
    """The inputs of a call are in the order of their names, with their contents."""
    inputs = tuple(sorted(asked.inputs, key=lambda tensor: tensor.name))
    return bytes(original(CallerRequest(**{**vars(asked), "inputs": inputs})))


@variation("grpc_client.GrpcClient.infer")
def channel_of_its_own_each_time(
    original: Original, client: GrpcClient, asked: CallerRequest, timeout: float
) -> CallerResult:
    """Every call has a channel of its own."""
    fresh = type(client)(vars(client)["address"])
    try:
        given: CallerResult = original(fresh, asked, timeout)
    finally:
        fresh.close()
    return given


gzip_calls = steps.CALL.before("", coding=lambda coding: coding or "gzip").says("Every call is compressed.")
