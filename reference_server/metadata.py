"""Server and model metadata, and model configurations in the format of Triton's ModelConfig.

Sources: Open Inference Protocol, REST, "Server Metadata", "Model Metadata"; Triton, Model Configuration Extension and
the model_config.proto that it refers to. The other members of ModelConfig describe backends, schedulers and files,
which this server does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from reference_server.models import MAX_BATCH, Model
from reference_server.tensors import TensorSpec

# A server must list each extension that it implements. This server implements all four in full, over both transports.
EXTENSIONS = ("binary_tensor_data", "model_configuration", "statistics", "classification")
PLATFORM = "reference"
SERVER_VERSION = version("oip-conformance")


def describe_server() -> dict[str, Any]:
    """Return the server's metadata."""
    return {"name": "oip-reference-server", "version": SERVER_VERSION, "extensions": list(EXTENSIONS)}


def describe_model(model: Model) -> dict[str, Any]:
    """Return a model's metadata; the shapes of a batching model begin with -1, the batch dimension."""
    return {
        "name": model.name,
        "versions": list(model.versions),
        "platform": PLATFORM,
        "inputs": list_tensors(model, model.inputs),
        "outputs": list_tensors(model, model.outputs),
    }


def describe_statistics(models: Iterable[Model]) -> dict[str, Any]:
    """Return the statistics of models (Triton, Statistics Extension)."""
    return {
        "model_stats": [{"name": each.name, "version": each.version, **each.statistics.to_dict()} for each in models]
    }


def list_tensors(model: Model, specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
    """Return declared tensors in the format of model metadata."""
    return [
        {"name": spec.name, "datatype": spec.datatype, "shape": list(model.get_declared_shape(spec))} for spec in specs
    ]


# --- ModelConfig -----------------------------------------------------------------------------------------------------


def describe_configuration(model: Model) -> dict[str, Any]:
    """Return a model's configuration; its shapes are without the batch dimension."""
    return {
        "name": model.name,
        "platform": PLATFORM,
        "max_batch_size": MAX_BATCH if model.batching else 0,
        "input": [{**each, "optional": False} for each in list_configured_tensors(model.inputs)],
        "output": list_configured_tensors(model.outputs),
    }


def list_configured_tensors(specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
    """Return declared tensors in the format of a model configuration."""
    return [{"name": spec.name, "data_type": find_data_type(spec.datatype), "dims": list(spec.shape)} for spec in specs]


def find_data_type(datatype: str) -> str:
    """Return the name of a datatype in a model configuration."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"
