"""gRPC: what is not refused, with which status, and what a refusal leaves behind."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault

Message = Any


@fault("grpc_request.parse_inputs", breaks="OIP-SIGNATURE/grpc")
def grpc_inputs_taken_by_position(original: Any, model: Any, message: Any) -> Any:
    """An input with an unknown name is taken for the next one that the model declares."""
    names = [spec.name for spec in model.inputs]
    free = [name for name in names if name not in {item.name for item in message.inputs}]
    for item in message.inputs:
        if item.name not in names and free:
            item.name = free.pop(0)
    return original(model, message)


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
