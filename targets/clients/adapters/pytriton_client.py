"""Adapter: pytriton's ModelClient, over HTTP and gRPC.

It is bound to one model, and asks for the outputs of the model's configuration. It reads that from the server, unless
its caller hands it one, which is the way to ask for some outputs alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lines import CannotError, Json, array_of, attempted, output, refuse, result, serve
from pytriton.client import ModelClient
from pytriton.model_config.triton_model_config import TensorSpec, TritonModelConfig
from tritonclient.utils import np_to_triton_dtype


class Client:
    """A `ModelClient` for each model and set of outputs."""

    def __init__(self, transport: str, address: str, timeout: float) -> None:
        self.url = f"{transport}://{address.removeprefix('http://')}"
        self.timeout = timeout
        self.clients: dict[tuple[str, ...], Any] = {}

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences, one after the other: a `ModelClient` has no other way."""
        if at_once:
            return [{"cannot": "ModelClient makes one inference at a time"} for _ in inferences]
        return [attempted(partial(self.one, each)) for each in inferences]

    def one(self, inference: Json) -> Json:
        """Make one inference."""
        expect_possible(inference)
        wishes = inference.get("outputs")
        names = None if wishes is None else [one["name"] for one in wishes]
        key = (inference["model"], inference.get("version", ""), *(names or ()))
        client = self.clients.get(key) or self.clients.setdefault(key, self.connected(inference, names))
        arrays = client.infer_sample(**{one["name"]: array_of(one) for one in inference["inputs"]})
        return result([output(name, np_to_triton_dtype(array.dtype), array) for name, array in arrays.items()], None)

    def connected(self, inference: Json, names: list[str] | None) -> Any:
        """Make a client for a model with these outputs, or with all that its configuration says."""
        model, timeouts = inference["model"], {"init_timeout_s": self.timeout, "inference_timeout_s": self.timeout}
        if names is None:
            return ModelClient(self.url, model, inference.get("version"), **timeouts)
        outputs = [TensorSpec(name=name, shape=(-1,), dtype=bytes) for name in names]  # the names alone are used
        handed = TritonModelConfig(model, batching=False, max_batch_size=0, outputs=outputs)
        return ModelClient(
            self.url, model, inference.get("version"), model_config=handed, ensure_model_is_ready=False, **timeouts
        )


def expect_possible(inference: Json) -> None:
    """Require what a ModelClient can be asked for.

    Raises:
        CannotError: there is no way to ask for it.
    """
    refuse(
        inference,
        raw="ModelClient has no raw binary requests",
        id="ModelClient chooses its ids itself",
        coding="ModelClient does not encode requests",
        accepts="ModelClient does not choose codings of answers",
    )
    if any(one["form"] == "json" for one in inference["inputs"]):
        raise CannotError("ModelClient sends binary data alone")
    if inference.get("outputs") is None and any(not one["shape"] for one in inference["inputs"]):
        raise CannotError("a configuration that ModelClient reads has no tensors of rank 0")
    wishes = inference.get("outputs") or []
    if any("classes" in one for one in wishes):
        raise CannotError("ModelClient has no classification")
    if "json" in (inference.get("all_outputs"), *(one.get("form") for one in wishes)):
        raise CannotError("ModelClient asks for binary data alone")


if __name__ == "__main__":
    serve("nvidia-pytriton", ["http", "grpc"], Client, "pytriton.ModelClient")
