"""The recording proxy: clients connect to it, and a separate thread forwards their bytes to the server."""

from __future__ import annotations

import asyncio
import os
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final

from conformance.clients.recording.forwarding import Connection, Tap, Upstream
from conformance.clients.recording.recorder import Recorder, Store
from conformance.clients.recording.records import Listener, RecordedExchange

MAX_STOP_S: Final = 3.0  # seconds for open connections at the end
_BACKLOG: Final = 512


class PortError(OSError):
    """The proxy cannot listen at a port; the message is one line."""


@dataclass(frozen=True, slots=True)
class Route:
    """A port of the proxy, the server to which it forwards, and how to record its connections.

    `port`: the port to listen at; 0 for a free port.
    """

    port: int
    upstream: Upstream
    tap: Callable[[Recorder], Tap]


class Proxy:
    """A recording proxy with a port for each route.

    Attributes:
        ports: the ports, in the order of the routes.
        fault: the first exception of the listener, or None. Forwarding continues after an exception.

    Args:
        routes: at least one.
        host: the address to listen at.
    """

    def __init__(self, routes: Sequence[Route], host: str = "127.0.0.1") -> None:
        self.ports: list[int] = []
        self.fault: BaseException | None = None
        self._routes = routes
        self._host = host
        self._store = Store()
        self._numbers = count(1)
        self._loop = asyncio.new_event_loop()
        self._judge = ThreadPoolExecutor(1, "judge")
        self._thread = threading.Thread(target=self._loop.run_forever, name="recording", daemon=True)
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()
        self._listener: Listener | None = None

    def listen(self) -> None:
        """Bind the ports; connections are accepted only after `serve`. Raises PortError: a port is not available."""
        self._thread.start()
        for route in self._routes:
            try:
                self._run_in_loop(self._listen(route))
            except OSError as error:
                raise PortError(
                    f"cannot listen at {self._host}:{route.port}: {os.strerror(error.errno or 0)}"
                ) from error

    def serve(self, listener: Listener) -> None:
        """Accept and forward connections; call the listener in a separate thread."""
        self._listener = listener
        for server in self._servers:
            self._run_in_loop(server.start_serving())

    def close(self) -> None:
        """Stop listening, close open connections, and report their last messages to the listener; idempotent."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._run_in_loop(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._judge.shutdown()
        self._loop.close()

    def _run_in_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _listen(self, route: Route) -> None:
        server = await asyncio.start_server(
            partial(self._accept, route), self._host, route.port, backlog=_BACKLOG, start_serving=False
        )
        self._servers.append(server)
        self.ports.append(server.sockets[0].getsockname()[1])

    async def _accept(self, route: Route, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker
        assert self._listener is not None  # noqa: S101 - likewise: set by `serve`
        self._open.add(task)
        queue = _ListenerQueue(self._listener, self._judge, self._store_fault)
        recorder = Recorder(queue, self._store, self._numbers)
        try:
            await Connection(route.tap(recorder), queue.wait, queue.report_unread).forward(
                reader, writer, route.upstream
            )
        except asyncio.CancelledError:  # at the end of the recording
            writer.transport.abort()
        finally:
            self._open.discard(task)

    def _store_fault(self, fault: BaseException) -> None:
        self.fault = self.fault or fault

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=MAX_STOP_S)


class _ListenerQueue:
    """Passes the events of one connection to the thread of the listener, in order."""

    def __init__(
        self, listener: Listener, judge: ThreadPoolExecutor, report_fault: Callable[[BaseException], None]
    ) -> None:
        self._listener = listener
        self._judge = judge
        self._report_fault = report_fault
        self._pending: list[Future[None]] = []
        self._count = 0

    def handle_request(self, recorded: RecordedExchange) -> None:
        """Queue a request."""
        self._count += 1
        self._submit(self._listener.handle_request, recorded)

    def handle_answer(self, recorded: RecordedExchange) -> None:
        """Queue the answer to a request."""
        self._submit(self._listener.handle_answer, recorded)

    def handle_reset(self, recorded: RecordedExchange) -> None:
        """Queue a reset by the client."""
        self._submit(self._listener.handle_reset, recorded)

    def report_unread(self, why: str) -> None:
        """Queue a report that bytes were forwarded without being recorded."""
        self._submit(self._listener.report_unread, why)

    async def wait(self) -> int:
        """Wait until the listener has handled all queued events; return the number of requests so far.

        The end of the recording cancels this wait, but the listener still handles every event.
        """
        pending, self._pending = self._pending, []
        await asyncio.shield(asyncio.gather(*map(asyncio.wrap_future, pending), return_exceptions=True))
        return self._count

    def _submit(self, handle: Callable[..., None], event: object) -> None:
        future = self._judge.submit(handle, event)
        future.add_done_callback(self._check_fault)
        self._pending.append(future)

    def _check_fault(self, future: Future[None]) -> None:
        fault = future.exception()
        if isinstance(fault, Exception):
            self._report_fault(fault)
