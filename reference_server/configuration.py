"""What a model is, in the words of Triton's ModelConfig.

Source: Triton, Model Configuration Extension; model_config.proto, to which it points. What the message has beside these
members is of backends, schedulers and files, which there are none of here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reference_server.metadata import PLATFORM
from reference_server.models import MAX_BATCH, Model
from reference_server.signature import TensorSpec


def describe(model: Model) -> dict[str, Any]:
    """Return a model's configuration; its shapes are without the batch dimension."""
    return {
        "name": model.name,
        "platform": PLATFORM,
        "max_batch_size": MAX_BATCH if model.batching else 0,
        "input": tensor_list(model.inputs),
        "output": tensor_list(model.outputs),
    }


def tensor_list(specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
    """Return declared tensors as a configuration has them."""
    return [{"name": spec.name, "data_type": find_data_type(spec.datatype), "dims": list(spec.shape)} for spec in specs]


def find_data_type(datatype: str) -> str:
    """Return the name that a configuration has for a datatype."""
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"
