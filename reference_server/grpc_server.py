"""The gRPC side: the listening port, the way to a method, and the status that every refusal has.

The second transport to the same models; what it needs beyond HTTP comes with the extra `grpc`. A call passes through
here, then grpc_methods, grpc_request and grpc_contents, the model, grpc_response. Messages are parsed in a step of our
own, so that one that is none is refused like anything else.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Self

import grpc

from reference_server import grpc_methods, grpc_size
from reference_server.errors import InferenceError, format_value
from reference_server.grpc_methods import SERVICE, Method, Models
from reference_server.grpc_port import Port, take_turn

MAX_MESSAGE_CHARS = 1000  # characters: a status travels in a header, and clients drop headers of 8 KiB

# The status here of what HTTP refuses with one of its own.
CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class GrpcServer:
    """A gRPC server that listens from the start and serves in a `with` block.

    Attributes:
        address: `host:port`.
    """

    def __init__(self, models: Models, host: str, port: int, max_message: int) -> None:
        """Listen.

        Args:
            models: by name.
            host: an IP address.
            port: 0 for a free one.
            max_message: gRPC refuses a request message of more bytes, compressed or not, with RESOURCE_EXHAUSTED.

        Raises:
            OSError: the port cannot be had.
        """
        shown_host = f"[{host}]" if ":" in host else host
        self._port = Port(Service(models), f"{shown_host}:{port}", max_message)
        self.address = f"{shown_host}:{self._port.number}"

    def __enter__(self) -> Self:
        self._port.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._port.__exit__()


class Service:
    """Finds the handler of a call by its path; gRPC takes any object with this one method."""

    def __init__(self, models: Models) -> None:
        self.models = models
        self.methods = grpc_methods.by_name()

    def service(self, call: Any) -> Any:
        """Return the handler of a call, whose messages are yet to come."""
        service, _, name = call.method.removeprefix("/").rpartition("/")
        if service == SERVICE and name in self.methods:
            return grpc.unary_unary_rpc_method_handler(handler(self.models, self.methods[name]))
        return grpc.stream_stream_rpc_method_handler(make_unknown_handler(call.method))


def handler(models: Models, method: Method) -> Callable[[bytes, Any], bytes]:
    """Return what takes the bytes of a request and returns those of its answer, or ends the call with a status."""

    def handle(octets: bytes, context: Any) -> bytes:
        try:
            with take_turn(len(octets)):
                return answer(models, method, octets)
        except InferenceError as error:
            code, text = status(error)
        except Exception:  # this server is at fault: the traceback goes to standard error, not to the client
            traceback.print_exc()
            code, text = grpc.StatusCode.INTERNAL, "internal error"
        refuse(context, code, text)

    return handle


def make_unknown_handler(path: str) -> Callable[[Any, Any], Awaitable[None]]:
    """Return what refuses a call, however many messages the client means to send."""
    text = f"no method {format_value(path)}; {SERVICE} has {', '.join(grpc_methods.by_name())}"

    async def handle(_messages: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, shorten_message(text))

    return handle


def answer(models: Models, method: Method, octets: bytes) -> bytes:
    """Answer a call: from the bytes of the request message to those of the response message."""
    grpc_size.check_message(octets)
    octets_of_answer: bytes = method.call(
        models, grpc_methods.parse_message(method.request, octets)
    ).SerializeToString()
    return octets_of_answer


def status(error: InferenceError) -> tuple[Any, str]:
    """Return code and message of the status that refuses a call."""
    return CODES[error.status], error.message


def refuse(context: Any, code: Any, text: str) -> NoReturn:
    """End a call with a status."""
    context.abort(code, shorten_message(text))
    raise AssertionError("abort raises")


def shorten_message(text: str) -> str:
    """Return a message as a status has it, cut where it is long."""
    return text if len(text) <= MAX_MESSAGE_CHARS else text[:MAX_MESSAGE_CHARS] + "..."
