"""gRPC: versions, what there is not, ids of some calls alone, and calls that end without a status."""

from __future__ import annotations

from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault

Message = Any

# --- versions --------------------------------------------------------------------------------------------------------


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


# --- what there is not -----------------------------------------------------------------------------------------------


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
        return _empty()
    return original(models, message)


def _empty() -> Message:
    from tritonclient.grpc import service_pb2

    return service_pb2.ModelInferResponse()
