"""The reference server, slow in one kind of inference: `python -m tests.support.slow_server KIND SECONDS [OPTION ...]`.

It answers such requests as late as this, and others at once, over both transports; the options are the server's own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import __main__ as program
from reference_server.faults import fault, switch_on
from reference_server.faults.ended_servers import list_dimensions, list_inputs, read_document

Shapes = Sequence[Sequence[int]]

LARGE = 1000  # elements
_started: list[bool] = []


def _is_first(_shapes: Shapes) -> bool:
    _started.append(True)
    return len(_started) == 1


GZIP = "gzip"  # slow in requests over HTTP that accept answers in gzip
# Says of the shapes of the inputs whether the server is slow.
KINDS: dict[str, Callable[[Shapes], bool]] = {
    "all": lambda _shapes: True,
    "empty": lambda shapes: any(0 in shape for shape in shapes),
    "large": lambda shapes: any(prod(shape) >= LARGE for shape in shapes),
    "first": _is_first,
    GZIP: lambda _shapes: False,
}


def main(kind: str, seconds: float, options: Sequence[str]) -> None:
    """Serve until a signal."""

    def find_pause(shapes: Shapes) -> float:
        return seconds if KINDS[kind](shapes) else 0.0

    @fault("app.Service.infer")
    async def late_over_http(original: Any, service: Any, http: Request) -> Response:
        """Inferences of this kind are late over HTTP."""
        inputs = list_inputs(await read_document(http))
        is_slow_coding = kind == GZIP and "gzip" in http.headers.get("Accept-Encoding", "")
        await asyncio.sleep(seconds if is_slow_coding else find_pause([list_dimensions(item) for item in inputs]))
        response: Response = await original(service, http)
        return response

    @fault("grpc_methods.model_infer")
    def late_over_grpc(original: Any, models: Any, message: Any) -> Any:
        """Inferences of this kind are late over gRPC."""
        time.sleep(find_pause([list(entry.shape) for entry in message.inputs]))
        return original(models, message)

    sys.argv = [sys.argv[0], *options]
    with switch_on(late_over_http), switch_on(late_over_grpc):
        program.main()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
