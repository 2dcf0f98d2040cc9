"""The reference server, whose process ends at a request: `python -m tests.support.ending_server [OPTIONS] KIND`.

KIND is a text that the body of this request holds, or `raw:` for a raw binary request; options are the server's own.
With `again:` before it, a supervisor starts the server again whenever it ends. `after:N` is an honest server that its
supervisor starts again after every N requests: it answers each request that it has accepted, and then closes all
connections.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

from reference_server import __main__, app, framing
from reference_server.faults import Fault, fault, switch_on

STATUS = 3
AGAIN, AFTER = "again:", "after:"
IDLE_S = 0.05  # seconds in which the last answers leave the process
START_S = 0.3  # seconds in which nobody listens: servers take longer to start than a fork


def end_at(kind: str) -> Fault:
    """Return the fault of a process that ends at a request of this kind."""

    @fault("app.Service.infer")
    async def ending(original: Any, service: app.Service, http: Any) -> Any:
        """The process ends."""
        body = await http.body()
        if http.headers.get(framing.HEADER) == "0" if kind == "raw:" else kind.encode() in body:
            os._exit(STATUS)
        return await original(service, http)

    return ending


def end_after(count: int) -> Fault:
    """Return the behaviour of a process that ends after so many requests, and leaves none of them unanswered."""
    state = SimpleNamespace(requests=0, in_flight=0, listener=None)
    listen = __main__.listen

    def keep_listener(host: str, port: int) -> socket.socket:
        state.listener = found = listen(host, port)
        return found

    __main__.listen = keep_listener

    async def end_when_idle() -> None:
        while state.in_flight:
            await asyncio.sleep(IDLE_S)
        await asyncio.sleep(IDLE_S)
        os._exit(STATUS)

    @fault("app.Service.infer")
    async def leaving(original: Any, service: app.Service, http: Any) -> Any:
        """The process leaves."""
        state.requests, state.in_flight = state.requests + 1, state.in_flight + 1
        if state.requests == count:
            loop = asyncio.get_running_loop()
            loop.remove_reader(state.listener.fileno())
            state.listener.close()
            state.task = loop.create_task(end_when_idle())
        try:
            return await original(service, http)
        finally:
            state.in_flight -= 1

    return leaving


def stop(child: int, *_: object) -> NoReturn:
    """End the supervisor with its child."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)
    sys.exit(0)


def supervise() -> None:
    """Return in a child process, and in a new one whenever the child ends by itself; end with the last child."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        sys.argv += ["--port", str(free.getsockname()[1])]
    while child := os.fork():
        signal.signal(signal.SIGTERM, partial(stop, child))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != STATUS:
            sys.exit(status)
        time.sleep(START_S)


def main(kind: str) -> None:
    """Serve until a request of this kind comes."""
    if kind.startswith((AGAIN, AFTER)):
        supervise()
    is_honest = kind.startswith(AFTER)
    behaviour = end_after(int(kind.removeprefix(AFTER))) if is_honest else end_at(kind.removeprefix(AGAIN))
    with switch_on(behaviour):
        __main__.main()


if __name__ == "__main__":
    main(sys.argv.pop())
