"""The reference server, slow in one kind of inference: `python -m tests.support.slow_server KIND SECONDS [OPTION ...]`.

It answers such requests as late as this, and others at once, over both transports; the options are the server's own.
With the KIND `worker` every inference takes so long in the only worker, and the others queue; a number is a number of
workers. `--variation=NAME` makes the server that valid server as well.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from math import prod
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import __main__ as program
from reference_server.faults import fault, switch_on
from reference_server.faults.edits import get_entries
from reference_server.faults.ended_servers import list_dimensions, parse_document
from tests.support import valid_servers

Shapes = Sequence[Sequence[int]]

LARGE = 1000  # elements
VARIATION = "--variation="
MANY = 256  # workers: more than a run has requests in flight
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
    workers = ThreadPoolExecutor(1 if kind == "worker" else int(kind) if kind.isdigit() else MANY)
    is_slow = KINDS.get(kind, KINDS["all"])

    def find_pause(shapes: Shapes) -> float:
        return seconds if is_slow(shapes) else 0.0

    @fault("app.Service.infer")
    async def late_over_http(original: Any, service: Any, http: Request) -> Response:
        """Inferences of this kind are late over HTTP."""
        inputs = get_entries(parse_document(http, await http.body()), "inputs")
        is_slow_coding = kind == GZIP and "gzip" in http.headers.get("Accept-Encoding", "")
        pause = seconds if is_slow_coding else find_pause([list_dimensions(item) for item in inputs])
        await asyncio.get_running_loop().run_in_executor(workers, time.sleep, pause)
        response: Response = await original(service, http)
        return response

    @fault("grpc_methods.model_infer")
    def late_over_grpc(original: Any, models: Any, message: Any) -> Any:
        """Inferences of this kind are late over gRPC."""
        workers.submit(time.sleep, find_pause([list(entry.shape) for entry in message.inputs])).result()
        return original(models, message)

    named = [option.removeprefix(VARIATION) for option in options if option.startswith(VARIATION)]
    sys.argv = [sys.argv[0], *(option for option in options if not option.startswith(VARIATION))]
    with ExitStack() as stack:
        for one in (late_over_http, late_over_grpc, *(valid_servers.load()[name] for name in named)):
            stack.enter_context(switch_on(one))
        program.main()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
