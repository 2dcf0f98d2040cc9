"""Adapter: tritonclient.http."""

from __future__ import annotations

from functools import partial
from typing import Any

import tritonclient.http as triton
from lines import Json, attempted, serve
from triton_http import asked, given, status

AT_ONCE = 32  # connections


class Client:
    """One `InferenceServerClient`."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client = triton.InferenceServerClient(
            address.removeprefix("http://"), concurrency=AT_ONCE, connection_timeout=timeout, network_timeout=timeout
        )

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        if not at_once:
            return [attempted(partial(self.one, each), status) for each in inferences]
        under_way: dict[int, Any] = {}
        started = [attempted(partial(self.start, under_way, *each), status) for each in enumerate(inferences)]
        return [ended or attempted(partial(self.end, under_way[place]), status) for place, ended in enumerate(started)]

    def one(self, inference: Json) -> Json:
        """Make one inference."""
        return given(self.client.infer(**asked(inference)))

    def start(self, under_way: dict[int, Any], place: int, inference: Json) -> Json:
        """Start an inference; return nothing yet."""
        under_way[place] = self.client.async_infer(**asked(inference))
        return {}

    def end(self, request: Any) -> Json:
        """Return what became of an inference that is under way."""
        return given(request.get_result())


if __name__ == "__main__":
    serve("tritonclient", ["http"], Client, "tritonclient.http")
