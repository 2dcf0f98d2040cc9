"""Adapter: tritonclient.grpc.aio."""

from __future__ import annotations

from lines import Json, Loop, serve
from triton_grpc import asked, given, status
from tritonclient.grpc import aio

LOOP = Loop()


class Client:
    """One `InferenceServerClient` of asyncio."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client, self.timeout = LOOP.run(self.connected(address)), timeout

    @staticmethod
    async def connected(address: str) -> aio.InferenceServerClient:
        """Make it inside of the loop, as it asks."""
        return aio.InferenceServerClient(address)

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return LOOP.infer(self.one, inferences, at_once, status)

    async def one(self, inference: Json) -> Json:
        """Make one inference."""
        return given(await self.client.infer(**asked(inference, self.timeout)))


if __name__ == "__main__":
    serve("tritonclient", ["grpc"], Client, "tritonclient.grpc.aio")
