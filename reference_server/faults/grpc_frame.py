"""gRPC: wrong methods, metadata, versions, names, ids or listed outputs."""

from __future__ import annotations

from typing import Any

from reference_server.faults import Fault, fault, steps
from reference_server.faults.answers import list_all
from reference_server.faults.families import Function

Message = Any


def set_field(field: str, value: object) -> Function:
    """Return a function that gives a message another value of a field; None clears the field."""

    def change(message: Message) -> Message:
        if value is None:
            message.ClearField(field)
        else:
            setattr(message, field, value)
        return message

    return change


# --- methods, unknown models and unknown versions -------------------------------------------------------------------


def leave_out_methods(*endings: str) -> Fault:
    """Return a fault: the server does not implement the methods whose names end in these words."""
    return steps.GET_METHODS.after(
        "OIP-ENDPOINTS/grpc",
        lambda methods: {name: method for name, method in methods.items() if not name.endswith(endings)},
    )


grpc_has_no_server_live = leave_out_methods("ServerLive").says("The server does not implement the method ServerLive.")


@fault(steps.FIND_HANDLER, broad=True)
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


def _prefix_datatypes(response: Message) -> Message:
    for entry in (*response.inputs, *response.outputs):
        entry.datatype = f"TYPE_{entry.datatype}"
    return response


def _name_known_model(message: Message, models: Any) -> Message:
    name = message.name if message.name in models else next(iter(models))
    return type(message)(name=name, version=message.version)


grpc_readiness_of_no_version_is_refused = steps.CALL_MODEL_READY.refuse(
    "OIP-ENDPOINTS/grpc", lambda message: not message.version, status=404
).says("The server refuses ModelReady without a version, because it looks for a version with an empty name.")
grpc_server_is_not_live = steps.CALL_SERVER_LIVE.after("OIP-HEALTH/grpc", set_field("live", False)).says(
    "The server answers ServerLive with `live: false`, the default of the field."
)
grpc_models_are_not_ready = steps.CALL_MODEL_READY.after("OIP-HEALTH/grpc", set_field("ready", False)).says(
    "The server answers ModelReady with `ready: false`, the default of the field."
)
grpc_every_model_has_the_same_name = steps.CALL_MODEL_METADATA.after(
    "OIP-MODEL-METADATA/grpc", set_field("name", "model")
).says("The metadata of every model have the name `model`.")
grpc_metadata_have_no_extensions = steps.CALL_SERVER_METADATA.after(
    "CLS-LISTED/grpc", set_field("extensions", None)
).says("The server omits its extensions from ServerMetadata.")
grpc_metadata_have_datatypes_of_a_model_config = steps.CALL_MODEL_METADATA.after(
    "OIP-MODEL-METADATA/grpc", _prefix_datatypes
).says("The server prefixes datatypes in ModelMetadata with TYPE_, like Triton's model configuration.")
grpc_versions_are_not_found = steps.FIND_CALLED_MODEL.refuse(
    "OIP-VERSIONED/grpc", lambda version: version, status=404
).says("The server refuses every call that names a version, even a version that the metadata list.")
grpc_versions_are_ignored = steps.FIND_CALLED_MODEL.before(
    ("OIP-VERSION-UNKNOWN/grpc", "OIP-VERSIONED/grpc"), version=lambda _: ""
).says("The server ignores the version in a call, even if the model has no such version.")
grpc_another_version_named_under_a_version = steps.MODEL_INFER.after(
    "OIP-VERSIONED/grpc", set_field("model_version", "2"), when=lambda message: message.model_version
).says("The answer to a call for version 1 says model_version 2.")
grpc_unknown_models_are_ready = steps.CALL_MODEL_READY.before("OIP-REFUSAL/grpc", message=_name_known_model).says(
    "The server answers ModelReady for an unknown model with true."
)


@fault(steps.MODEL_INFER, breaks="OIP-REFUSAL/grpc")
def grpc_unknown_outputs_are_answered_with_nothing(original: Any, models: Any, message: Message) -> Message:
    """The server answers a request for an unknown output with an empty message and the status OK."""
    model = models.get(message.model_name)
    names = [spec.name for spec in model.outputs] if model else []
    if model and any(entry.name not in names for entry in message.outputs):
        from tritonclient.grpc import service_pb2  # the package may be missing

        return service_pb2.ModelInferResponse()
    return original(models, message)


# --- names and ids ----------------------------------------------------------------------------------------------------


def _append_version(response: Message) -> Message:
    response.model_name = f"{response.model_name}:{response.model_version}"
    return response


def _keep_id(response: Message) -> Message:
    _last["id"] = response.id = response.id or _last["id"]
    return response


_last = {"id": ""}

grpc_answer_has_no_model_name = steps.BUILD_RESPONSE.after(
    "OIP-OUTPUT-MEMBERS/grpc", set_field("model_name", None)
).says("The server omits the model name from inference answers.")
grpc_answer_names_model_and_version = steps.BUILD_RESPONSE.after("OIP-MODEL-NAME-ASKED/grpc", _append_version).says(
    "The server appends a colon and the version to the model name in inference answers."
)


@fault(steps.BUILD_RESPONSE, breaks="OIP-OUTPUT-MEMBERS/grpc")
def grpc_empty_outputs_have_no_datatype(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server omits the datatype of an output without elements."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.datatype = ""
    return response


grpc_id_is_left_out = steps.BUILD_RESPONSE.after("OIP-ID/grpc", set_field("id", None)).says(
    "The server omits the id from inference answers."
)
grpc_id_zero_is_left_out = steps.BUILD_RESPONSE.after(
    "OIP-ID/grpc", set_field("id", None), when=lambda result: result.id == "0"
).says("The server takes the string 0 for false, as some languages do, and omits this id.")
grpc_id_is_left_over = steps.BUILD_RESPONSE.after("OIP-ISOLATION/grpc", _keep_id).says(
    "If a request has no id, the server answers with the id of an earlier request."
)

# --- outputs ----------------------------------------------------------------------------------------------------------

grpc_lists_of_outputs_are_ignored = steps.PARSE_CALL_OUTPUTS.after(
    "OIP-OUTPUTS-ONLY/grpc", lambda requested, model: list_all(requested, model, binary=requested[0].binary)
).says("The server returns all outputs, even if the request lists only some.")
grpc_third_listed_output_is_dropped = steps.PARSE_CALL_OUTPUTS.after(
    "OIP-OUTPUTS-LISTED/grpc", lambda requested: requested[:2], when=lambda message: message.outputs
).says("The server returns only the first two outputs that a request lists.")
grpc_without_a_list_there_is_one_output = steps.PARSE_CALL_OUTPUTS.after(
    "OIP-OUTPUTS-ALL/grpc", lambda requested: requested[:1], when=lambda message: not message.outputs
).says("If a request lists no outputs, the server returns only the first output.")


# --- field numbers ----------------------------------------------------------------------------------------------------


@fault(steps.ANSWER_CALL, broad=True)
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
