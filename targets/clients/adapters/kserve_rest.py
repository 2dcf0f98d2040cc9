"""Adapter: kserve.InferenceRESTClient."""

from __future__ import annotations

from typing import Any

import httpx
from kserve import InferenceRESTClient
from kserve.inference_client import RESTConfig
from kserve_requests import asked, given
from lines import Json, Loop, refuse, serve

LOOP = Loop()


class Client:
    """One `InferenceRESTClient`."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=timeout))
        self.address = address

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        return LOOP.infer(self.one, inferences, at_once, status)

    async def one(self, inference: Json) -> Json:
        """Make one inference."""
        refuse(inference, raw="KServe's client has no raw binary requests", coding="it does not encode requests")
        accepts = inference.get("accepts")
        headers = {"Accept-Encoding": accepts} if accepts else None
        request = asked(inference)
        return given(await self.client.infer(self.address, request, inference["model"], headers=headers))


def status(error: Any) -> str:
    """Return the status of an error, where it has one."""
    return str(error.response.status_code) if isinstance(error, httpx.HTTPStatusError) else ""


if __name__ == "__main__":
    serve("kserve", ["http"], Client, "kserve.InferenceRESTClient")
