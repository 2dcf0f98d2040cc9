"""A KServe transformer without a step of its own: KServe reads each request, and sends it on to the predictor."""

from __future__ import annotations

from typing import Any

import httpx
import kserve.model_server
from kserve import Model, ModelServer

PREDICTOR = "http://@HTTP@"
NAMES = str.split("@MODELS@")


class Transformer(Model):
    """A transformer in front of one model of the predictor."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        """Store the metadata of the model, for which KServe does not ask the predictor."""
        super().__init__(metadata["name"])
        self.metadata = metadata
        self.ready = True

    def get_input_types(self) -> list[dict[str, Any]]:
        """Return the inputs in the format of model metadata."""
        return list(self.metadata["inputs"])

    def get_output_types(self) -> list[dict[str, Any]]:
        """Return the outputs in the format of model metadata."""
        return list(self.metadata["outputs"])


class RESTServer(kserve.model_server.RESTServer):
    """KServe's server, which listens on all addresses, and has no option for it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        """Listen on 127.0.0.1 alone."""
        super().__init__(*args, **named)
        self.config.host = "127.0.0.1"


if __name__ == "__main__":
    kserve.model_server.RESTServer = RESTServer
    found = [httpx.get(f"{PREDICTOR}/v2/models/{name}").json() for name in NAMES]
    ModelServer().start([Transformer(each) for each in found])
