"""The session of one client under test: its adapter, the peer that answers it, and the judge of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conformance.clients.adapter import Adapter, AdapterError, AdapterLostError, LoggingAdapter
from conformance.clients.client import TIMEOUT, Client
from conformance.clients.inference import Introduction
from conformance.clients.liveness import Liveness
from conformance.clients.peer.peer import Peer
from conformance.clients.recording import calls
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.unmet import UnmetError
from conformance.judging import client_evidence
from conformance.judging.client_failure import describe_call
from conformance.judging.row_judge import (
    RowJudge,
    RowOutcome,
    append_output_lines,
    conclude_exception,
    conclude_met,
    conclude_unmet,
    grade_unmet,
    name_requirement,
    no_verdict,
)
from conformance.spec.check import Case
from conformance.spec.extensions import EXTENSIONS, GRPC, HTTP, TRANSPORTS
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.spec.verdict import find_extensions
from conformance.transport import settings
from conformance.transport.har_bodies import JUDGED_LIMIT
from conformance.transport.journal import Journal
from conformance.transport.settings import Settings

# Requirements for which a hanging adapter is a failure of the client: the client must stop waiting for an answer.
HANG_REQUIREMENTS = {"CLIENT-ENDS", "CLIENT-ENDS/grpc"}
MAX_TEXT_CHARS = 600  # characters of a message from an adapter, or from a check of a client


class ClientJudge(RowJudge):
    """Judges the rows of a client."""

    def __init__(
        self,
        adapter: Adapter,
        client: Introduction,
        peer: Peer,
        *,
        strict: bool = False,
        evidence: Path | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Create a judge.

        Args:
            adapter: the adapter of the client.
            client: the introduction of the client by its adapter.
            peer: the server that answers the client.
            strict: whether an unmet SHOULD fails.
            evidence: the folder for the request and answer of failed rows, or None.
            journal: receives every call of the adapter with its exchanges, or None.
        """
        self._adapter = adapter
        self._client = client
        self._peer = peer
        self._strict = strict
        self._evidence = evidence
        self._journal = journal
        self._liveness = {transport: Liveness(TIMEOUT) for transport in TRANSPORTS}

    def __call__(self, case: Case) -> CheckResult:
        """Return the result of a check on one row; a failed row covers only the requirement that it violates."""
        found = super().__call__(case)
        return replace(found, requirements=[found.failure.requirement]) if found.failure else found

    def _judge(self, case: Case) -> tuple[RowOutcome, int]:
        adapter, transport = LoggingAdapter(self._adapter, self._peer), case.check.over[0]
        client = Client(adapter, self._peer, transport, self._liveness[transport])
        found = self._find_missing_transport(transport) or self._run_check(case, client, adapter)
        if self._journal is not None:
            for index, asked in enumerate(adapter.calls):
                self._journal(*calls.build_entries(case.key, index, asked))
        return found, len(client.requests)

    def _find_missing_transport(self, transport: str) -> RowOutcome | None:
        """Return the outcome `not_applicable` if the client does not speak the transport, else None."""
        if transport in self._client.transports:
            return None
        message = f"{escape_text(self._client.name, 60)} does not speak {transport}"
        return no_verdict(Outcome.NOT_APPLICABLE, ReasonKind.TRANSPORT_NOT_GIVEN, message, transport)

    def _run_check(self, case: Case, client: Client, adapter: LoggingAdapter) -> RowOutcome:
        try:
            return conclude_met(case, case.check.body(client, *case.row.values))
        except UnmetError as unmet:
            if adapter.hung is not None and not HANG_REQUIREMENTS & {*case.requirements}:
                return _conclude_adapter_error(adapter.hung)
            return self._conclude_unmet(case, unmet, adapter)
        except AdapterError as error:
            return _conclude_adapter_error(error)
        except Exception as error:
            return conclude_exception(error, MAX_TEXT_CHARS)

    def _conclude_unmet(self, case: Case, unmet: UnmetError, adapter: LoggingAdapter) -> RowOutcome:
        requirement = name_requirement(case, unmet)
        failure = describe_call(unmet, requirement, adapter.calls)
        if self._evidence is not None:
            client_evidence.write_row(self._evidence, case, failure, unmet.reply, adapter.calls)
        return conclude_unmet(failure, grade_unmet(requirement, strict=self._strict))


def _conclude_adapter_error(error: AdapterError) -> RowOutcome:
    """Return the outcome of a row in which the adapter of the client failed."""
    text = escape_text(str(error), MAX_TEXT_CHARS)
    if isinstance(error, AdapterLostError):
        return no_verdict(Outcome.ERROR, ReasonKind.TARGET_LOST, text, text)
    return no_verdict(Outcome.ERROR, ReasonKind.ADAPTER_BROKE, append_output_lines(text, error.stderr))


class ClientSession:
    """A client and the peer started for it.

    Attributes:
        client: the introduction of the client by its adapter.
        settings: the addresses to which the client sends its requests.
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
        """Start the peer, and request the adapter's introduction unless `client` provides it.

        Args:
            adapter: the adapter of the client; only this session uses it, and `close` stops it.
            client: the introduction from an earlier session, or None.
            strict: see `ClientJudge`.
            evidence: see `ClientJudge`; the recording of all exchanges is written there as well.
            process: the pytest-xdist id of this process; empty without workers.

        Raises:
            AdapterError: the adapter does not answer.
        """
        self._adapter = adapter
        self.client = adapter.introduction if client is None else client
        self._peer = Peer().__enter__()
        self.settings = _build_peer_settings(self._peer, self.client)
        journal = None if evidence is None else Journal(evidence, process, self.settings, JUDGED_LIMIT)
        self._judge = ClientJudge(adapter, self.client, self._peer, strict=strict, evidence=evidence, journal=journal)

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports of the run: those that the client speaks and whose packages are installed."""
        there = (HTTP, *((GRPC,) if self._peer.grpc_address else ()))
        return tuple(transport for transport in there if transport in self.client.transports)

    def judge(self, case: Case) -> CheckResult:
        """Return the result of a check on one row."""
        return self._judge(case)

    def close(self) -> None:
        """Stop the adapter and the peer."""
        self._adapter.close()
        self._peer.__exit__(None, None, None)


def _build_peer_settings(peer: Peer, client: Introduction) -> Settings:
    grpc = peer.grpc_address if GRPC in client.transports else None
    is_grpc_alone = grpc is not None and HTTP not in client.transports
    return settings.make_settings("" if is_grpc_alone else peer.http_address, grpc=grpc)


def describe_client(client: Introduction, results: Sequence[CheckResult]) -> DiscoveryResult:
    """Return the name and version of a client, and the extensions of the rows that apply to the client."""
    judged = [result for result in results if result.outcome is not Outcome.NOT_APPLICABLE]
    can = set[str]().union(*map(find_extensions, judged))
    offered = {name: "works" for name in EXTENSIONS if name in can}
    return DiscoveryResult(client.name or None, client.version or None, offered=offered)
