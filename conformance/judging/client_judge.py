"""Runs one check on one row against a client, and says what came of it: the counterpart of `judge` for clients."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.clients.adapter import Adapter, AdapterError, AdapterLostError
from conformance.clients.client import Client
from conformance.clients.inference import Introduction
from conformance.clients.noted import NotedAdapter
from conformance.clients.peer import Heard, Peer
from conformance.expect.attribution import over_grpc
from conformance.expect.unmet import Blocked, NotApplicable, Unmet
from conformance.judging import client_evidence
from conformance.judging.client_failure import describe
from conformance.judging.evidence import folder_name
from conformance.judging.said import Said, without_verdict
from conformance.terms import ledger
from conformance.terms.check import Check, Row, key
from conformance.terms.outcome import UNMET, Outcome, ReasonKind
from conformance.terms.result import CheckResult
from conformance.terms.text import safe
from conformance.transport.call import Call

Journal = Callable[[Call], None]

# Where an adapter that hangs speaks for its client: the answer never comes, and the caller waits all the same.
ENDS = {"CLIENT-ENDS", "CLIENT-ENDS/grpc"}


@dataclass(slots=True)
class ClientJudge:
    """Everything that judging one row of a client takes.

    Attributes:
        adapter: of the client, which `client` describes.
        peer: answers it.
        strict: advice counts as failure.
        evidence: where a failed row leaves request and answer, or None.
        journal: is told every exchange, or None.
    """

    adapter: Adapter
    client: Introduction
    peer: Peer
    strict: bool = False
    evidence: Path | None = None
    journal: Journal | None = None

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        started = time.monotonic()
        transport = check.over[0]
        adapter = NotedAdapter(self.adapter)
        client = Client(adapter, self.peer, transport)
        said = self._absent(transport) or self._run(check, row, client, adapter)
        self._write_down(check, row, client.heard)
        entry = ledger.requirement(check.requirements(row)[0])
        return CheckResult(
            check.id,
            row.id,
            check.claim,
            str(entry.area),
            str(entry.extension),
            said.outcome,
            list(check.requirements(row)),
            said.message,
            said.observation,
            round(time.monotonic() - started, 6),
            len(client.heard),
            said.failure,
            said.reason,
        )

    def _absent(self, transport: str) -> Said | None:
        """Say that the client does not speak a transport, or None."""
        if transport in self.client.transports:
            return None
        message = f"{safe(self.client.name, 60)} does not speak {transport}"
        return without_verdict(Outcome.NOT_APPLICABLE, ReasonKind.TRANSPORT_NOT_GIVEN, message, transport)

    def _run(self, check: Check, row: Row, client: Client, adapter: NotedAdapter) -> Said:
        try:
            observation = check.body(client, *row.values) or ""
        except Unmet as unmet:
            if adapter.hung is not None and not ENDS & {*check.requirements(row)}:
                return _stopped_by(adapter.hung)
            return self._unmet(check, row, unmet, adapter)
        except Exception as error:  # a fault of the suite's own must be seen, and must not end the run
            return _stopped_by(error)
        observes = ledger.requirement(check.requirements(row)[0]).level == ledger.Level.OBSERVE
        return Said(Outcome.OBSERVED if observes else Outcome.PASS, "", safe(observation))

    def _unmet(self, check: Check, row: Row, unmet: Unmet, adapter: NotedAdapter) -> Said:
        named = over_grpc(unmet.requirement) if check.is_over_grpc else unmet.requirement
        requirement = named or check.requirements(row)[0]
        outcome = UNMET[ledger.requirement(requirement).level]
        if outcome is Outcome.ADVISORY and self.strict:
            outcome = Outcome.FAIL
        failure = describe(unmet, requirement, adapter.asked)
        if self.evidence is not None:
            folder = self.evidence / folder_name(check.id, row.id)
            client_evidence.write(folder, check, row, failure, unmet.reply, adapter.asked)
        message = f"expected {failure.expected}, got {failure.actual}"
        return Said(outcome, message, failure.actual if outcome is Outcome.OBSERVED else "", failure)

    def _write_down(self, check: Check, row: Row, heard: Sequence[Heard]) -> None:
        if self.journal is None:
            return
        for place, one in enumerate(heard):
            exchange = one.exchange()
            self.journal(Call(key(check.id, row.id), place, (exchange.message,), (exchange,)))


def _stopped_by(error: Exception) -> Said:
    """Say why a row came to no verdict."""
    text = safe(str(error), 600)
    match error:
        case NotApplicable():
            return without_verdict(Outcome.NOT_APPLICABLE, ReasonKind.NOT_FOR_THIS_TARGET, text)
        case Blocked():
            return without_verdict(Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG, text)
        case AdapterLostError():
            return without_verdict(Outcome.ERROR, ReasonKind.TARGET_LOST, text, text)
        case AdapterError():
            return without_verdict(Outcome.ERROR, ReasonKind.ADAPTER_BROKE, _with_lines(text, error.stderr))
    lines = [safe(line) for line in "".join(traceback.format_exception(error)).splitlines()]
    what = f"the suite failed: {safe(f'{type(error).__name__}: {error}')}"
    return without_verdict(Outcome.ERROR, ReasonKind.SUITE_FAILED, _with_lines(what, lines))


def _with_lines(text: str, lines: Sequence[str]) -> str:
    return "".join([text, *(f"\n| {line}" for line in lines)])
