"""A KServe ModelServer with the models of roles.json: `python server.py --http_port=8080`.

It takes KServe's own options, and --host. KServe leaves checks of input names, datatypes and shapes to the model.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import kserve.model_server
import kserve.protocol.grpc.server
import role_compute
from kserve import InferInput, InferOutput, InferRequest, InferResponse, Model, ModelServer
from kserve.errors import InvalidInput
from kserve.utils.utils import generate_uuid


class RoleModel(Model):
    """A model role."""

    def __init__(self, name: str, role: role_compute.Role) -> None:
        """Store the role; there is nothing to load."""
        super().__init__(name)
        self.role = role
        self.ready = True

    def load(self) -> bool:
        """Mark the model as ready, also after an unload through the repository API."""
        self.ready = True
        return True

    def get_input_types(self) -> list[dict[str, Any]]:
        """Return the inputs in the format of model metadata."""
        return list(self.role["inputs"])

    def get_output_types(self) -> list[dict[str, Any]]:
        """Return the outputs in the format of model metadata."""
        return list(self.role["outputs"])

    def predict(self, payload: InferRequest, _headers: dict[str, str] | None = None) -> InferResponse:
        """Answer a request."""
        try:
            role_compute.check(self.role, [(each.name, each.datatype, each.shape) for each in payload.inputs])
            arrays = role_compute.run(self.role, {each.name: _array(each) for each in payload.inputs})
        except (ValueError, TypeError, OverflowError) as error:  # numpy's errors for data that do not fit the tensor
            raise InvalidInput(str(error)) from error
        outputs = zip(self.role["outputs"], arrays)  # noqa: B905 (not in Python 3.9)
        return InferResponse(
            model_name=self.name,
            response_id=payload.id or generate_uuid(),
            infer_outputs=[_output(payload, spec, array) for spec, array in outputs],
            # What the client requested; KServe encodes the answer accordingly.
            requested_outputs=payload.request_outputs,
            use_binary_outputs=payload.use_binary_outputs,
        )


def _array(given: InferInput) -> role_compute.Array:
    array: role_compute.Array = given.as_numpy()
    if given.datatype != "BYTES":
        return array
    # Elements from JSON are str, elements from binary data are bytes.
    elements = [each if isinstance(each, bytes) else str(each).encode() for each in array.flat]
    return role_compute.texts(elements, array.shape)


def _output(payload: InferRequest, spec: dict[str, Any], array: role_compute.Array) -> InferOutput:
    """Return an output in the form that KServe can send over the transport of the request."""
    output = InferOutput(name=spec["name"], shape=list(array.shape), datatype=spec["datatype"])
    if not payload.from_grpc:
        output.data = array
    elif payload.use_binary_outputs:
        output.set_data_from_numpy(array)
    else:
        output.data = array.ravel().tolist()
    return output


def listen_on(host: str) -> None:
    """Listen on this address; KServe has no option for it and listens on all."""

    class RESTServer(kserve.model_server.RESTServer):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            config = self.config if hasattr(self, "config") else self._server.config  # before KServe 0.15
            config.host = host

    def server(*args: Any, **named: Any) -> grpc.aio.Server:
        made = grpc.aio.server(*args, **named)
        add_insecure_port = made.add_insecure_port
        made.add_insecure_port = lambda address: add_insecure_port(f"{host}:{address.rpartition(':')[2]}")
        return made

    kserve.model_server.RESTServer = RESTServer
    kserve.protocol.grpc.server.aio = SimpleNamespace(server=server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[kserve.model_server.parser])
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    options, _ = parser.parse_known_args()
    listen_on(options.host)
    roles = json.loads((Path(__file__).parent / "roles.json").read_text(encoding="utf-8"))
    ModelServer().start([RoleModel(name, role) for name, role in roles.items()])
