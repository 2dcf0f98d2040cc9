"""What a peer says of itself and its models beside inference: made from the inference that is being asked.

Both transports say the same: over gRPC the JSON becomes the message of the same fields.
"""

from __future__ import annotations

from typing import Any, Final

from conformance.clients.answers.script import VERSION, Script
from conformance.clients.inference import Inference
from conformance.wire.tensor import Tensor

SERVER: Final = {
    "name": "scripted-peer",
    "version": "1",
    "extensions": ["binary_tensor_data", "classification", "model_configuration", "statistics"],
}


def make_model_metadata(inference: Inference, script: Script) -> dict[str, Any]:
    """Return the metadata of the model that an inference asks."""
    return {
        "name": inference.model,
        "versions": [inference.version or VERSION],
        "platform": "",
        "inputs": [_signature(one) for one in inference.inputs],
        "outputs": [_signature(one) for one in _declared(inference, script)],
    }


def make_model_config(inference: Inference, script: Script) -> dict[str, Any]:
    """Return its configuration, as clients that know about batches ask for it: this one knows of none."""
    return {
        "name": inference.model,
        "platform": "",
        "backend": "",
        "max_batch_size": 0,
        "input": [_configured(one) for one in inference.inputs],
        "output": [_configured(one) for one in _declared(inference, script)],
    }


def make_model_statistics(inference: Inference, count: int) -> dict[str, Any]:
    """Return its statistics: how many inferences there were."""
    one = {"name": inference.model, "version": inference.version or VERSION}
    return {"model_stats": [{**one, "inference_count": count, "execution_count": count}]}


def _declared(inference: Inference, script: Script) -> tuple[Tensor, ...]:
    """Return the outputs that a model has; its inputs stand for them where the answer has none, such as an error."""
    return script.outputs(inference) or inference.inputs


def _signature(one: Tensor) -> dict[str, Any]:
    return {"name": one.name, "datatype": one.datatype, "shape": list(one.shape)}


def _configured(one: Tensor) -> dict[str, Any]:
    kind = "STRING" if one.datatype == "BYTES" else one.datatype
    return {"name": one.name, "data_type": f"TYPE_{kind}", "dims": list(one.shape)}
