"""The client over gRPC: one channel, bytes in and out."""

from __future__ import annotations

from typing import Any

import grpc

from tests.clients.honest import grpc_answer, grpc_request
from tests.clients.honest.caller import CallerRequest, CallerResult, MalformedError, RefusedError

METHOD = "/inference.GRPCInferenceService/ModelInfer"
CODINGS = {None: None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


class GrpcClient:
    """A client of one server; several threads may use it at once."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.channel = grpc.insecure_channel(address, options=options())

    def infer(self, asked: CallerRequest, timeout: float) -> CallerResult:
        """Return what the server answers; raises RefusedError, and CannotError before anything is sent."""
        try:
            return grpc_answer.given(asked, self.call(grpc_request.request(asked), asked.coding, timeout))
        except MalformedError as error:
            raise RefusedError(f"wrong answer: {error}") from error

    def call(self, message: bytes, coding: str | None, timeout: float) -> bytes:
        """Return the message with which a call ends; raises RefusedError for a status other than OK."""
        call = self.channel.unary_unary(method(), request_serializer=None, response_deserializer=None)
        try:
            answer: bytes = call(message, timeout=deadline(timeout), compression=CODINGS[coding], wait_for_ready=True)
        except grpc.RpcError as error:
            return refused(error)
        return answer

    def close(self) -> None:
        self.channel.close()


def options() -> list[tuple[str, int]]:
    """Return how the channel is set up: messages of any size, and a new connection soon after one is lost."""
    return [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]


def method() -> str:
    return METHOD


def deadline(timeout: float) -> float | None:
    return timeout


def refused(error: Any) -> bytes:
    """Raise what the caller is told of a call that failed."""
    raise RefusedError(error.details() or error.code().name, error.code().name) from error
