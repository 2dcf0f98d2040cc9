"""The two peers of a run, HTTP and gRPC, and the scene that both play."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from conformance.clients.answers.script import Script
from conformance.clients.inference import Inference
from conformance.clients.peer.http_peer import HttpPeer
from conformance.clients.peer.scene import Scene, Stage
from conformance.expect.unmet import NotApplicable
from conformance.terms.extensions import HTTP
from conformance.transport.grpc_packages import has_grpc


class Peer:
    """A scripted server on 127.0.0.1, over HTTP and, with grpcio, over gRPC: a context manager.

    Attributes:
        http_address: `http://127.0.0.1:PORT`.
        grpc_address: `127.0.0.1:PORT`, None without the packages that gRPC needs.
    """

    def __init__(self) -> None:
        self._stage = Stage()
        self._open = ExitStack()
        self.http_address = ""
        self.grpc_address: str | None = None

    def __enter__(self) -> Self:
        """Open both ports."""
        self.http_address = self._open.enter_context(closing(HttpPeer(self._stage))).address
        if has_grpc():
            from conformance.clients.peer.grpc_peer import GrpcPeer  # comes with the extra

            self.grpc_address = self._open.enter_context(closing(GrpcPeer(self._stage))).address
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections; no thread is left."""
        self._open.close()

    def address(self, transport: str) -> str:
        """Return where a client is to go.

        Raises:
            NotApplicable: the packages that gRPC needs are not there.
        """
        address = self.http_address if transport == HTTP else self.grpc_address
        if address is None:
            raise NotApplicable("the packages that gRPC needs are not installed")
        return address

    def play(self, inferences: Sequence[Inference], script: Script) -> Scene:
        """Answer these inferences by a script from now on; the scene keeps what was heard of them."""
        return self._stage.play(inferences, script)
