"""The target through its gRPC door: takes the requests that are made for HTTP, and sends them as gRPC messages."""

from __future__ import annotations

from typing import Any

from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.grpc_request import Edit, grpc_call, infer_message
from conformance.wire.request import InferRequest, Message


class Door:
    """One target over gRPC.

    Attributes:
        target: the same, over HTTP as well where that is judged.
    """

    def __init__(self, target: Target) -> None:
        self.target = target

    def infer(self, request: InferRequest, /, edit: Edit | None = None) -> Reply:
        """Send an inference request; `edit` changes its message."""
        return self.target.send(infer_message(request, edit))

    def call(self, method: str, **fields: Any) -> Reply:
        """Call a method with the fields of its request."""
        return self.target.send(grpc_call(method, **fields))

    def send(self, message: Message) -> Reply:
        """Send a call on a connection of its own."""
        return self.target.send(message, fresh=True)
