"""The two peers of a run, HTTP and gRPC, which share one script."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from conformance.clients.answers.script import Script, Tensors
from conformance.clients.inference import Inference
from conformance.clients.peer.http_peer import HttpPeer
from conformance.clients.peer.scenario import PeerScript, Scenario
from conformance.expect.unmet import NotApplicableError
from conformance.spec.extensions import HTTP
from conformance.transport.grpc_packages import has_grpc

if TYPE_CHECKING:
    from conformance.clients.peer.grpc_peer import GrpcPeer


class Peer:
    """A scripted server on 127.0.0.1, over HTTP and, with grpcio, over gRPC: a context manager.

    Its ports change during a run. The addresses are the current ones; `grpc_address` is None without gRPC packages.
    """

    def __init__(self) -> None:
        self._peer_script = PeerScript()
        self._http: HttpPeer | None = None
        self._grpc: GrpcPeer | None = None
        self._disturbed: set[str] = set()

    @property
    def http_address(self) -> str:
        """The current address for HTTP clients; empty while the peer is not open."""
        return self._http.address if self._http else ""

    @property
    def grpc_address(self) -> str | None:
        """The current address for gRPC clients, or None."""
        return self._grpc.address if self._grpc else None

    def __enter__(self) -> Self:
        """Open both ports."""
        self._http = HttpPeer(self._peer_script)
        if has_grpc():
            from conformance.clients.peer.grpc_peer import GrpcPeer  # comes with the extra

            self._grpc = GrpcPeer(self._peer_script)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections and wait for all threads."""
        for one in (self._http, self._grpc):
            if one is not None:
                one.close()

    def disturb(self, transport: str) -> None:
        """Note a failure over a transport, which may have left the client in a bad state."""
        self._disturbed.add(transport)

    def refresh(self, transport: str) -> None:
        """Switch to another address after a failure at the current one, and close its connections."""
        if transport not in self._disturbed:
            return
        self._disturbed.discard(transport)
        if transport == HTTP and self._http is not None:
            self._http.close()
            self._http = HttpPeer(self._peer_script)
        elif self._grpc is not None:
            self._grpc.move()

    def get_address(self, transport: str) -> str:
        """Return the current address for clients.

        Raises:
            NotApplicable: the packages that gRPC needs are not installed.
        """
        address = self.http_address if transport == HTTP else self.grpc_address
        if address is None:
            raise NotApplicableError("the packages that gRPC needs are not installed")
        return address

    @property
    def scenario(self) -> Scenario | None:
        """The scenario that is played; None before the first scenario."""
        return self._peer_script.current

    def list_outputs(self) -> Tensors:
        """Return the tensors of the last scripted answers."""
        return self._peer_script.list_outputs()

    def play(self, inferences: Sequence[Inference], script: Script) -> Scenario:
        """Answer these inferences by a script from now on; the returned scenario records their requests."""
        return self._peer_script.play(inferences, script)
