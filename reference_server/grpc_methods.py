"""The methods of the gRPC service: each takes the models and a request message, and returns the response message.

Sources: Open Inference Protocol, gRPC, "API Definitions"; Triton, Model Configuration Extension, Statistics Extension.
Other methods of the published stubs belong to other extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tritonclient.grpc import model_config_pb2, service_pb2

from reference_server import grpc_request, grpc_response, inference, metadata
from reference_server.errors import InferenceError, format_value
from reference_server.models import Model

SERVICE = "inference.GRPCInferenceService"

Message = Any  # the generated classes have no types
Models = Mapping[str, Model]


@dataclass(frozen=True)
class Method:
    """A method: the class of its request message, and its handler."""

    request: Any
    call: Callable[[Models, Message], Message]


def get_methods() -> dict[str, Method]:
    """Return the methods by name, as in the path of a call."""
    return {
        "ServerLive": Method(service_pb2.ServerLiveRequest, server_live),
        "ServerReady": Method(service_pb2.ServerReadyRequest, server_ready),
        "ModelReady": Method(service_pb2.ModelReadyRequest, model_ready),
        "ServerMetadata": Method(service_pb2.ServerMetadataRequest, server_metadata),
        "ModelMetadata": Method(service_pb2.ModelMetadataRequest, model_metadata),
        "ModelConfig": Method(service_pb2.ModelConfigRequest, model_config),
        "ModelStatistics": Method(service_pb2.ModelStatisticsRequest, model_statistics),
        "ModelInfer": Method(service_pb2.ModelInferRequest, model_infer),
    }


def server_live(_models: Models, _message: Message) -> Message:
    """Answer ServerLive: the server is always live."""
    return service_pb2.ServerLiveResponse(live=True)


def server_ready(_models: Models, _message: Message) -> Message:
    """Answer ServerReady: the server is always ready."""
    return service_pb2.ServerReadyResponse(ready=True)


def model_ready(models: Models, message: Message) -> Message:
    """Answer ModelReady: every known model is ready."""
    find_model(models, message.name, message.version)
    return service_pb2.ModelReadyResponse(ready=True)


def server_metadata(_models: Models, _message: Message) -> Message:
    """Answer ServerMetadata."""
    return service_pb2.ServerMetadataResponse(**metadata.describe_server())


def model_metadata(models: Models, message: Message) -> Message:
    """Answer ModelMetadata."""
    return service_pb2.ModelMetadataResponse(
        **metadata.describe_model(find_model(models, message.name, message.version))
    )


def model_config(models: Models, message: Message) -> Message:
    """Answer ModelConfig."""
    described = metadata.describe_configuration(find_model(models, message.name, message.version))
    return service_pb2.ModelConfigResponse(config=json_format.ParseDict(described, model_config_pb2.ModelConfig()))


def model_statistics(models: Models, message: Message) -> Message:
    """Answer ModelStatistics: without a version for all of the model, without a name for all models."""
    named = [find_model(models, message.name, message.version)] if message.name else models.values()
    versions = named if message.version else [each for model in named for each in model.versions.values()]
    return service_pb2.ModelStatisticsResponse(**metadata.describe_statistics(versions))


def model_infer(models: Models, message: Message) -> Message:
    """Answer ModelInfer: run the model."""
    model = find_model(models, message.model_name, message.model_version)
    return inference.run(
        model,
        lambda: grpc_request.parse(model, message),
        lambda wanted, produced: grpc_response.build(model, wanted, produced),
    )


def find_model(models: Models, name: str, version: str) -> Model:
    """Return the model that a message names; an empty version means the default."""
    if name not in models:
        raise InferenceError(f"there is no model {format_value(name)}", status=404)
    return models[name].get_version(version) if version else models[name]


def parse_message(kind: Any, octets: bytes) -> Message:
    """Parse bytes as a message of the class `kind`."""
    try:
        return kind.FromString(octets)
    except DecodeError:
        raise InferenceError(f"the message is not a valid {kind.DESCRIPTOR.name}, or text in it is not UTF-8") from None
