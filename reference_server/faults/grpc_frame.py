"""gRPC: wrong methods, metadata, versions, names, ids or listed outputs."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.request import RequestedOutput

Message = Any


# --- methods, unknown models and unknown versions -------------------------------------------------------------------


@fault("grpc_methods.by_name", breaks="OIP-ENDPOINTS/grpc")
def grpc_has_no_server_live(original: Any) -> dict[str, Any]:
    """ServerLive is not implemented."""
    return {name: method for name, method in original().items() if name != "ServerLive"}


@fault("grpc_server.Service.service", broad=True)
def grpc_service_of_another_package(original: Any, service: Any, call: Any) -> Any:
    """The service is in a package of the server's own name, so that no method of the protocol's is found."""
    from reference_server.grpc_server import make_unknown_handler  # its packages may be missing

    if call.method.startswith("/inference."):
        return grpc_handler(make_unknown_handler(call.method))
    return original(service, call)


def grpc_handler(handle: Any) -> Any:
    """Return grpc's handler of a call of any kind."""
    import grpc

    return grpc.stream_stream_rpc_method_handler(handle)


@fault("grpc_methods.model_ready", breaks="OIP-ENDPOINTS/grpc")
def grpc_readiness_of_no_version_is_refused(original: Any, models: Any, message: Message) -> Message:
    """ModelReady of no version in particular looks for one named with an empty string, and is refused."""
    if not message.version:
        raise InferenceError("there is no version of an empty name", status=404)
    return original(models, message)


@fault("grpc_methods.server_metadata", breaks="CLS-LISTED/grpc")
def grpc_metadata_have_no_extensions(original: Any, models: Any, message: Message) -> Message:
    """ServerMetadata over gRPC leaves the extensions out."""
    response = original(models, message)
    del response.extensions[:]
    return response


@fault("grpc_methods.model_metadata", breaks="OIP-MODEL-METADATA/grpc")
def grpc_metadata_have_datatypes_of_a_model_config(original: Any, models: Any, message: Message) -> Message:
    """ModelMetadata spells datatypes as the model's configuration does, TYPE_INT32."""
    response = original(models, message)
    for entry in (*response.inputs, *response.outputs):
        entry.datatype = f"TYPE_{entry.datatype}"
    return response


@fault("grpc_methods.find", breaks="OIP-VERSIONED/grpc")
def grpc_versions_are_not_found(original: Any, models: Any, name: str, version: str) -> Any:
    """A call that names a version is refused, also where metadata list it."""
    if version:
        raise InferenceError(f"no version {version}", status=404)
    return original(models, name, version)


@fault("grpc_methods.find", breaks="GRPC-VERSION-UNKNOWN")
def grpc_versions_are_ignored(original: Any, models: Any, name: str, version: str) -> Any:
    """A call that names any version is answered by the only one."""
    del version
    return original(models, name, "")


@fault("grpc_methods.model_ready", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_models_are_ready(original: Any, models: Any, message: Message) -> Message:
    """ModelReady is true of a server that is ready, whatever the model."""
    named = type(message)(name=message.name if message.name in models else next(iter(models)), version=message.version)
    return original(models, named)


@fault("grpc_methods.model_infer", breaks="OIP-REFUSAL/grpc")
def grpc_unknown_outputs_are_answered_with_nothing(original: Any, models: Any, message: Message) -> Message:
    """A call for an output that the model does not have has the status OK and an empty message."""
    model = models.get(message.model_name)
    names = [spec.name for spec in model.outputs] if model else []
    if model and any(entry.name not in names for entry in message.outputs):
        from tritonclient.grpc import service_pb2  # the package may be missing

        return service_pb2.ModelInferResponse()
    return original(models, message)


# --- names and ids ----------------------------------------------------------------------------------------------------


@fault("grpc_response.build", breaks="OIP-OUTPUT-MEMBERS/grpc")
def grpc_answer_has_no_model_name(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An answer does not name the model."""
    response = original(model, request, produced)
    response.ClearField("model_name")
    return response


@fault("grpc_response.build", breaks="OIP-MODEL-NAME-ASKED/grpc")
def grpc_answer_names_model_and_version(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The name of the model is followed by its version."""
    response = original(model, request, produced)
    response.model_name = f"{model.name}:{response.model_version}"
    return response


@fault("grpc_response.build", breaks="OIP-ID/grpc")
def grpc_id_is_left_out(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An answer has no id."""
    response = original(model, request, produced)
    response.ClearField("id")
    return response


_last = {"id": ""}


@fault("grpc_response.build", breaks="OIP-ID/grpc")
def grpc_id_is_left_over(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An answer to a request without an id has the id of an earlier request."""
    response = original(model, request, produced)
    _last["id"] = response.id = response.id or _last["id"]
    return response


# --- outputs ----------------------------------------------------------------------------------------------------------


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ONLY/grpc")
def grpc_lists_of_outputs_are_ignored(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """All outputs come back, even if only some are listed."""
    wishes: list[RequestedOutput] = original(model, message)
    listed = {wish.name for wish in wishes}
    return wishes + [RequestedOutput(spec.name, wishes[0].binary) for spec in model.outputs if spec.name not in listed]


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-LISTED/grpc")
def grpc_third_listed_output_is_dropped(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """Only the first two of the listed outputs come back."""
    wishes: list[RequestedOutput] = original(model, message)
    return wishes[:2] if message.outputs else wishes


@fault("grpc_request.parse_outputs", breaks="OIP-OUTPUTS-ALL/grpc")
def grpc_without_a_list_there_is_one_output(original: Any, model: Any, message: Message) -> list[RequestedOutput]:
    """If a request lists no outputs, only the first comes back."""
    wishes: list[RequestedOutput] = original(model, message)
    return wishes if message.outputs else wishes[:1]


# --- outputs ----------------------------------------------------------------------------------------------------------


@fault("grpc_server.answer", broad=True)
def grpc_contents_have_the_number_of_parameters(original: Any, models: Any, method: Any, octets: bytes) -> bytes:
    """The contents of an output have field number 4 in answers, where the protocol has parameters."""
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
    """Return the bytes of an output with its contents in field 4."""
    contents: bytes = output.contents.SerializeToString()
    output.ClearField("contents")
    rest: bytes = output.SerializeToString()
    return rest + _encode_field(4, contents) if contents else rest


def _encode_field(number: int, octets: bytes) -> bytes:
    """Return a field of bytes: its tag, its length in groups of seven bits, and the bytes."""
    length, groups = len(octets), []
    while length > 127:
        groups.append(length % 128 + 128)
        length //= 128
    return bytes([number * 8 + 2, *groups, length]) + octets
