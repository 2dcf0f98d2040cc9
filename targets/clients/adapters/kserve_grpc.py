"""Adapter: kserve.InferenceGRPCClient."""

from __future__ import annotations

from typing import Any

import grpc
from kserve import InferenceGRPCClient
from kserve_requests import asked, given
from lines import Json, Loop, refuse, serve

LOOP = Loop()


class Client:
    """One `InferenceGRPCClient`."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client = LOOP.run(self.connected(address, timeout))

    @staticmethod
    async def connected(address: str, timeout: float) -> InferenceGRPCClient:
        """Make it inside of the loop, as it asks."""
        return InferenceGRPCClient(address, timeout=timeout)

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return LOOP.infer(self.one, inferences, at_once, status)

    async def one(self, inference: Json) -> Json:
        """Make one inference; forms of outputs are the server's affair over gRPC."""
        refuse(
            inference,
            raw="raw binary requests are of HTTP",
            coding="KServe's client does not encode requests",
            accepts="KServe's client does not choose codings of answers",
        )
        outputs = inference.get("outputs")
        if outputs is not None:
            outputs = [{name: value for name, value in one.items() if name != "form"} for one in outputs]
        return given(await self.client.infer(asked({**inference, "outputs": outputs, "all_outputs": None})))


def status(error: Any) -> str:
    """Return the name of the code of an error, where it has one."""
    return str(error.code().name) if isinstance(error, grpc.RpcError) else ""


if __name__ == "__main__":
    serve("kserve", ["grpc"], Client, "kserve.InferenceGRPCClient")
