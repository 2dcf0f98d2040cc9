"""Other valid gRPC servers: limits, statuses, versions, metadata, and the order of answers."""

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
MOMENT = 0.003  # seconds for which concurrent calls overlap

# --- limits ----------------------------------------------------------------------------------------------------------


# The server takes its options before any row runs. `answer` is replaced as well, because every row passes through it.
LISTENS, CALLS = "grpc_server.GrpcServer.__init__", "grpc_server.answer"


@variation(LISTENS, CALLS)
def grpc_messages_over_1_mib_exhaust_the_server(original: Any, *arguments: Any) -> Any:
    """The server refuses a message of more than 1 MiB with RESOURCE_EXHAUSTED before reading the message."""
    if len(arguments) == 3:
        return original(*arguments)
    *others, max_message = arguments
    return original(*others, min(max_message, MIB))


@variation("grpc_server.answer", "grpc_server.get_status")
def grpc_messages_over_4_mib_are_out_of_range(original: Any, *arguments: Any) -> Any:
    """The server refuses a message of more than 4 MiB with OUT_OF_RANGE, as Tonic does."""
    if len(arguments) == 1:
        code, text = original(*arguments)
        return (_code("OUT_OF_RANGE") if text == "message length too large" else code), text
    if len(arguments[2]) > 4 * MIB:
        raise InferenceError("message length too large")
    return original(*arguments)


CALLS_PER_REFUSAL = 97
_calls: list[int] = [0]


@variation("grpc_server.answer", "grpc_server.get_status")
def grpc_calls_are_unavailable_now_and_then(original: Any, *arguments: Any) -> Any:
    """The server is busy at every 97th call, which it refuses with UNAVAILABLE."""
    if len(arguments) == 1:
        code, text = original(*arguments)
        return (_code("UNAVAILABLE") if text == "busy" else code), text
    _calls[0] += 1
    if _calls[0] % CALLS_PER_REFUSAL == 0:
        raise InferenceError("busy")
    return original(*arguments)


@variation("grpc_request.parse_input")
def grpc_batches_over_4_are_refused(original: Any, model: Any, spec: Any, entry: Message, raw: Any) -> Tensor:
    """The server refuses a batch of more than four items."""
    if model.batching and entry.shape and entry.shape[0] > 4:
        raise InferenceError(f"the batch is {entry.shape[0]}, and at most 4")
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


@variation("grpc_server.make_handler")
def grpc_calls_past_their_deadline_are_not_begun(original: Any, models: Any, method: Any) -> Any:
    """The server refuses a call that arrives less than a millisecond before its deadline, or after."""
    from reference_server.grpc_server import refuse  # its packages may be missing

    handle = original(models, method)

    def answer_in_time(octets: bytes, context: Any) -> Any:
        if (context.time_remaining() or 0) < MIN_TIME_S:
            refuse(context, _code("DEADLINE_EXCEEDED"), "too late")
        return handle(octets, context)

    return answer_in_time


@variation("grpc_server.make_options", CALLS)
def grpc_connections_have_four_streams(original: Any, *arguments: Any) -> Any:
    """The server accepts four concurrent calls on a connection."""
    usual = original(*arguments)
    return usual if len(arguments) == 3 else [*usual, ("grpc.max_concurrent_streams", 4)]


@variation("grpc_server.make_handler")
def grpc_java_clients_are_refused_by_name(original: Any, models: Any, method: Any) -> Any:
    """The server refuses clients that call themselves grpc-java with PERMISSION_DENIED."""
    from reference_server.grpc_server import refuse  # its packages may be missing

    handle = original(models, method)

    def answer_others(octets: bytes, context: Any) -> Any:
        if str(dict(context.invocation_metadata()).get("user-agent", "")).startswith("grpc-java"):
            refuse(context, _code("PERMISSION_DENIED"), "this client is not served")
        return handle(octets, context)

    return answer_others


_in_flight = {"count": 0}
_LOCK = threading.Lock()


@variation("grpc_server.answer", "grpc_server.get_status")
def grpc_a_busy_server_declines(original: Any, *arguments: Any) -> Any:
    """The server refuses the third of three concurrent calls with RESOURCE_EXHAUSTED."""
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


@variation("grpc_server.get_status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_refusals_are_failed_preconditions(original: Any, error: Any) -> Any:
    """The server refuses every invalid call with FAILED_PRECONDITION."""
    return _code("FAILED_PRECONDITION"), original(error)[1]


@variation("grpc_server.get_status", breaks="OIP-ERROR-STATUS/grpc")
def grpc_refusals_of_shapes_are_out_of_range(original: Any, error: Any) -> Any:
    """The server refuses a wrong shape with OUT_OF_RANGE, and a wrong datatype with UNIMPLEMENTED."""
    code, text = original(error)
    return _code("OUT_OF_RANGE" if "shape" in text else "UNIMPLEMENTED" if "datatype" in text else code.name), text


@variation("grpc_server.get_status")
def grpc_unknown_models_are_unimplemented(original: Any, error: Any) -> Any:
    """The server refuses an unknown model or version with UNIMPLEMENTED."""
    code, text = original(error)
    return (_code("UNIMPLEMENTED") if code.name == "NOT_FOUND" else code), text


@variation("grpc_server.get_status")
def grpc_refusals_say_much(original: Any, error: Any) -> Any:
    """The server writes line breaks, percent signs and non-ASCII characters into the messages of refusals."""
    code, text = original(error)
    return code, f"100 % wrong:\n\t{text}\nFüße 猫 😀 %41 %zz"


# --- models and versions ---------------------------------------------------------------------------------------------

OLDER = "0"


@variation("grpc_methods.model_ready")
def grpc_unknown_models_are_not_ready(original: Any, models: Any, message: Message) -> Message:
    """The server answers ModelReady for an unknown model with status OK and `ready: false`."""
    from tritonclient.grpc import service_pb2

    try:
        return original(models, message)
    except InferenceError:
        return service_pb2.ModelReadyResponse(ready=False)


@variation("grpc_methods.find_model", "grpc_methods.model_metadata")
def grpc_models_have_no_versions(original: Any, *arguments: Any) -> Any:
    """The model metadata list no versions, and the server ignores a requested version."""
    if len(arguments) == 3:
        models, name, _ = arguments
        return original(models, name, "")
    response = original(*arguments)
    del response.versions[:]
    return response


@variation("grpc_methods.model_infer")
def grpc_answers_without_a_version_asked_for_name_the_latest(original: Any, models: Any, message: Message) -> Message:
    """The server answers with the requested version, or with `latest` if the request names none."""
    response = original(models, message)
    response.model_version = message.model_version or "latest"
    return response


@variation("grpc_response.build")
def grpc_model_version_is_a_word(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server names the same version in every answer, by a word that the model metadata do not list."""
    response = original(model, request, produced)
    response.model_version = "1.0.3"
    return response


@variation("grpc_methods.model_metadata", "grpc_methods.model_ready")
def grpc_older_versions_are_not_loaded(original: Any, models: Any, message: Message) -> Message:
    """Each model has an older version, listed first, that is not ready and refuses calls."""
    is_older = message.version == OLDER
    message.version = "" if is_older else message.version
    answer = original(models, message)
    if hasattr(answer, "versions"):
        answer.versions[:] = [OLDER, "1"]
    else:
        answer.ready = not is_older
    return answer


@variation("grpc_methods.model_infer", surveyed=True)
def grpc_inference_without_a_version_is_refused(original: Any, models: Any, message: Message) -> Message:
    """The server refuses inference calls without a version."""
    if not message.model_version:
        raise InferenceError("which version?")
    return original(models, message)


@variation("grpc_methods.find_model", "grpc_methods.model_metadata")
def grpc_versions_have_aliases(original: Any, models: Any, *arguments: Any) -> Any:
    """The model metadata list `production` beside version 1, of which it is another name: answers name version 1."""
    if len(arguments) == 2:
        name, version = arguments
        return original(models, name, "1" if version == "production" else version)
    response = original(models, *arguments)
    response.versions.append("production")
    return response


@variation("grpc_methods.find_model")
def grpc_calls_without_a_name_concern_a_default_model(original: Any, models: Any, name: str, version: str) -> Any:
    """The server has a default model for calls without a name."""
    return original(models, name or next(iter(models)), version)


# --- answers ---------------------------------------------------------------------------------------------------------


@variation("grpc_response.build")
def grpc_answers_have_an_id_of_each_their_own(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server generates a unique id for the answer to a call without an id."""
    response = original(model, request, produced)
    response.id = response.id or str(uuid4())
    return response


@variation("grpc_response.is_raw_answer")
def grpc_long_answers_are_raw(original: Any, request: Any, outputs: Any) -> bool:
    """The server sends an answer of more than 1000 elements in raw contents."""
    is_long = sum(tensor.elements.size for _, tensor in outputs) > 1000
    return is_long or bool(original(request, outputs))


@variation("grpc_response.is_raw_answer")
def grpc_answers_with_classes_are_typed(original: Any, request: Any, outputs: Any) -> bool:
    """The server sends answers with classes in typed contents, unless an output has no typed form."""
    typed = any(wish.classes for wish in request.outputs)
    typed = typed and all(tensor.datatype not in ("FP16", "BF16") for _, tensor in outputs)
    return not typed and bool(original(request, outputs))


@variation("grpc_request.parse_outputs")
def grpc_outputs_come_in_declared_order(original: Any, model: Any, message: Message) -> Any:
    """The server sends outputs in the order in which the model declares them."""
    places = {spec.name: place for place, spec in enumerate(model.outputs)}
    return sorted(original(model, message), key=lambda wish: places[wish.name])


@variation("grpc_response.add_typed")
def grpc_outputs_without_elements_have_no_contents(original: Any, response: Message, outputs: Any) -> None:
    """The server sends typed outputs without elements without any contents."""
    original(response, outputs)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.ClearField("contents")


@variation("grpc_server.answer")
def grpc_answers_have_fields_of_a_later_protocol(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server adds a field to answers that the published messages do not have."""
    return bytes(original(models, method, octets)) + b"\xfa\x06\x01\x00"


# --- metadata and order of answers -----------------------------------------------------------------------------------


@variation("grpc_server.make_handler")
def grpc_answers_have_metadata_of_their_own(original: Any, models: Any, method: Any) -> Any:
    """The server adds initial and trailing metadata, text and binary, to each answer."""
    usual = original(models, method)

    def handle(octets: bytes, context: Any) -> bytes:
        context.send_initial_metadata((("x-served-by", "a"), ("x-trace-bin", b"\x00\xff")))
        context.set_trailing_metadata((("x-cost", "1"),))
        answer: bytes = usual(octets, context)
        return answer

    return handle


@variation("grpc_server.answer")
def grpc_calls_are_answered_one_at_a_time(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server answers one call at a time."""
    with _LOCK:
        return bytes(original(models, method, octets))


@variation("grpc_server.answer")
def grpc_answers_overtake_each_other(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server takes longer for some calls than for others, so answers come in another order."""
    time.sleep(0.001 * (sum(octets[-8:]) % 3))
    return bytes(original(models, method, octets))
