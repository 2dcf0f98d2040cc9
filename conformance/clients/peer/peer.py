"""The two peers of a run, HTTP and gRPC, and the scene that both play."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from conformance.clients.answers.script import Script
from conformance.clients.inference import Inference
from conformance.clients.peer.scene import Scene, Stage
from conformance.transport.grpc_packages import has_grpc


class Peer:
    """A scripted server on 127.0.0.1, over HTTP and, with grpcio, over gRPC: a context manager.

    Attributes:
        http_address: `http://127.0.0.1:PORT`.
        grpc_address: `127.0.0.1:PORT`, None without the packages that gRPC needs.
    """

    def __init__(self) -> None:
        self._stage = Stage()
        self._http: HttpPeer
        self._grpc: GrpcPeer | None = None
        self.http_address = ""
        self.grpc_address: str | None = None

    def __enter__(self) -> Self:
        """Open both ports."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections; no thread is left."""

    def address(self, transport: str) -> str:
        """Return where a client is to go.

        Raises:
            NotApplicable: the packages that gRPC needs are not there.
        """
        raise NotImplementedError

    def play(self, inferences: Sequence[Inference], script: Script) -> Scene:
        """Answer these inferences by a script from now on; the scene keeps what was heard of them."""
        return self._stage.play(inferences, script)
