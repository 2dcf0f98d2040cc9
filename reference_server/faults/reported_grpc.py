"""gRPC faults that real servers had: contents, lists of outputs, methods, and calls after a failed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor, make_objects, split_elements

Message = Any
PREFIX_BYTES = 4  # bytes of the length of a BYTES element


# --- contents ---------------------------------------------------------------------------------------------------------


@fault("grpc_contents.encode_typed", breaks=("GRPC-TYPED", "CLS-PARAMETER/grpc", "CLS-LABEL/grpc", "CLS-ONLY/grpc"))
def grpc_typed_strings_of_answers_fail(original: Any, tensor: Tensor) -> dict[str, Any]:
    """The server fails with an internal error when it writes a BYTES output into typed contents."""
    if tensor.datatype == "BYTES":
        raise RuntimeError("has type str, but expected one of: bytes")
    return original(tensor)


@fault("grpc_contents.convert_elements", breaks="GRPC-TYPED")
def grpc_typed_strings_that_are_no_text_fail(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server fails with an internal error if a BYTES input in typed contents is not UTF-8."""
    if datatype == "BYTES":
        for value in values:
            bytes(value).decode()  # the exception becomes an internal error
    return original(datatype, field, values)


@fault(
    "grpc_request.parse_inputs",
    breaks=("GRPC-RAW", "GRPC-RAW-BYTES", "GRPC-ORDER-I", "CLS-BATCH/grpc", "GRPC-RAW-AND-TYPED"),
)
def grpc_raw_contents_not_read(original: Any, model: Model, message: Message) -> Any:
    """The server ignores raw_input_contents, so inputs sent in this field have no contents."""
    del message.raw_input_contents[:]
    return original(model, message)


@fault("grpc_request.list_raw_contents", breaks="GRPC-RAW-AND-TYPED")
def grpc_raw_entries_fill_the_first_inputs(original: Any, message: Message) -> Any:
    """The server replaces the typed contents of the first inputs with the raw contents, and keeps the others."""
    if not message.raw_input_contents or len(message.raw_input_contents) > len(message.inputs):
        return original(message)
    for entry, _ in zip(message.inputs, message.raw_input_contents, strict=False):
        entry.ClearField("contents")
    return [*message.raw_input_contents, *[None] * (len(message.inputs) - len(message.raw_input_contents))]


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW-BYTES-MISFRAMED")
def grpc_missing_raw_strings_are_empty(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server adds empty strings for BYTES elements that are missing in raw contents."""
    if datatype != "BYTES":
        return original(datatype, shape, data)
    count, missing = 1, b"\0" * PREFIX_BYTES
    for extent in shape:
        count *= extent
    for lacking in range(count + 1):
        try:
            elements = split_elements(memoryview(data + missing * lacking), count)
        except InferenceError:
            continue
        return Tensor(datatype, tuple(shape), make_objects(elements.tolist()))
    return original(datatype, shape, data)


# --- lists of outputs -------------------------------------------------------------------------------------------------


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-LISTED/grpc")
def grpc_first_output_whatever_is_listed(original: Any, model: Model, message: Message) -> list[RequestedOutput]:
    """If a call lists outputs, the server returns only the first output of the model."""
    found: list[RequestedOutput] = original(model, message)
    return [replace(found[0], name=model.outputs[0].name)] if message.outputs else found


# --- methods and services ---------------------------------------------------------------------------------------------


@fault("grpc_methods.get_methods", breaks="OIP-ENDPOINTS/grpc")
def grpc_has_no_word_of_health(original: Any) -> dict[str, Any]:
    """The server does not implement ServerLive, ServerReady and ModelReady."""
    return {name: method for name, method in original().items() if not name.endswith(("Live", "Ready"))}


@fault("grpc_server.Service.service", breaks="OIP-ENDPOINTS/grpc")
def grpc_service_has_another_package(original: Any, service: Any, call: Any) -> Any:
    """The server registers its service under another protobuf package, so calls to `inference` fail."""
    method = call.method.replace("/inference.", "/openinference.")
    return original(service, SimpleNamespace(method=method, invocation_metadata=call.invocation_metadata))


@fault("grpc_server.Service.service", breaks="OIP-ENDPOINTS/grpc")
def grpc_service_fails_at_every_call(_original: Any, _service: Any, _call: Any) -> Any:
    """The server fails before it looks at a call, so every call ends with the status UNKNOWN."""
    raise AttributeError("no such attribute")


@fault("grpc_methods.model_infer", breaks="OIP-ENDPOINTS/grpc")
def grpc_inference_always_fails(_original: Any, *_arguments: Any) -> Any:
    """The server answers every call of ModelInfer with an internal error, and infers over HTTP."""
    raise RuntimeError("the handler takes two arguments")


@fault("grpc_request.parse_input", breaks="GRPC-FP16")
def grpc_fp16_inputs_fail(original: Any, model: Model, spec: Any, entry: Message, raw: Any) -> Any:
    """The server fails with an internal error on an FP16 input."""
    if spec.datatype == "FP16":
        raise RuntimeError("contents has no field for FP16")
    return original(model, spec, entry, raw)


_strings_lost: list[str] = []


@fault("grpc_server.answer", "grpc_contents.convert_elements", broad=True)
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


@fault("grpc_server.answer", breaks=("OIP-ALIVE/grpc", "OIP-ALIVE-LEGAL/grpc"))
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


@fault("grpc_server.make_handler", breaks="OIP-ALIVE-LEGAL/grpc")
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
