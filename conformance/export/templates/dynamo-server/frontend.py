"""Dynamo's KServe gRPC frontend with the models of roles.json, in one process: `python frontend.py --port=8787`.

There is no etcd and no NATS. Dynamo leaves it to the engine behind the frontend, which is here, to check names,
datatypes and shapes of the inputs, and to select the outputs. Its tensors hold their elements as a list of numbers;
each element of BYTES is itself a list of numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import role_compute
from dynamo.llm import KserveGrpcService, PythonAsyncEngine
from dynamo.llm.exceptions import InvalidArgument
from dynamo.runtime import DistributedRuntime

Tensor = Mapping[str, Any]

# Datatype -> Dynamo's name for it.
NAMES = {
    "BOOL": "Bool",
    "UINT8": "Uint8",
    "UINT16": "Uint16",
    "UINT32": "Uint32",
    "UINT64": "Uint64",
    "INT8": "Int8",
    "INT16": "Int16",
    "INT32": "Int32",
    "INT64": "Int64",
    "FP32": "Float32",
    "FP64": "Float64",
    "BYTES": "Bytes",
}
DATATYPES = {name: datatype for datatype, name in NAMES.items()}


class RoleEngine:
    """A model role."""

    def __init__(self, name: str, role: role_compute.Role) -> None:
        """Store the role; there is nothing to load."""
        self.name = name
        self.role = role

    async def generate(self, request: Mapping[str, Any], _context: object = None) -> AsyncIterator[dict[str, Any]]:
        """Answer a request: yield the one item that Dynamo turns into the answer."""
        try:
            tensors = self._answer(request)
        except KeyError as error:
            raise InvalidArgument(f"there is no output {error}") from error
        except (ValueError, TypeError, OverflowError) as error:  # numpy's errors for data that do not fit the tensor
            raise InvalidArgument(str(error)) from error
        yield {"model": self.name, "tensors": tensors, "parameters": {}}

    def _answer(self, request: Mapping[str, Any]) -> list[Tensor]:
        given = request["tensors"]
        role_compute.check(self.role, [_declared(tensor["metadata"]) for tensor in given])
        arrays = role_compute.run(self.role, {tensor["metadata"]["name"]: _array(tensor) for tensor in given})
        specs = zip(self.role["outputs"], arrays)  # noqa: B905 (as in the other servers)
        outputs = {spec["name"]: _output(spec, array) for spec, array in specs}
        wanted = [each["name"] for each in request.get("outputs") or []] or list(outputs)
        return [outputs[name] for name in wanted]


def _declared(metadata: Mapping[str, Any]) -> tuple[str, str, list[int]]:
    return metadata["name"], DATATYPES[metadata["data_type"]], metadata["shape"]


def _array(tensor: Tensor) -> role_compute.Array:
    _, datatype, shape = _declared(tensor["metadata"])
    values = tensor["data"]["values"]
    if datatype == "BYTES":
        return role_compute.texts([bytes(each) for each in values], shape)
    return np.array(values, role_compute.DTYPES[datatype]).reshape(shape)


def _output(spec: Mapping[str, Any], array: role_compute.Array) -> Tensor:
    kind = NAMES[spec["datatype"]]
    values = [list(each) for each in array.flat] if spec["datatype"] == "BYTES" else array.ravel().tolist()
    metadata = {"name": spec["name"], "data_type": kind, "shape": list(array.shape)}
    return {"metadata": metadata, "data": {"data_type": kind, "values": values}}


def _metadata(name: str, role: role_compute.Role) -> dict[str, Any]:
    """Return a model in the format of Dynamo's metadata."""
    return {"name": name, "inputs": _tensors(role["inputs"]), "outputs": _tensors(role["outputs"])}


def _tensors(specs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"name": each["name"], "data_type": NAMES[each["datatype"]], "shape": each["shape"]} for each in specs]


async def serve(host: str, port: int, roles: Mapping[str, role_compute.Role]) -> None:
    """Serve until the process ends."""
    loop = asyncio.get_running_loop()
    service = KserveGrpcService(port=port, host=host)
    for name, role in roles.items():
        engine = PythonAsyncEngine(RoleEngine(name, role).generate, loop)
        service.add_tensor_model(name, "1", engine, tensor_model_config=_metadata(name, role))
    await service.run(DistributedRuntime(loop, "mem", "tcp"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, default=8787, help="for gRPC")
    options = parser.parse_args()
    models = json.loads((Path(__file__).parent / "roles.json").read_text(encoding="utf-8"))
    asyncio.run(serve(options.host, options.port, models))
