"""gRPC faults that real servers had: contents, lists of outputs, methods, and calls after a failed one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.datatypes import is_tensor_of
from reference_server.faults.grpc_frame import leave_out_methods
from reference_server.faults.reported_requests import ONE_MODEL
from reference_server.models import Model
from reference_server.tensors import Tensor, make_objects, split_elements

Message = Any
PREFIX_BYTES = 4  # bytes of the length of a BYTES element


# --- contents ---------------------------------------------------------------------------------------------------------


grpc_typed_strings_of_answers_fail = steps.ENCODE_TYPED.refuse(
    ("GRPC-TYPED", "CLS-PARAMETER/grpc"), is_tensor_of("BYTES"), status=None
).says("The server fails with an internal error when it writes a BYTES output into typed contents.")


@fault(steps.CONVERT_ELEMENTS, breaks="GRPC-TYPED")
def grpc_typed_strings_that_are_no_text_fail(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server fails with an internal error if a BYTES input in typed contents is not UTF-8."""
    if datatype == "BYTES":
        for value in values:
            bytes(value).decode()  # the exception becomes an internal error
    return original(datatype, field, values)


@fault(
    steps.PARSE_CALL_INPUTS,
    breaks=("GRPC-RAW", "GRPC-RAW-BYTES", "GRPC-ORDER-I", "CLS-BATCH/grpc", "GRPC-RAW-AND-TYPED"),
)
def grpc_raw_contents_not_read(original: Any, model: Model, message: Message) -> Any:
    """The server ignores raw_input_contents, so inputs sent in this field have no contents."""
    del message.raw_input_contents[:]
    return original(model, message)


@fault(steps.LIST_RAW_CONTENTS, breaks="GRPC-RAW-AND-TYPED")
def grpc_raw_entries_fill_the_first_inputs(original: Any, message: Message) -> Any:
    """The server replaces the typed contents of the first inputs with the raw contents, and keeps the others."""
    if not message.raw_input_contents or len(message.raw_input_contents) > len(message.inputs):
        return original(message)
    for entry, _ in zip(message.inputs, message.raw_input_contents, strict=False):
        entry.ClearField("contents")
    return [*message.raw_input_contents, *[None] * (len(message.inputs) - len(message.raw_input_contents))]


@fault(steps.DECODE_RAW, breaks="GRPC-RAW-BYTES-MISFRAMED")
def grpc_missing_raw_strings_are_empty(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server adds empty strings for BYTES elements that are missing in raw contents."""
    if datatype != "BYTES":
        return original(datatype, shape, data)
    count = math.prod(shape)
    for lacking in range(count + 1):
        try:
            elements = split_elements(memoryview(data + bytes(PREFIX_BYTES * lacking)), count)
        except InferenceError:
            continue
        return Tensor(datatype, tuple(shape), make_objects(elements.tolist()))
    return original(datatype, shape, data)


# --- lists of outputs, methods and services ---------------------------------------------------------------------------

grpc_first_output_whatever_is_listed = steps.PARSE_CALL_OUTPUTS.after(
    "OIP-OUTPUTS-LISTED/grpc",
    lambda requested, model: [replace(requested[0], name=model.outputs[0].name)],
    when=lambda message: message.outputs,
).says("If a call lists outputs, the server returns only the first output of the model.")
grpc_has_no_word_of_health = leave_out_methods("Live", "Ready").says(
    "The server does not implement ServerLive, ServerReady and ModelReady."
)


@fault(steps.FIND_HANDLER, breaks="OIP-ENDPOINTS/grpc")
def grpc_service_has_another_package(original: Any, service: Any, call: Any) -> Any:
    """The server registers its service under another protobuf package, so calls to `inference` fail."""
    method = call.method.replace("/inference.", "/openinference.")
    return original(service, SimpleNamespace(method=method, invocation_metadata=call.invocation_metadata))


grpc_service_fails_at_every_call = steps.FIND_HANDLER.refuse("OIP-ENDPOINTS/grpc", status=None).says(
    "The server fails before it looks at a call, so every call ends with the status UNKNOWN."
)
grpc_inference_always_fails = steps.MODEL_INFER.refuse("OIP-ANSWER/grpc", status=None).says(
    "The server answers every call of ModelInfer with an internal error, and infers over HTTP."
)
grpc_one_model_is_refused = steps.PARSE_CALL.refuse("OIP-ANSWER/grpc", lambda model: model.name == ONE_MODEL).says(
    "The server refuses every call of ModelInfer for one model with INVALID_ARGUMENT, and infers with it over HTTP."
)
grpc_fp16_inputs_fail = steps.PARSE_CALL_INPUT.refuse(
    "GRPC-FP16", lambda spec: spec.datatype == "FP16", status=None
).says("The server fails with an internal error on an FP16 input.")
grpc_fp16_outputs_fail = steps.BUILD_RESPONSE.refuse(
    "GRPC-FP16", lambda produced: any(tensor.datatype == "FP16" for tensor in produced.values()), status=None
).says("The server fails with an internal error if the model returns an FP16 output.")

_strings_lost: list[str] = []


@fault(steps.ANSWER_CALL, steps.CONVERT_ELEMENTS, broad=True)
def grpc_typed_strings_end_the_server(original: Any, *arguments: Any) -> Any:
    """A BYTES input in typed contents crashes the server, and the next two calls fail."""
    if len(arguments) == 3 and isinstance(arguments[2], bytes):
        if _strings_lost:
            raise InferenceError(_strings_lost.pop())
        return original(*arguments)
    if arguments[0] == "BYTES":
        _strings_lost[:] = ["the server is not available"] * 2
        raise RuntimeError("the server has exited")
    return original(*arguments)


# --- calls after a failed one -----------------------------------------------------------------------------------------

_ended: list[str] = []


@fault(steps.ANSWER_CALL, breaks=("OIP-ALIVE/grpc", "OIP-ALIVE-LEGAL/grpc"))
def grpc_exceptions_end_the_server(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """A call refused with INVALID_ARGUMENT crashes the server, and the next two calls fail."""
    if _ended:
        raise InferenceError(_ended.pop())
    try:
        return original(models, method, octets)
    except InferenceError as refusal:
        if refusal.status == 400:
            _ended.extend(["the server is not available"] * 2)
        raise


_workers_stuck: list[str] = []


@fault(steps.MAKE_HANDLER, breaks="OIP-ALIVE-LEGAL/grpc")
def grpc_calls_past_their_deadline_lose_the_next(
    original: Any, models: Any, method: Any
) -> Callable[[bytes, Any], Any]:
    """An answer after the deadline of its call stops the server's response loop, and the next two calls fail."""
    from reference_server.grpc_server import CODES, refuse  # its packages may be missing

    handle = original(models, method)

    def answer_in_time(octets: bytes, context: Any) -> Any:
        if _workers_stuck:
            refuse(context, CODES[400], _workers_stuck.pop())
        try:
            return handle(octets, context)
        finally:
            if (context.time_remaining() or 0) <= 0:
                _workers_stuck[:] = ["the response loop has ended"] * 2

    return answer_in_time
