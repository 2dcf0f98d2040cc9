"""The gRPC peer: generic handlers of grpcio on raw bytes. Imported only if grpcio is installed.

The server of grpcio cannot close a connection in the middle of a call. So clients connect through a relay, which
forwards bytes unread; its port stays open when connections close.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any, Final

import grpc
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError

from conformance.clients.answers.script import CallAnswer
from conformance.clients.peer.http_peer import MAX_SILENCE_S
from conformance.clients.peer.scenario import (
    SERVER,
    PeerScript,
    ReceivedRequest,
    make_model_config,
    make_model_metadata,
    make_model_statistics,
)
from conformance.clients.recording.masking import mask_request
from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_request import GRPC_METHOD, SERVICE, load_stubs

_READ: Final = 64 * 1024


class Relay:
    """Forwards connections from a free port of 127.0.0.1 to another port."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def disconnect(self) -> None:
        """Close every open connection; the port stays open."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the port and every connection, and wait until every thread has ended."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.disconnect()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for connection in (near, far):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=self._forward, args=(near, far))
                with self._lock:
                    self._open |= {near, far}
                    self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
                thread.start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        """Forward bytes in both directions until either side closes, then close both sockets.

        The sockets are closed only after both directions have ended. A new connection may get the file descriptor of a
        closed socket, and the other direction would then use the wrong one.
        """
        back = threading.Thread(target=_forward_one_way, args=(far, near))
        back.start()
        _forward_one_way(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
        near.close()
        far.close()


def _forward_one_way(source: socket.socket, sink: socket.socket) -> None:
    """Forward bytes in one direction until either side closes, then shut both sides down."""
    with suppress(OSError):
        while octets := source.recv(_READ):
            sink.sendall(octets)
    for connection in (source, sink):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


THREADS: Final = 72  # more than there are concurrent calls
INFER: Final = f"/{SERVICE}/ModelInfer"
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
]
Context = Any  # grpcio has no types
Method = Callable[[bytes, Context], bytes]


class GrpcPeer:
    """The scripted gRPC server, on a free port of 127.0.0.1."""

    def __init__(self, peer_script: PeerScript) -> None:
        self._peer_script = peer_script
        self._closing = Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self._server = grpc.server(self._pool, handlers=[_Handlers(self._build_methods())], options=_OPTIONS)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self._relay, self._port = Relay(port), port

    @property
    def address(self) -> str:
        """The current address for clients."""
        return self._relay.address

    def change_port(self) -> None:
        """Switch to another port; close the connections to the current one."""
        self._relay.close()
        self._relay = Relay(self._port)

    def close(self) -> None:
        """End every call, close the port, and wait until every thread has ended."""
        self._closing.set()
        self._relay.close()
        self._server.stop(None).wait()  # with a grace period, grpcio leaves a thread running for a moment
        self._pool.shutdown()

    def _build_methods(self) -> dict[str, Method]:
        named: dict[str, Callable[[Any], Any]] = {
            "ServerLive": lambda _: {"live": True},
            "ServerReady": lambda _: {"ready": True},
            "ServerMetadata": lambda _: SERVER,
            "ModelReady": lambda request: {"ready": self._peer_script.find_inference(request.name) is not None},
            "ModelMetadata": lambda request: self._build_model_document(request.name, make_model_metadata),
            "ModelConfig": lambda request: self._build_model_document(
                request.name, lambda *found: {"config": make_model_config(*found)}
            ),
            "ModelStatistics": lambda request: self._build_model_document(
                request.name, lambda one, _: make_model_statistics(one, self._peer_script.count_requests(one.model))
            ),
        }
        return {
            INFER: self._infer,
            **{f"/{SERVICE}/{name}": _build_method(name, build_document) for name, build_document in named.items()},
        }

    def _build_model_document(self, name: str, build_document: Callable[..., dict[str, Any]]) -> dict[str, Any] | None:
        found = self._peer_script.find_inference(name)
        return None if found is None else build_document(*found)

    def _infer(self, body: bytes, context: Context) -> bytes:
        metadata = tuple((key, str(value)) for key, value in context.invocation_metadata())
        received = mask_request(ClientRequest(GRPC_METHOD, INFER, metadata, body))
        model = _parse_model_name(body)
        scenario = self._peer_script.find_scenario(model)
        if scenario is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "this peer has no script yet")
            return b""
        index = scenario.match_inference(model)
        answer = scenario.answer(received, index)
        if not isinstance(answer, CallAnswer):
            raise TypeError("the script returned an HTTP answer to a gRPC call")
        scenario.store_request(index, ReceivedRequest(received, answer, self.address))
        return self._apply_answer(answer, context)

    def _apply_answer(self, answer: CallAnswer, context: Context) -> bytes:
        if answer.is_silent:
            self._wait_for_end(context)
        if answer.is_closed:
            self._relay.disconnect()
        elif answer.is_cancelled:
            context.cancel()
        elif answer.code != "OK":
            context.abort(grpc.StatusCode[answer.code], answer.details)
        return answer.message

    def _wait_for_end(self, context: Context) -> None:
        """Wait until the client ends the call, the peer closes, or `MAX_SILENCE_S` are over."""
        ended = Event()
        context.add_callback(ended.set)
        for _ in range(int(MAX_SILENCE_S * 20)):
            if ended.wait(0.05) or self._closing.is_set():
                return


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    """Maps the path of a call to its method; requests and answers stay bytes."""

    def __init__(self, methods: dict[str, Method]) -> None:
        self._methods = methods

    def service(self, details: Any) -> Any:
        """Return the handler of a call, or None if there is no such method."""
        method = self._methods.get(details.method)
        return None if method is None else grpc.unary_unary_rpc_method_handler(method)


def _build_method(name: str, build_document: Callable[[Any], dict[str, Any] | None]) -> Method:
    """Return a method that answers with the JSON object of `build_document`, converted to a message."""

    def method(body: bytes, context: Context) -> bytes:
        document = build_document(getattr(load_stubs(), f"{name}Request").FromString(body))
        if document is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such model")
        octets: bytes = ParseDict(document, getattr(load_stubs(), f"{name}Response")()).SerializeToString()
        return octets

    return method


def _parse_model_name(body: bytes) -> str | None:
    """Return the model name of a call, or None if the message cannot be parsed."""
    try:
        name: str = load_stubs().ModelInferRequest.FromString(body).model_name
    except DecodeError:
        return None
    return name
