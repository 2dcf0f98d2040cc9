"""Adapter: tritonclient.http.aio."""

from __future__ import annotations

from lines import Json, Loop, serve
from triton_http import asked, given, status
from tritonclient.http import aio

LOOP = Loop()


class Client:
    """One `InferenceServerClient` of asyncio."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client = LOOP.run(self.connected(address.removeprefix("http://"), timeout))

    @staticmethod
    async def connected(address: str, timeout: float) -> aio.InferenceServerClient:
        """Make it inside of the loop, as it asks."""
        return aio.InferenceServerClient(address, conn_timeout=timeout)

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return LOOP.infer(self.one, inferences, at_once, status)

    async def one(self, inference: Json) -> Json:
        """Make one inference."""
        return given(await self.client.infer(**asked(inference)))


if __name__ == "__main__":
    serve("tritonclient", ["http"], Client, "tritonclient.http.aio")
