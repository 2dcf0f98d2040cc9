"""The gRPC server: the listening port, the dispatch to methods, and the status of every refusal.

gRPC is a second transport to the same models; its dependencies are in the extra `grpc`. A call passes through this
module, then grpc_methods, grpc_request and grpc_contents, the model, grpc_response. This module, not grpc, parses
messages, so that a malformed message is refused like any other bad request.

An event loop in its own thread accepts calls, so that a call whose message arrives slowly occupies no worker thread.
With a thread per call, slow calls could occupy every thread and block all other clients.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Any, NoReturn, Self, TypeVar

import grpc

from reference_server import grpc_methods, grpc_request, workers
from reference_server.errors import InferenceError, format_value
from reference_server.grpc_methods import SERVICE, Method, Models
from reference_server.limits import get_limits

MAX_MESSAGE_CHARS = 1000  # characters: a status travels in a header, and clients drop headers of 8 KiB

# The gRPC status for each HTTP status of a refusal.
CODES = {400: grpc.StatusCode.INVALID_ARGUMENT, 404: grpc.StatusCode.NOT_FOUND, 413: grpc.StatusCode.RESOURCE_EXHAUSTED}


class GrpcServer:
    """A gRPC server that listens from the start and serves in a `with` block.

    `address`: `host:port`.
    """

    def __init__(self, models: Models, host: str, port: int, max_message: int) -> None:
        """Listen.

        Args:
            models: models by name.
            host: an IP address.
            port: 0 for a free port.
            max_message: gRPC refuses a request message of more bytes, compressed or not, with RESOURCE_EXHAUSTED.

        Raises OSError: the port is not available.
        """
        shown_host = f"[{host}]" if ":" in host else host
        try:
            self._server, number = run_in_loop(
                _start_server(Service(models), f"{shown_host}:{port}", make_options(max_message))
            )
        except RuntimeError as error:
            raise OSError(error) from None
        self.address = f"{shown_host}:{number}"

    def __enter__(self) -> Self:
        run_in_loop(self._server.start())
        return self

    def __exit__(self, *_: object) -> None:
        stopping = start_in_loop(self._server.stop(STOP_SECONDS))
        workers.track_work(stopping)  # while it runs, interpreter exit would wait for it
        with suppress(TimeoutError):
            stopping.result(STOP_SECONDS + ABANDON_SECONDS)


class Service:
    """Finds the handler of a call by its path, in the method `service`, which grpc calls."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.methods = grpc_methods.get_methods()

    def service(self, call: Any) -> Any:
        """Return the handler of a call, before the messages of the call arrive."""
        service, _, name = call.method.removeprefix("/").rpartition("/")
        if service == SERVICE and name in self.methods:
            return grpc.unary_unary_rpc_method_handler(make_handler(self.models, self.methods[name]))
        return grpc.stream_stream_rpc_method_handler(make_unknown_handler(call.method))


def make_handler(models: Models, method: Method) -> Callable[[bytes, Any], bytes]:
    """Return a handler that converts request bytes to response bytes, or aborts the call with a status."""

    def handle(octets: bytes, context: Any) -> bytes:
        try:
            with get_lock(len(octets)):
                return answer(models, method, octets)
        except InferenceError as error:
            code, text = get_status(error)
        except Exception:  # this server is at fault: the traceback goes to standard error, not to the client
            traceback.print_exc()
            code, text = grpc.StatusCode.INTERNAL, "internal error"
        refuse(context, code, text)

    return handle


def make_unknown_handler(path: str) -> Callable[[Any, Any], Awaitable[None]]:
    """Return a handler that refuses a call, whether the client sends one message or a stream."""
    text = f"no method {format_value(path)}; {SERVICE} has {', '.join(grpc_methods.get_methods())}"

    async def handle(_messages: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, shorten_message(text))

    return handle


def answer(models: Models, method: Method, octets: bytes) -> bytes:
    """Answer a call: convert the bytes of the request message to the bytes of the response message."""
    grpc_request.check_message(octets)
    octets_of_answer: bytes = method.call(
        models, grpc_methods.parse_message(method.request, octets)
    ).SerializeToString()
    return octets_of_answer


def get_status(error: InferenceError) -> tuple[Any, str]:
    """Return the code and message of the status for an error."""
    return CODES[error.status], error.message


def refuse(context: Any, code: Any, text: str) -> NoReturn:
    """End a call with a status."""
    context.abort(code, shorten_message(text))
    raise AssertionError("abort raises")


def shorten_message(text: str) -> str:
    """Return a status message, truncated if it is too long."""
    return text if len(text) <= MAX_MESSAGE_CHARS else text[:MAX_MESSAGE_CHARS] + "..."


# --- the port --------------------------------------------------------------------------------------------------------

MAX_WORKERS = 64
STOP_SECONDS = 0.75  # time for running calls to finish at shutdown
ABANDON_SECONDS = 0.25  # additional time, after which running work is abandoned
MAX_STREAMS = 100  # concurrent calls on a connection
IDLE_SECONDS = 30  # a connection without a call is closed after this time
GRACE_SECONDS = 10  # time for running calls on a connection that has reached its maximum age
PING_SECONDS = 10  # minimum time between a client's pings; more frequent pings close the connection

# Calls with large messages run one at a time: together they would leave little time for others.
_long = threading.Semaphore()

Result = TypeVar("Result")


def make_options(max_message: int) -> list[tuple[str, int]]:
    """Return the limits as options of grpc.

    Beyond a limit, grpc refuses a call with RESOURCE_EXHAUSTED or closes the connection.
    """
    limits = get_limits()
    return [
        ("grpc.max_receive_message_length", max_message),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", limits.head),
        ("grpc.absolute_max_metadata_size", limits.head),
        ("grpc.max_concurrent_streams", MAX_STREAMS),
        ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
        ("grpc.max_connection_age_ms", int(limits.body_seconds * 1000)),
        ("grpc.max_connection_age_grace_ms", GRACE_SECONDS * 1000),
        ("grpc.server_handshake_timeout_ms", int(limits.wait_seconds * 1000)),
        ("grpc.http2.min_ping_interval_without_data_ms", PING_SECONDS * 1000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_SECONDS * 1000),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.so_reuseport", 0),  # otherwise a second server on this port would silently take some of the calls
    ]


def get_lock(size: int) -> AbstractContextManager[object]:
    """Return the lock for a call with a message of `size` bytes; long messages share a lock, short ones need none."""
    return _long if size > workers.MAX_INLINE_BYTES else nullcontext()


async def _start_server(service: Any, address: str, options: list[tuple[str, int]]) -> tuple[Any, int]:
    server = grpc.aio.server(WorkerPool(MAX_WORKERS, "grpc"), options=options)
    server.add_generic_rpc_handlers((service,))
    return server, server.add_insecure_port(address)


def run_in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in the shared event loop and return its result."""
    return start_in_loop(work).result()


def start_in_loop(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Start a coroutine in the shared event loop."""
    return asyncio.run_coroutine_threadsafe(work, _start_loop())


class WorkerPool(ThreadPoolExecutor):
    """Threads that run calls; the program does not wait for them when it exits."""

    def submit(self, work: Callable[..., Result], /, *given: Any, **named: Any) -> Future[Result]:
        """Start work and track it."""
        under_way = super().submit(work, *given, **named)
        workers.track_work(under_way)
        return under_way


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop, which runs until the program ends; grpc needs a single event loop per process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="grpc loop", daemon=True).start()
    return loop
