"""The gRPC server in this process, and calls of it in protobuf's text form: a test says exactly what was sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import text_format
from tritonclient.grpc import service_pb2

from reference_server import models
from reference_server.grpc_server import GrpcServer

TIMEOUT = 10.0
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
PATH = "/inference.GRPCInferenceService/"

Message = Any  # the generated classes have no types


@dataclass(frozen=True)
class GrpcConnection:
    """A connection to a running server."""

    address: str
    channel: Any

    def call(self, method: str, message: Message, **options: Any) -> Message:
        """Call a method and return its response message; raises grpc.RpcError."""
        octets = self.exchange(PATH + method, message.SerializeToString(), **options)
        return getattr(service_pb2, f"{method}Response").FromString(octets)

    def infer(self, request: str) -> Message:
        """Call ModelInfer; `request` is a ModelInferRequest in text form."""
        return self.call("ModelInfer", parse_message("ModelInferRequest", request))

    def exchange(self, path: str, octets: bytes, **options: Any) -> bytes:
        """Send any bytes anywhere and return the bytes of the answer; raises grpc.RpcError."""
        answer: bytes = self.channel.unary_unary(path)(octets, timeout=TIMEOUT, **options)
        return answer


def parse_message(kind: str, text: str) -> Message:
    """Return a message of the class `kind` from its text form."""
    return text_format.Parse(text, getattr(service_pb2, kind)())


@contextmanager
def serve() -> Iterator[GrpcConnection]:
    """Start the server on a free port, and stop it afterwards."""
    with GrpcServer(models.load(), "127.0.0.1", 0, MAX_MESSAGE_BYTES) as server, connect(server.address) as opened:
        yield opened


@contextmanager
def connect(address: str) -> Iterator[GrpcConnection]:
    """Connect to a server that runs."""
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, options=unlimited) as channel:
        yield GrpcConnection(address, channel)


def read_status(error: Any) -> tuple[str, str]:
    """Return code and message of the status that a call ended with."""
    return error.value.code().name, error.value.details()
