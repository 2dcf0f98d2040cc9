"""The adapter: commands of the suite, one JSON object a line, and the answers to them."""

from __future__ import annotations

import importlib
import importlib.util
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TextIO

from tests.clients.honest.caller import (
    CallerRequest,
    CallerResult,
    RefusedError,
    RequestedOutput,
    Tensor,
    UnsupportedError,
)
from tests.clients.honest.http_client import HttpClient

HAS_GRPC = importlib.util.find_spec("grpc") is not None


class Client(Protocol):
    """What both clients are."""

    def infer(self, asked: CallerRequest, timeout: float) -> CallerResult:
        """Return what the server answers."""

    def close(self) -> None:
        """Let go of the server."""


class Adapter:
    """Keeps a client for each address."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], Client] = {}

    def answered(self, command: Mapping[str, Any]) -> dict[str, Any]:
        if command["command"] == "hello":
            return {"seq": command["seq"], "client": introduction()}
        client = self._client(command["transport"], command["address"])
        inferences = [asked(one) for one in command["inferences"]]
        timeout = command["timeout_s"]
        if not command["at_once"]:
            return {"seq": command["seq"], "results": [result(client, one, timeout) for one in inferences]}
        with ThreadPoolExecutor(len(inferences)) as pool:
            results = list(pool.map(lambda one: result(client, one, timeout), inferences))
        return {"seq": command["seq"], "results": results}

    def _client(self, transport: str, address: str) -> Client:
        if (transport, address) not in self.clients:
            self.clients[transport, address] = made(transport, address)
        return self.clients[transport, address]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def made(transport: str, address: str) -> Client:
    if transport == "http":
        return HttpClient(address)
    client: Client = importlib.import_module("tests.clients.honest.grpc_client").GrpcClient(address)
    return client


def introduction() -> dict[str, Any]:
    transports = ["http", "grpc"] if HAS_GRPC else ["http"]
    return {"name": "honest", "version": "1", "language": "Python", "transports": transports}


def asked(said: Mapping[str, Any]) -> CallerRequest:
    outputs = said.get("outputs")
    return CallerRequest(
        said["model"],
        tuple(tensor(one) for one in said["inputs"]),
        None if outputs is None else tuple(asked_output(one) for one in outputs),
        said.get("all_outputs"),
        said.get("id"),
        said.get("version"),
        said.get("raw", False),
        said.get("coding"),
        said.get("accepts"),
    )


def tensor(said: Mapping[str, Any]) -> Tensor:
    data = b64decode(said["data"], validate=True)
    return Tensor(said["name"], said["datatype"], tuple(said["shape"]), data, said["form"])


def asked_output(said: Mapping[str, Any]) -> RequestedOutput:
    return RequestedOutput(said["name"], said.get("form"), said.get("classes"))


def result(client: Client, one: CallerRequest, timeout: float) -> dict[str, Any]:
    try:
        found = client.infer(one, timeout)
    except UnsupportedError as error:
        return {"cannot": str(error)}
    except RefusedError as error:
        status = {"status": error.status} if error.status else {}
        return {"error": {"message": str(error), **status}}
    identity = {"id": found.id} if found.id is not None else {}
    return {"outputs": shown(one, found.outputs), **identity}


def shown(_asked: CallerRequest, outputs: Sequence[Tensor]) -> list[dict[str, Any]]:
    return [shown_tensor(output) for output in outputs]


def shown_tensor(output: Tensor) -> dict[str, Any]:
    data = b64encode(output.data).decode()
    return {"name": output.name, "datatype": output.datatype, "shape": list(output.shape), "data": data}


def serve(commands: TextIO, answers: TextIO) -> None:
    adapter = Adapter()
    for line in commands:
        answers.write(json.dumps(adapter.answered(json.loads(line))) + "\n")
        answers.flush()
    adapter.close()
