"""Adapter: pyotritonclient, which is made of an older tritonclient.http."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pyotritonclient.http as triton
from lines import CannotError, Json, Loop, array_of, output, refuse, result, serve

LOOP = Loop()
LOOP.loop.set_default_executor(ThreadPoolExecutor(64))  # in which it waits for answers; asyncio's own has few threads


class Client:
    """One `InferenceServerClient`; its caller limits how long it takes, since it has no timeout."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client, self.timeout = triton.InferenceServerClient(address), timeout

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return LOOP.infer(self.one, inferences, at_once, lambda _: "")

    async def one(self, inference: Json) -> Json:
        """Make one inference."""
        answer = await asyncio.wait_for(self.client.infer(**asked(inference)), self.timeout)
        said = answer.get_response()
        arrays = [(one, answer.as_numpy(one["name"])) for one in said["outputs"]]
        return result([output(one["name"], one["datatype"], array) for one, array in arrays], said.get("id"))


def asked(inference: Json) -> Json:
    """Return the arguments of `infer`."""
    refuse(inference, raw="pyotritonclient has no raw binary requests")
    if inference.get("all_outputs") == "json" and not inference.get("outputs"):
        raise CannotError("where no output is named, pyotritonclient asks for all of them as binary data")
    wishes = inference.get("outputs")
    return {
        "model_name": inference["model"],
        "model_version": inference.get("version", ""),
        "request_id": inference.get("id", ""),
        "inputs": [tensor(one) for one in inference["inputs"]],
        "outputs": None if wishes is None else [wish(one, inference.get("all_outputs")) for one in wishes],
        "request_compression_algorithm": inference.get("coding"),
        "response_compression_algorithm": inference.get("accepts"),
    }


def tensor(one: Json) -> triton.InferInput:
    """Return an input."""
    if one["datatype"] == "BF16":
        raise CannotError("pyotritonclient has no BF16")
    made = triton.InferInput(one["name"], one["shape"], one["datatype"])
    made.set_data_from_numpy(array_of(one), binary_data=one["form"] == "binary")
    return made


def wish(one: Json, usual: str | None) -> triton.InferRequestedOutput:
    """Return a requested output; the client's default is binary data."""
    form = one.get("form") or usual or "binary"
    return triton.InferRequestedOutput(one["name"], binary_data=form == "binary", class_count=one.get("classes", 0))


if __name__ == "__main__":
    serve("pyotritonclient", ["http"], Client)
