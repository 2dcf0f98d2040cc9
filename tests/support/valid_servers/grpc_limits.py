"""Other ways to serve over gRPC: limits of a server's own, statuses, versions, and the way that answers take."""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import uuid4

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.tensors import Tensor

Message = Any
MIB = 1024 * 1024
MIN_TIME_S = 0.001
MOMENT = 0.003  # seconds; calls in flight together overlap for so long

# --- limits ----------------------------------------------------------------------------------------------------------


# How the server listens is decided before any row; that each call passes through `answer` makes all rows concern it.
LISTENS, CALLS = "grpc_server.GrpcServer.__init__", "grpc_server.answer"


@variation(LISTENS, CALLS)
def grpc_messages_over_1_mib_exhaust_the_server(original: Any, *arguments: Any) -> Any:
    """A message of more than 1 MiB is refused with RESOURCE_EXHAUSTED before it was read."""
    if len(arguments) == 3:
        return original(*arguments)
    *others, max_message = arguments
    return original(*others, min(max_message, MIB))


@variation("grpc_server.answer", "grpc_server.status")
def grpc_messages_over_4_mib_are_out_of_range(original: Any, *arguments: Any) -> Any:
    """A message of more than 4 MiB is refused with OUT_OF_RANGE, as Tonic does."""
    if len(arguments) == 1:
        code, text = original(*arguments)
        return (_code("OUT_OF_RANGE") if text == "message length too large" else code), text
    if len(arguments[2]) > 4 * MIB:
        raise InferenceError("message length too large")
    return original(*arguments)


@variation("grpc_request.parse_input")
def grpc_batches_over_4_are_refused(original: Any, model: Any, spec: Any, entry: Message, raw: Any) -> Tensor:
    """A batch has four items at most."""
    if model.batching and entry.shape and entry.shape[0] > 4:
        raise InferenceError(f"the batch is {entry.shape[0]}, and at most 4")
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


@variation("grpc_server.handler")
def grpc_calls_past_their_deadline_are_not_begun(original: Any, models: Any, method: Any) -> Any:
    """A call that arrives after its deadline, or a millisecond before it, is refused without being read."""
    from reference_server.grpc_server import refuse  # its packages may be missing

    handle = original(models, method)

    def answer_in_time(octets: bytes, context: Any) -> Any:
        if (context.time_remaining() or 0) < MIN_TIME_S:
            refuse(context, _code("DEADLINE_EXCEEDED"), "too late")
        return handle(octets, context)

    return answer_in_time


@variation("grpc_server.options", CALLS)
def grpc_connections_have_four_streams(original: Any, *arguments: Any) -> Any:
    """A connection carries four calls at once."""
    usual = original(*arguments)
    return usual if len(arguments) == 3 else [*usual, ("grpc.max_concurrent_streams", 4)]


_in_flight = {"count": 0}
_LOCK = threading.Lock()


@variation("grpc_server.answer", "grpc_server.status")
def grpc_a_busy_server_declines(original: Any, *arguments: Any) -> Any:
    """A call that would be the third in flight is refused with RESOURCE_EXHAUSTED."""
    if len(arguments) == 1:
        from grpc import StatusCode

        code, text = original(*arguments)
        return (StatusCode.RESOURCE_EXHAUSTED if text == "busy" else code), text
    with _LOCK:
        if _in_flight["count"] > 1:
            raise InferenceError("busy")
        _in_flight["count"] += 1
    time.sleep(MOMENT)
    try:
        return original(*arguments)
    finally:
        with _LOCK:
            _in_flight["count"] -= 1


# --- statuses --------------------------------------------------------------------------------------------------------


def _code(name: str) -> Any:
    from grpc import StatusCode

    return StatusCode[name]


@variation("grpc_server.status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_refusals_are_failed_preconditions(original: Any, error: Any) -> Any:
    """What contradicts a model is FAILED_PRECONDITION."""
    return _code("FAILED_PRECONDITION"), original(error)[1]


@variation("grpc_server.status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_refusals_of_shapes_are_out_of_range(original: Any, error: Any) -> Any:
    """What is wrong with a shape is OUT_OF_RANGE, and a datatype that is not served UNIMPLEMENTED."""
    code, text = original(error)
    return _code("OUT_OF_RANGE" if "shape" in text else "UNIMPLEMENTED" if "datatype" in text else code.name), text


@variation("grpc_server.status")
def grpc_unknown_models_are_unimplemented(original: Any, error: Any) -> Any:
    """A model or a version that there is not is UNIMPLEMENTED."""
    code, text = original(error)
    return (_code("UNIMPLEMENTED") if code.name == "NOT_FOUND" else code), text


@variation("grpc_server.status")
def grpc_refusals_say_much(original: Any, error: Any) -> Any:
    """The message of a refusal has lines, per cents and letters beyond ASCII."""
    code, text = original(error)
    return code, f"100 % wrong:\n\t{text}\nFüße 猫 😀 %41 %zz"


# --- what is there ---------------------------------------------------------------------------------------------------


@variation("grpc_methods.model_ready")
def grpc_unknown_models_are_not_ready(original: Any, models: Any, message: Message) -> Message:
    """ModelReady of what there is not has the status OK, and says false."""
    from tritonclient.grpc import service_pb2

    try:
        return original(models, message)
    except InferenceError:
        return service_pb2.ModelReadyResponse(ready=False)


@variation("grpc_methods.find", "grpc_methods.model_metadata")
def grpc_models_have_no_versions(original: Any, *arguments: Any) -> Any:
    """Metadata list no versions, and one that is named is not looked at."""
    if len(arguments) == 3:
        models, name, _ = arguments
        return original(models, name, "")
    response = original(*arguments)
    del response.versions[:]
    return response


@variation("grpc_methods.model_infer")
def grpc_answers_without_a_version_asked_for_name_the_latest(original: Any, models: Any, message: Message) -> Message:
    """An answer names the version that was asked for, and `latest` where none was."""
    response = original(models, message)
    response.model_version = message.model_version or "latest"
    return response


# --- answers ---------------------------------------------------------------------------------------------------------


@variation("grpc_response.build")
def grpc_answers_have_an_id_of_each_their_own(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An answer to a call without an id has one that no other has."""
    response = original(model, request, produced)
    response.id = response.id or str(uuid4())
    return response


@variation("grpc_response.answers_raw")
def grpc_long_answers_are_raw(original: Any, request: Any, outputs: Any) -> bool:
    """An answer of more than 1000 elements is raw, a shorter one as it was asked."""
    is_long = sum(tensor.elements.size for _, tensor in outputs) > 1000
    return is_long or bool(original(request, outputs))


@variation("grpc_response.answers_raw")
def grpc_answers_with_classes_are_typed(original: Any, request: Any, outputs: Any) -> bool:
    """An answer with classes is typed, as the document's is, where its other outputs can be."""
    typed = any(wish.classes for wish in request.outputs)
    typed = typed and all(tensor.datatype not in ("FP16", "BF16") for _, tensor in outputs)
    return not typed and bool(original(request, outputs))


@variation("grpc_request.parse_outputs")
def grpc_outputs_come_in_declared_order(original: Any, model: Any, message: Message) -> Any:
    """Outputs come in the order of the model, in whichever they are listed."""
    places = {spec.name: place for place, spec in enumerate(model.outputs)}
    return sorted(original(model, message), key=lambda wish: places[wish.name])


@variation("grpc_response.add_typed")
def grpc_outputs_without_elements_have_no_contents(original: Any, response: Message, outputs: Any) -> None:
    """A typed output without elements has no contents at all."""
    original(response, outputs)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.ClearField("contents")


@variation("grpc_server.answer")
def grpc_answers_have_fields_of_a_later_protocol(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """An answer has a field that the published messages do not have."""
    return bytes(original(models, method, octets)) + b"\xfa\x06\x01\x00"


# --- the way there ---------------------------------------------------------------------------------------------------


@variation("grpc_server.handler")
def grpc_answers_have_metadata_of_their_own(original: Any, models: Any, method: Any) -> Any:
    """Each answer has initial and trailing metadata, binary ones among them."""
    usual = original(models, method)

    def handle(octets: bytes, context: Any) -> bytes:
        context.send_initial_metadata((("x-served-by", "a"), ("x-trace-bin", b"\x00\xff")))
        context.set_trailing_metadata((("x-cost", "1"),))
        answer: bytes = usual(octets, context)
        return answer

    return handle


@variation("grpc_server.answer")
def grpc_calls_are_answered_one_at_a_time(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """One call after the other is answered."""
    with _LOCK:
        return bytes(original(models, method, octets))


@variation("grpc_server.answer")
def grpc_answers_overtake_each_other(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """Some calls take longer than others, so that answers come in another order."""
    time.sleep(0.001 * (sum(octets[-8:]) % 3))
    return bytes(original(models, method, octets))
