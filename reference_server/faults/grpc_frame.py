"""gRPC: wrong methods, metadata, versions, names, ids or listed outputs."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.request import RequestedOutput

Message = Any


# --- methods, unknown models and unknown versions -------------------------------------------------------------------


@fault("grpc_methods.get_methods", breaks="OIP-ENDPOINTS/grpc")
def grpc_has_no_server_live(original: Any) -> dict[str, Any]:
    """The server does not implement the method ServerLive."""
    return {name: method for name, method in original().items() if name != "ServerLive"}


@fault("grpc_server.Service.service", broad=True)
def grpc_service_of_another_package(original: Any, service: Any, call: Any) -> Any:
    """The server implements the service in a package other than `inference`, so clients find no method."""
    from reference_server.grpc_server import make_unknown_handler  # its packages may be missing

    if call.method.startswith("/inference."):
        return grpc_handler(make_unknown_handler(call.method))
    return original(service, call)


def grpc_handler(handle: Any) -> Any:
    """Return a handler for grpc that passes a call of any kind, unary or streaming, to a function."""
    import grpc

    return grpc.stream_stream_rpc_method_handler(handle)


@fault("grpc_methods.model_ready", breaks="OIP-ENDPOINTS/grpc")
def grpc_readiness_of_no_version_is_refused(original: Any, models: Any, message: Message) -> Message:
    """The server refuses ModelReady without a version, because it looks for a version with an empty name."""
    if not message.version:
        raise InferenceError("the version must not be empty", status=404)
    return original(models, message)


@fault("grpc_methods.server_live", breaks="OIP-HEALTH/grpc")
def grpc_server_is_not_live(original: Any, models: Any, message: Message) -> Message:
    """The server answers ServerLive with `live: false`, the default of the field."""
    response = original(models, message)
    response.live = False
    return response


@fault("grpc_methods.model_ready", breaks="OIP-HEALTH/grpc")
def grpc_models_are_not_ready(original: Any, models: Any, message: Message) -> Message:
    """The server answers ModelReady with `ready: false`, the default of the field."""
    response = original(models, message)
    response.ready = False
    return response


@fault("grpc_methods.model_metadata", breaks="OIP-MODEL-METADATA/grpc")
def grpc_every_model_has_the_same_name(original: Any, models: Any, message: Message) -> Message:
    """The metadata of every model have the name `model`."""
    response = original(models, message)
    response.name = "model"
    return response


@fault("grpc_methods.server_metadata", breaks="CLS-LISTED/grpc")
def grpc_metadata_have_no_extensions(original: Any, models: Any, message: Message) -> Message:
    """The server omits its extensions from ServerMetadata."""
    response = original(models, message)
    del response.extensions[:]
    return response


@fault("grpc_methods.model_metadata", breaks="OIP-MODEL-METADATA/grpc")
def grpc_metadata_have_datatypes_of_a_model_config(original: Any, models: Any, message: Message) -> Message:
    """The server prefixes datatypes in ModelMetadata with TYPE_, like Triton's model configuration."""
    response = original(models, message)
    for entry in (*response.inputs, *response.outputs):
        entry.datatype = f"TYPE_{entry.datatype}"
    return response


@fault("grpc_methods.find_model", breaks="OIP-VERSIONED/grpc")
def grpc_versions_are_not_found(original: Any, models: Any, name: str, version: str) -> Any:
    """The server refuses every call that names a version, even a version that the metadata list."""
    if version:
        raise InferenceError(f"no version {version}", status=404)
    return original(models, name, version)


@fault("grpc_methods.find_model", breaks="GRPC-VERSION-UNKNOWN")
def grpc_versions_are_ignored(original: Any, models: Any, name: str, version: str) -> Any:
    """The server ignores the version in a call, even if the model has no such version."""
    del version
    return original(models, name, "")


@fault("grpc_methods.model_infer", breaks="OIP-VERSIONED/grpc")
def grpc_another_version_named_under_a_version(original: Any, models: Any, message: Message) -> Message:
    """The answer to a call for version 1 says model_version 2."""
    response = original(models, message)
    response.model_version = "2" if message.model_version else response.model_version
    return response


@fault("grpc_methods.model_ready", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_models_are_ready(original: Any, models: Any, message: Message) -> Message:
    """The server answers ModelReady for an unknown model with true."""
    named = type(message)(name=message.name if message.name in models else next(iter(models)), version=message.version)
    return original(models, named)


@fault("grpc_methods.model_infer", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_outputs_are_answered_with_nothing(original: Any, models: Any, message: Message) -> Message:
    """The server answers a request for an unknown output with an empty message and the status OK."""
    model = models.get(message.model_name)
    names = [spec.name for spec in model.outputs] if model else []
    if model and any(entry.name not in names for entry in message.outputs):
        from tritonclient.grpc import service_pb2  # the package may be missing

        return service_pb2.ModelInferResponse()
    return original(models, message)


# --- names and ids ----------------------------------------------------------------------------------------------------


@fault("grpc_response.build", breaks="OIP-OUTPUT-MEMBERS/grpc")
def grpc_answer_has_no_model_name(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server omits the model name from inference answers."""
    response = original(model, request, produced)
    response.ClearField("model_name")
    return response


@fault("grpc_response.build", breaks="OIP-MODEL-NAME-ASKED/grpc")
def grpc_answer_names_model_and_version(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server appends a colon and the version to the model name in inference answers."""
    response = original(model, request, produced)
    response.model_name = f"{model.name}:{response.model_version}"
    return response


@fault("grpc_response.build", breaks="OIP-ID/grpc")
def grpc_id_is_left_out(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server omits the id from inference answers."""
    response = original(model, request, produced)
    response.ClearField("id")
    return response


_last = {"id": ""}


@fault("grpc_response.build", breaks="OIP-ID/grpc")
def grpc_id_is_left_over(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """If a request has no id, the server answers with the id of an earlier request."""
    response = original(model, request, produced)
    _last["id"] = response.id = response.id or _last["id"]
    return response


# --- outputs ----------------------------------------------------------------------------------------------------------


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ONLY/grpc")
def grpc_lists_of_outputs_are_ignored(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """The server returns all outputs, even if the request lists only some."""
    requested: list[RequestedOutput] = original(model, message)
    listed = {output.name for output in requested}
    return requested + [
        RequestedOutput(spec.name, requested[0].binary) for spec in model.outputs if spec.name not in listed
    ]


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-LISTED/grpc")
def grpc_third_listed_output_is_dropped(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """The server returns only the first two outputs that a request lists."""
    requested: list[RequestedOutput] = original(model, message)
    return requested[:2] if message.outputs else requested


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ALL/grpc")
def grpc_without_a_list_there_is_one_output(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """If a request lists no outputs, the server returns only the first output."""
    requested: list[RequestedOutput] = original(model, message)
    return requested if message.outputs else requested[:1]


# --- field numbers ----------------------------------------------------------------------------------------------------


@fault("grpc_server.answer", broad=True)
def grpc_contents_have_the_number_of_parameters(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The server writes `contents` of outputs with field number 4, which belongs to `parameters`."""
    from tritonclient.grpc import service_pb2

    answer: bytes = original(models, method, octets)
    if method.request is not service_pb2.ModelInferRequest:
        return answer
    message = service_pb2.ModelInferResponse.FromString(answer)
    outputs = [_renumber_contents(output) for output in message.outputs]
    del message.outputs[:]
    whole: bytes = message.SerializeToString()
    return whole + b"".join(_encode_field(5, output) for output in outputs)


def _renumber_contents(output: Message) -> bytes:
    """Return an output in protobuf encoding, with `contents` under field number 4."""
    contents: bytes = output.contents.SerializeToString()
    output.ClearField("contents")
    rest: bytes = output.SerializeToString()
    return rest + _encode_field(4, contents) if contents else rest


def _encode_field(number: int, octets: bytes) -> bytes:
    """Return bytes encoded as a protobuf field: tag, length as a varint, and the bytes."""
    length, groups = len(octets), []
    while length > 127:
        groups.append(length % 128 + 128)
        length //= 128
    return bytes([number * 8 + 2, *groups, length]) + octets
