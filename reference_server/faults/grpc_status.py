"""gRPC: what is not refused, with which status, and what a refusal leaves behind."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

Message = Any


@fault("grpc_request.parse_outputs", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_outputs_are_left_out(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """A listed output that the model does not have is left out of the answer."""
    names = [spec.name for spec in model.outputs]
    kept = [entry for entry in message.outputs if entry.name in names]
    del message.outputs[:]
    message.outputs.extend(kept)
    wishes: list[RequestedOutput] = original(model, message)
    return wishes


@fault("grpc_methods.find", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_models_are_the_first(original: Any, models: Any, name: str, version: str) -> Any:
    """A call that names no model of the server goes to one of them."""
    return original(models, name if name in models else "identity_int32", version)


@fault("grpc_request.parse_inputs", breaks="OIP-SIGNATURE/grpc")
def grpc_inputs_taken_by_position(original: Any, model: Any, message: Any) -> Any:
    """An input with an unknown name is taken for the next one that the model declares."""
    names = [spec.name for spec in model.inputs]
    free = [name for name in names if name not in {item.name for item in message.inputs}]
    for item in message.inputs:
        if item.name not in names and free:
            item.name = free.pop(0)
    return original(model, message)


@fault("grpc_request.parse_inputs", breaks="OIP-REFUSAL/grpc")
def grpc_missing_inputs_are_like_the_first(original: Any, model: Any, message: Message) -> Any:
    """An input that the request lacks is taken for a copy of its first one."""
    names = {entry.name for entry in message.inputs}
    if names and len(message.inputs) < len(model.inputs) and not message.raw_input_contents:
        for spec in model.inputs:
            if spec.name not in names:
                message.inputs.add().CopyFrom(message.inputs[0])
                message.inputs[-1].name = spec.name
    return original(model, message)


@fault("grpc_request.parse_input", breaks="OIP-SIGNATURE/grpc")
def grpc_shapes_are_not_compared_with_the_metadata(
    original: Any, model: Any, spec: Any, entry: Message, raw: Any
) -> Tensor:
    """A tensor of as many elements as the model takes may have any shape."""
    if spec.shape == (2, 3):
        entry.shape[:] = spec.shape
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


@fault("grpc_request.parse_inputs", breaks="OIP-SIGNATURE/grpc")
def grpc_further_inputs_are_ignored(original: Any, model: Any, message: Message) -> Any:
    """Inputs that the model does not have are ignored."""
    names = [spec.name for spec in model.inputs]
    if not message.raw_input_contents and len(message.inputs) > len(names):
        kept = [entry for entry in message.inputs if entry.name in names]
        del message.inputs[:]
        message.inputs.extend(kept)
    return original(model, message)


@fault("grpc_server.status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_errors_are_unknown(original: Any, error: Any) -> Any:
    """Every refusal has the status UNKNOWN, as that of an exception that nobody caught."""
    from grpc import StatusCode

    return StatusCode.UNKNOWN, original(error)[1]


@fault("grpc_server.status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_contents_are_refused_as_internal_errors(original: Any, error: Any) -> Any:
    """What is wrong with contents is an error of the server's codec, which is INTERNAL."""
    from grpc import StatusCode

    code, text = original(error)
    return (StatusCode.INTERNAL if "contents" in text else code), text


_refused = {"last": False}


@fault("grpc_server.status", "grpc_response.build", breaks="OIP-ALIVE/grpc")
def grpc_answer_after_a_refusal_is_empty(original: Any, *arguments: Any) -> Any:
    """The answer after a refused call is one without outputs, left from that call."""
    result = original(*arguments)
    if len(arguments) == 1:
        _refused["last"] = True
    elif _refused["last"]:
        _refused["last"] = False
        del result.outputs[:], result.raw_output_contents[:]
    return result


@fault("grpc_server.status", "grpc_server.answer", breaks="OIP-ALIVE/grpc")
def grpc_call_after_a_refusal_is_refused(original: Any, *arguments: Any) -> Any:
    """The call after a refused one is refused as well: an error is kept until it was sent twice."""
    if len(arguments) == 1:
        _refused["last"] = not _refused["last"]
        return original(*arguments)
    if _refused["last"]:
        raise InferenceError("the call before was refused")
    return original(*arguments)


_calls_lost: list[str] = []


@fault("grpc_server.answer", breaks="OIP-ALIVE-LEGAL/grpc")
def grpc_strings_that_are_to_be_ranked_end_the_model(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """A model that was asked for the classes of its strings has ended, and the next calls to it are lost."""
    if b"identity_bytes" in octets:
        if _calls_lost:
            raise InferenceError(_calls_lost.pop())
        if b"classification" in octets:
            _calls_lost.extend(["the model is not ready"] * 2)
    answer: bytes = original(models, method, octets)
    return answer
