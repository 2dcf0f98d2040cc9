"""The scripted server of a run: an HTTP and a gRPC peer, which share one script."""

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
    """A scripted server on 127.0.0.1, over HTTP and, if grpcio is installed, over gRPC. A context manager.

    `move_after_failure` changes the ports during a run.

    """

    def __init__(self) -> None:
        self._peer_script = PeerScript()
        self._http: HttpPeer | None = None
        self._grpc: GrpcPeer | None = None
        self._failed_transports: set[str] = set()

    @property
    def http_address(self) -> str:
        """The current address for HTTP clients; empty while the peer is not open."""
        return self._http.address if self._http else ""

    @property
    def grpc_address(self) -> str | None:
        """The current address for gRPC clients; None while the peer is not open or without grpcio."""
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

    def note_failure(self, transport: str) -> None:
        """Note that an inference over this transport failed, which may have left the client in a bad state."""
        self._failed_transports.add(transport)

    def move_after_failure(self, transport: str) -> None:
        """If a failure was noted for this transport, switch to another address and close the open connections."""
        if transport not in self._failed_transports:
            return
        self._failed_transports.discard(transport)
        if transport == HTTP and self._http is not None:
            self._http.close()
            self._http = HttpPeer(self._peer_script)
        elif self._grpc is not None:
            self._grpc.change_port()

    def get_address(self, transport: str) -> str:
        """Return the current address for clients over a transport.

        Raises NotApplicableError: the transport is gRPC, and the packages that it needs are not installed.
        """
        address = self.http_address if transport == HTTP else self.grpc_address
        if address is None:
            raise NotApplicableError("the packages that gRPC needs are not installed")
        return address

    @property
    def scenario(self) -> Scenario | None:
        """The current scenario; None before the first scenario."""
        return self._peer_script.current

    def list_outputs(self) -> Tensors:
        """Return the output tensors of the last scenario that had outputs."""
        return self._peer_script.list_outputs()

    def start_scenario(self, inferences: Sequence[Inference], script: Script) -> Scenario:
        """Answer these inferences by a script from now on; the returned scenario records their requests."""
        return self._peer_script.start_scenario(inferences, script)
