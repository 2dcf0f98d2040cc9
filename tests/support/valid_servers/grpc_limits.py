"""Other valid gRPC servers: limits, statuses, versions, metadata, and the order of answers."""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import uuid4

from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.families import Function
from reference_server.faults.grpc_frame import set_field

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


@variation(steps.ANSWER_CALL, steps.GET_STATUS)
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


@variation(steps.ANSWER_CALL, steps.GET_STATUS)
def grpc_calls_are_unavailable_now_and_then(original: Any, *arguments: Any) -> Any:
    """The server is busy at every 97th call, which it refuses with UNAVAILABLE."""
    if len(arguments) == 1:
        code, text = original(*arguments)
        return (_code("UNAVAILABLE") if text == "busy" else code), text
    _calls[0] += 1
    if _calls[0] % CALLS_PER_REFUSAL == 0:
        raise InferenceError("busy")
    return original(*arguments)


grpc_batches_over_4_are_refused = steps.PARSE_CALL_INPUT.refuse(
    when=lambda model, entry: model.batching and entry.shape[:1] > [4]
).says("The server refuses a batch of more than four items.")


@variation(steps.MAKE_HANDLER)
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


@variation(steps.MAKE_HANDLER)
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


@variation(steps.ANSWER_CALL, steps.GET_STATUS)
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


def replace_status(choose: Function, breaks: str = "") -> Fault:
    """Return a server that refuses with the code that `choose` returns for the usual code's name and the message."""
    return steps.GET_STATUS.after(breaks or (), lambda status: (_code(choose(status[0].name, status[1])), status[1]))


grpc_refusals_are_failed_preconditions = replace_status(
    lambda _name, _text: "FAILED_PRECONDITION", "OIP-ERROR-STATUS/grpc"
).says("The server refuses every invalid call with FAILED_PRECONDITION.")
grpc_refusals_of_shapes_are_out_of_range = replace_status(
    lambda name, text: "OUT_OF_RANGE" if "shape" in text else "UNIMPLEMENTED" if "datatype" in text else name,
    "OIP-ERROR-STATUS/grpc",
).says("The server refuses a wrong shape with OUT_OF_RANGE, and a wrong datatype with UNIMPLEMENTED.")
grpc_unknown_models_are_unimplemented = replace_status(
    lambda name, _text: "UNIMPLEMENTED" if name == "NOT_FOUND" else name
).says("The server refuses an unknown model or version with UNIMPLEMENTED.")
grpc_refusals_say_much = steps.GET_STATUS.after(
    (), lambda status: (status[0], f"100 % wrong:\n\t{status[1]}\nFüße 猫 😀 %41 %zz")
).says("The server writes line breaks, percent signs and non-ASCII characters into the messages of refusals.")

# --- models and versions ---------------------------------------------------------------------------------------------

OLDER = "0"


@variation(steps.CALL_MODEL_READY)
def grpc_unknown_models_are_not_ready(original: Any, models: Any, message: Message) -> Message:
    """The server answers ModelReady for an unknown model with status OK and `ready: false`."""
    from tritonclient.grpc import service_pb2

    try:
        return original(models, message)
    except InferenceError:
        return service_pb2.ModelReadyResponse(ready=False)


@variation(steps.FIND_CALLED_MODEL, steps.CALL_MODEL_METADATA)
def grpc_models_have_no_versions(original: Any, *arguments: Any) -> Any:
    """The model metadata list no versions, and the server ignores a requested version."""
    if len(arguments) == 3:
        models, name, _ = arguments
        return original(models, name, "")
    response = original(*arguments)
    del response.versions[:]
    return response


@variation(steps.MODEL_INFER)
def grpc_answers_without_a_version_asked_for_name_the_latest(original: Any, models: Any, message: Message) -> Message:
    """The server answers with the requested version, or with `latest` if the request names none."""
    response = original(models, message)
    response.model_version = message.model_version or "latest"
    return response


grpc_model_version_is_a_word = steps.BUILD_RESPONSE.after((), set_field("model_version", "1.0.3")).says(
    "The server names the same version in every answer, by a word that the model metadata do not list."
)


@variation(steps.CALL_MODEL_METADATA, steps.CALL_MODEL_READY)
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


grpc_inference_without_a_version_is_refused = steps.MODEL_INFER.refuse(
    when=lambda message: not message.model_version, in_discovery=True
).says("The server refuses inference calls without a version.")


@variation(steps.FIND_CALLED_MODEL, steps.CALL_MODEL_METADATA)
def grpc_versions_have_aliases(original: Any, models: Any, *arguments: Any) -> Any:
    """The model metadata list `production` beside version 1, of which it is another name: answers name version 1."""
    if len(arguments) == 2:
        name, version = arguments
        return original(models, name, "1" if version == "production" else version)
    response = original(models, *arguments)
    response.versions.append("production")
    return response


grpc_calls_without_a_name_concern_a_default_model = steps.FIND_CALLED_MODEL.before(
    (), name=lambda name, models: name or next(iter(models))
).says("The server has a default model for calls without a name.")

# --- answers ---------------------------------------------------------------------------------------------------------


def _generate_id(response: Message) -> Message:
    response.id = response.id or str(uuid4())
    return response


def _count_elements(outputs: Any) -> int:
    return sum(tensor.elements.size for _, tensor in outputs)


def _can_be_typed(outputs: Any) -> bool:
    return all(tensor.datatype not in ("FP16", "BF16") for _, tensor in outputs)


def _sort_as_declared(requested: Any, model: Any) -> Any:
    places = {spec.name: place for place, spec in enumerate(model.outputs)}
    return sorted(requested, key=lambda output: places[output.name])


grpc_answers_have_an_id_of_each_their_own = steps.BUILD_RESPONSE.after((), _generate_id).says(
    "The server generates a unique id for the answer to a call without an id."
)
grpc_long_answers_are_raw = steps.IS_RAW_ANSWER.instead(
    (), lambda: True, when=lambda outputs: _count_elements(outputs) > 1000
).says("The server sends an answer of more than 1000 elements in raw contents.")
grpc_answers_with_classes_are_typed = steps.IS_RAW_ANSWER.instead(
    (),
    lambda: False,
    when=lambda request, outputs: any(output.classes for output in request.outputs) and _can_be_typed(outputs),
).says("The server sends answers with classes in typed contents, unless an output has no typed form.")
grpc_outputs_come_in_declared_order = steps.PARSE_CALL_OUTPUTS.after((), _sort_as_declared).says(
    "The server sends outputs in the order in which the model declares them."
)


@variation("grpc_response.add_typed")
def grpc_outputs_without_elements_have_no_contents(original: Any, response: Message, outputs: Any) -> None:
    """The server sends typed outputs without elements without any contents."""
    original(response, outputs)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.ClearField("contents")


grpc_answers_have_fields_of_a_later_protocol = steps.ANSWER_CALL.after(
    (), lambda octets: octets + b"\xfa\x06\x01\x00"
).says("The server adds a field to answers that the published messages do not have.")

# --- metadata and order of answers -----------------------------------------------------------------------------------


@variation(steps.MAKE_HANDLER)
def grpc_answers_have_metadata_of_their_own(original: Any, models: Any, method: Any) -> Any:
    """The server adds initial and trailing metadata, text and binary, to each answer."""
    usual = original(models, method)

    def handle(octets: bytes, context: Any) -> bytes:
        context.send_initial_metadata((("x-served-by", "a"), ("x-trace-bin", b"\x00\xff")))
        context.set_trailing_metadata((("x-cost", "1"),))
        answer: bytes = usual(octets, context)
        return answer

    return handle


@variation(steps.ANSWER_CALL)
def grpc_calls_are_answered_one_at_a_time(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server answers one call at a time."""
    with _LOCK:
        return bytes(original(models, method, octets))


@variation(steps.ANSWER_CALL)
def grpc_answers_overtake_each_other(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server takes longer for some calls than for others, so answers come in another order."""
    time.sleep(0.001 * (sum(octets[-8:]) % 3))
    return bytes(original(models, method, octets))
