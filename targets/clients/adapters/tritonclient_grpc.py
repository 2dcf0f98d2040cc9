"""Adapter: tritonclient.grpc."""

from __future__ import annotations

from functools import partial
from queue import SimpleQueue
from typing import Any

import tritonclient.grpc as triton
from lines import Json, attempted, failed, serve
from triton_grpc import asked, given, status

Ended = SimpleQueue[tuple[Any, Any]]


class Client:
    """One `InferenceServerClient`."""

    def __init__(self, _transport: str, address: str, timeout: float) -> None:
        self.client, self.timeout = triton.InferenceServerClient(address), timeout

    def infer(self, inferences: list[Json], at_once: bool) -> list[Json]:
        """Make inferences."""
        if not at_once:
            return [attempted(partial(self.one, each), status) for each in inferences]
        queues: list[Ended] = [SimpleQueue() for _ in inferences]
        started = [
            attempted(partial(self.start, each, queue), status) for each, queue in zip(inferences, queues, strict=True)
        ]
        return [ended or self.end(queue) for ended, queue in zip(started, queues, strict=True)]

    def one(self, inference: Json) -> Json:
        """Make one inference."""
        return given(self.client.infer(**asked(inference, self.timeout)))

    def start(self, inference: Json, queue: Ended) -> Json:
        """Start an inference whose end comes into the queue; return nothing yet."""
        self.client.async_infer(
            callback=lambda result, error: queue.put((result, error)), **asked(inference, self.timeout)
        )
        return {}

    def end(self, queue: Ended) -> Json:
        """Return the result of an inference that is under way."""
        answer, error = queue.get()
        return failed(error, status) if error is not None else attempted(lambda: given(answer), status)


if __name__ == "__main__":
    serve("tritonclient", ["grpc"], Client, "tritonclient.grpc")
