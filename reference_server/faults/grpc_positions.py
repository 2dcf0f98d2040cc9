"""gRPC: what is wrong in one place alone, by position, size, order or shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reference_server import grpc_contents
from reference_server.faults import fault
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Message = Any

# --- booleans --------------------------------------------------------------------------------------------------------


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_true_from_the_ninth_on_is_ff(original: Any, tensor: Tensor) -> bytes:
    """In raw contents true is FF from the ninth element on."""
    data: bytes = original(tensor)
    return data[:8] + data[8:].replace(b"\1", b"\xff") if tensor.datatype == "BOOL" else data


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW")
def grpc_raw_booleans_beyond_64_are_false(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """Raw booleans are kept as the bits of one word of 64."""
    tensor: Tensor = original(datatype, shape, data[:64].ljust(len(data), b"\0") if datatype == "BOOL" else data)
    return tensor


@fault("grpc_contents.typed_elements", breaks="GRPC-TYPED")
def grpc_typed_booleans_are_16_at_most(original: Any, datatype: str, field: str, values: Any) -> Any:
    """Typed booleans are kept as the bits of words of 16, of which the last is the sign and is lost."""
    elements = original(datatype, field, values)
    if datatype == "BOOL" and len(elements) > 15:
        elements[15::16] = False
    return elements


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_booleans_of_an_answer_repeat_after_8(original: Any, tensor: Tensor) -> dict[str, Any]:
    """Of the booleans of a typed answer the ninth is the first again, and so on."""
    contents: dict[str, Any] = original(tensor)
    if tensor.datatype == "BOOL" and tensor.elements.size > 8:
        values = contents["bool_contents"]
        return {"bool_contents": [values[k % 8] for k in range(len(values))]}
    return contents


# --- sizes -----------------------------------------------------------------------------------------------------------


@fault("grpc_response.add_raw", breaks="GRPC-ONE-FORM")
def grpc_raw_answers_over_16_kib_are_typed_too(original: Any, response: Message, outputs: Any) -> None:
    """An answer of more than 16 KiB in raw contents has typed contents as well."""
    original(response, outputs)
    if sum(map(len, response.raw_output_contents)) > 16 * 1024:
        for entry, (_, tensor) in zip(response.outputs, outputs, strict=True):
            if tensor.datatype in grpc_contents.FIELDS:
                for field, values in grpc_contents.encode_typed(tensor).items():
                    getattr(entry.contents, field).extend(values)


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW", large=True)
def grpc_raw_outputs_are_zeros_behind_3_mb(original: Any, tensor: Tensor) -> bytes:
    """What stands behind 3,000,000 bytes of a raw output is not sent, and read as zeros."""
    data: bytes = original(tensor)
    return data[:3_000_000].ljust(len(data), b"\0") if tensor.datatype != "BYTES" else data


@fault("grpc_contents.typed_elements", breaks="GRPC-TYPED", large=True)
def grpc_typed_elements_behind_524288_are_zeros(original: Any, datatype: str, field: str, values: Any) -> Any:
    """Typed contents are read through a buffer of 524,288 elements."""
    elements = original(datatype, field, values)
    if datatype != "BYTES":
        elements[524_288:] = 0
    return elements


# --- shapes ----------------------------------------------------------------------------------------------------------


@fault("grpc_response.build", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_dimensions_of_1_between_others_are_left_out(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An output of shape [n, 1, m] is answered as [n, m]."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if len(entry.shape) > 2:
            entry.shape[1:-1] = [size for size in entry.shape[1:-1] if size != 1]
    return response


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


@fault("grpc_response.build", breaks="GRPC-ORDER-O")
def grpc_raw_entries_of_a_list_in_declared_order(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """Raw entries stand in the order of the model, and outputs in that of the request."""
    response = original(model, request, produced)
    if response.raw_output_contents:
        declared = [spec.name for spec in model.outputs]
        by_name = dict(zip((entry.name for entry in response.outputs), list(response.raw_output_contents), strict=True))
        response.raw_output_contents[:] = [by_name[name] for name in declared if name in by_name]
    return response


@fault("grpc_response.add_raw", breaks="GRPC-ORDER-O")
def grpc_raw_answers_have_an_empty_entry_more(original: Any, response: Message, outputs: Any) -> None:
    """Behind the raw entries of several outputs stands one without bytes."""
    original(response, outputs)
    if len(outputs) > 1:
        response.raw_output_contents.append(b"")


@fault("grpc_response.add_typed", breaks="GRPC-TYPED")
def grpc_contents_of_the_second_output_are_dropped(original: Any, response: Message, outputs: Any) -> None:
    """Of a typed answer the contents of the second output are lost on the way."""
    original(response, outputs)
    if len(outputs) > 1 and np.issubdtype(outputs[1][1].elements.dtype, np.number):
        response.outputs[1].ClearField("contents")


# --- lists of outputs ------------------------------------------------------------------------------------------------


def _of_all(model: Any, wishes: list[RequestedOutput]) -> list[RequestedOutput]:
    listed = {wish.name for wish in wishes}
    return wishes + [RequestedOutput(spec.name, wishes[0].binary) for spec in model.outputs if spec.name not in listed]


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ONLY/grpc")
def grpc_raw_calls_that_list_two_get_all(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """A raw call that lists two of four outputs gets them all."""
    wishes: list[RequestedOutput] = original(model, message)
    return _of_all(model, wishes) if len(message.outputs) == 2 and message.raw_input_contents else wishes


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ONLY/grpc")
def grpc_listing_the_second_alone_gets_the_first_two(
    original: Any, model: Any, message: Message
) -> list[RequestedOutput]:
    """Outputs come from the first up to the last that is listed, where one of four is."""
    wishes: list[RequestedOutput] = original(model, message)
    names = [spec.name for spec in model.outputs]
    if len(names) < 4 or len(message.outputs) != 1:
        return wishes
    return [RequestedOutput(name, wishes[0].binary) for name in names[: names.index(wishes[0].name)]] + wishes


# --- classes of several outputs --------------------------------------------------------------------------------------


@fault("grpc_request.parse_outputs", breaks="CLS-PARAMETER/grpc")
def grpc_only_the_first_listed_output_is_classified(
    original: Any, model: Any, message: Message
) -> list[RequestedOutput]:
    """The parameter classification is lost but for the first listed output."""
    first, *others = original(model, message)
    return [first, *[replace(wish, classes=None) for wish in others]]


@fault("grpc_request.parse_outputs", breaks="CLS-PARAMETER/grpc")
def grpc_classified_outputs_share_the_first_count(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """Two classified outputs go by the number of the first."""
    wishes: list[RequestedOutput] = original(model, message)
    count = next((wish.classes for wish in wishes if wish.classes), None)
    return [replace(wish, classes=wish.classes and count) for wish in wishes]
