"""One client under judgement: its adapter, the peer that answers it, and the judge of its rows."""

from __future__ import annotations

from pathlib import Path

from conformance.clients.adapter import Adapter
from conformance.clients.inference import Introduction
from conformance.clients.peer import Peer
from conformance.judging.client_judge import ClientJudge
from conformance.spec.check import Check, Row
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.result import CheckResult
from conformance.transport import settings
from conformance.transport.har_bodies import JUDGED_LIMIT
from conformance.transport.journal import Journal
from conformance.transport.settings import Settings


class ClientSession:
    """A client, with a peer of its own.

    Attributes:
        client: what the adapter says of it.
        settings: where the client is told to go.
    """

    def __init__(
        self,
        adapter: Adapter,
        client: Introduction | None = None,
        *,
        strict: bool = False,
        evidence: Path | None = None,
        process: str = "",
    ) -> None:
        """Open the peer, and have the adapter introduce itself unless it has done so before.

        Args:
            adapter: nobody else's; it is closed with the session.
            client: what the adapter has said of it to somebody else.
            strict: see `ClientJudge.strict`.
            evidence: see `ClientJudge.evidence`; the recording of all exchanges goes there, too.
            process: what identifies this process among those of a run.

        Raises:
            AdapterError: the adapter cannot be asked.
        """
        self._adapter = adapter
        self.client = adapter.introduction if client is None else client
        self._peer = Peer().__enter__()
        self.settings = _settings(self._peer, self.client)
        journal = None if evidence is None else Journal(evidence, process, self.settings, JUDGED_LIMIT)
        self._judge = ClientJudge(adapter, self.client, self._peer, strict, evidence, journal)

    @property
    def transports(self) -> tuple[str, ...]:
        """Those over which the client is judged: it speaks them, and the packages for them are there."""
        there = (HTTP, *((GRPC,) if self._peer.grpc_address else ()))
        return tuple(transport for transport in there if transport in self.client.transports)

    def judge(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row."""
        return self._judge(check, row)

    def close(self) -> None:
        """End the adapter, and close the peer."""
        self._adapter.close()
        self._peer.__exit__(None, None, None)


def _settings(peer: Peer, client: Introduction) -> Settings:
    grpc = peer.grpc_address if GRPC in client.transports else None
    is_grpc_alone = grpc is not None and HTTP not in client.transports
    return settings.make_settings("" if is_grpc_alone else peer.http_address, grpc=grpc)
