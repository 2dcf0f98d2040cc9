"""gRPC: what is wrong in one place alone, by position, size, order or shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reference_server.faults import fault
from reference_server.tensors import Tensor

Message = Any

# --- booleans --------------------------------------------------------------------------------------------------------


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_true_from_the_ninth_on_is_ff(original: Any, tensor: Tensor) -> bytes:
    """In raw contents true is FF from the ninth element on."""
    data: bytes = original(tensor)
    return data[:8] + data[8:].replace(b"\1", b"\xff") if tensor.datatype == "BOOL" else data


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_booleans_of_an_answer_repeat_after_8(original: Any, tensor: Tensor) -> dict[str, Any]:
    """Of the booleans of a typed answer the ninth is the first again, and so on."""
    contents: dict[str, Any] = original(tensor)
    if tensor.datatype == "BOOL" and tensor.elements.size > 8:
        values = contents["bool_contents"]
        return {"bool_contents": [values[k % 8] for k in range(len(values))]}
    return contents


# --- sizes -----------------------------------------------------------------------------------------------------------


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW", large=True)
def grpc_raw_outputs_are_zeros_behind_3_mb(original: Any, tensor: Tensor) -> bytes:
    """What stands behind 3,000,000 bytes of a raw output is not sent, and read as zeros."""
    data: bytes = original(tensor)
    return data[:3_000_000].ljust(len(data), b"\0") if tensor.datatype != "BYTES" else data


# --- shapes ----------------------------------------------------------------------------------------------------------


@fault("grpc_response.build", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_outputs_without_elements_have_one_dimension(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An output of shape [0, k] is answered as [0]."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.shape[:] = [0]
    return response


@fault("grpc_request.parse_inputs", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_third_items_are_the_second(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """Of a batch two items are kept, and the second stands for all that follow."""
    found: dict[str, Tensor] = original(model, message)
    if not model.batching:
        return found
    return {name: _of_two(tensor) for name, tensor in found.items()}


def _of_two(tensor: Tensor) -> Tensor:
    items = tensor.elements.reshape(tensor.shape).copy()
    items[2:] = items[1:2]
    return replace(tensor, elements=items.reshape(-1))


# --- order -----------------------------------------------------------------------------------------------------------


@fault("grpc_request.parse_inputs", breaks="GRPC-INPUT-BY-NAME")
def grpc_typed_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """Typed inputs are taken in the order of the model, whatever they are called, where their datatypes fit."""
    fits = [entry.datatype for entry in message.inputs] == [spec.datatype for spec in model.inputs]
    known = {entry.name for entry in message.inputs} == {spec.name for spec in model.inputs}
    if fits and known and not message.raw_input_contents:
        for entry, spec in zip(message.inputs, model.inputs, strict=True):
            entry.name = spec.name
    return original(model, message)
