"""The gRPC side: the listening port, the way to a method, and the status that every refusal has.

The second door to the same models; what it needs beyond HTTP comes with the extra `grpc`. A call passes through here,
then grpc_methods, grpc_request and grpc_contents, the model, grpc_response. Messages are parsed in our own step, so
that one that is none is refused like anything else.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc

from reference_server import grpc_methods
from reference_server.errors import InferenceError, shown
from reference_server.grpc_methods import SERVICE, Method, Models

WORKERS = 4
STOP_SECONDS = 2.0
SHOWN_MESSAGE = 1000  # characters: a status travels in a header, and clients drop headers of 8 KiB

# What status the refusals of HTTP have here.
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
            max_message: a request message of more bytes is refused with RESOURCE_EXHAUSTED.

        Raises:
            OSError: the port cannot be had.
        """
        options = [
            ("grpc.max_receive_message_length", max_message),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),  # otherwise a second server would take part of the calls, and say nothing
        ]
        self._server = grpc.server(ThreadPoolExecutor(WORKERS, "grpc"), options=options)
        self._server.add_generic_rpc_handlers((Service(models, max_message),))
        shown_host = f"[{host}]" if ":" in host else host
        try:
            self.address = f"{shown_host}:{self._server.add_insecure_port(f'{shown_host}:{port}')}"
        except RuntimeError as error:
            raise OSError(error) from None

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(STOP_SECONDS).wait()


class Service:
    """Finds the handler of a call by its path; gRPC takes any object with this one method."""

    def __init__(self, models: Models, max_message: int) -> None:
        self.models = models
        self.max_message = max_message
        self.methods = grpc_methods.by_name()

    def service(self, call: Any) -> Any:
        """Return the handler of a call, which is yet to be read."""
        service, _, name = call.method.removeprefix("/").rpartition("/")
        if service == SERVICE and name in self.methods:
            return grpc.unary_unary_rpc_method_handler(self.handler(self.methods[name]))
        return grpc.stream_stream_rpc_method_handler(not_implemented(call.method))

    def handler(self, method: Method) -> Callable[[bytes, Any], bytes]:
        """Return what takes the bytes of a request and returns those of its answer, or ends the call with a status."""

        def handle(octets: bytes, context: Any) -> bytes:
            try:
                check_size(len(octets), self.max_message)
                message = grpc_methods.parsed(method.request, octets)
                answer: bytes = method.call(self.models, message).SerializeToString()
                return answer
            except InferenceError as error:
                code, text = CODES[error.status], error.message
            except Exception:
                traceback.print_exc()
                code, text = grpc.StatusCode.INTERNAL, "internal error"
            refuse(context, code, text)
            raise AssertionError  # refuse does not return

        return handle


def check_size(size: int, limit: int) -> None:
    """Refuse a message that is over the limit once its compression is undone; gRPC itself looks at it before."""
    if size > limit:
        raise InferenceError(f"the message has {size} bytes, which is over the limit of {limit}", status=413)


def refuse(context: Any, code: Any, text: str) -> None:
    """End a call with a status; raises what gRPC takes for that."""
    context.abort(code, text if len(text) <= SHOWN_MESSAGE else text[:SHOWN_MESSAGE] + "...")


def not_implemented(path: str) -> Callable[[Any, Any], Iterator[bytes]]:
    """Return what refuses a call, however many messages the client means to send."""
    names = ", ".join(grpc_methods.by_name())

    def handle(_messages: Any, context: Any) -> Iterator[bytes]:
        refuse(context, grpc.StatusCode.UNIMPLEMENTED, f"no method {shown(path)}; {SERVICE} has {names}")
        return iter(())

    return handle
