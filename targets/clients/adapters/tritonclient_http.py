"""Adapter: tritonclient.http."""

from __future__ import annotations

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
        if at_once:
            started = [self.start(each) for each in inferences]
            return [attempted(lambda each=each: given(each.get_result()), status) if not isinstance(each, dict) else each
                    for each in started]  # fmt: skip
        return [attempted(lambda each=each: given(self.client.infer(**asked(each))), status) for each in inferences]

    def start(self, inference: Json) -> Any:
        """Return a request that is under way, or the result of one that cannot be made."""
        under_way: list[Any] = []
        ended = attempted(lambda: under_way.append(self.client.async_infer(**asked(inference))) or {}, status)
        return under_way[0] if under_way else ended


if __name__ == "__main__":
    serve("tritonclient", ["http"], Client, "tritonclient.http")
