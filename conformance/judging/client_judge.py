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
from conformance.clients.logging_adapter import LoggingAdapter
from conformance.clients.peer import Peer, ReceivedRequest
from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging import client_evidence
from conformance.judging.client_failure import describe
from conformance.judging.evidence import build_folder_name
from conformance.judging.row_outcome import RowOutcome, no_verdict
from conformance.spec import ledger
from conformance.spec.check import Check, Row, format_key
from conformance.spec.outcome import UNMET_OUTCOMES, Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.text import escape_text
from conformance.transport.exchange import Call

Journal = Callable[[Call], None]

# Where an adapter that hangs speaks for its client: the answer never comes, and the caller waits all the same.
HANG_REQUIREMENTS = {"CLIENT-ENDS", "CLIENT-ENDS/grpc"}


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
        adapter = LoggingAdapter(self.adapter)
        client = Client(adapter, self.peer, transport)
        said = self._absent(transport) or self._run(check, row, client, adapter)
        self._write_down(check, row, client.heard)
        entry = ledger.get_requirement(check.requirements(row)[0])
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

    def _absent(self, transport: str) -> RowOutcome | None:
        """Say that the client does not speak a transport, or None."""
        if transport in self.client.transports:
            return None
        message = f"{escape_text(self.client.name, 60)} does not speak {transport}"
        return no_verdict(Outcome.NOT_APPLICABLE, ReasonKind.TRANSPORT_NOT_GIVEN, message, transport)

    def _run(self, check: Check, row: Row, client: Client, adapter: LoggingAdapter) -> RowOutcome:
        try:
            observation = check.body(client, *row.values) or ""
        except UnmetError as unmet:
            if adapter.hung is not None and not HANG_REQUIREMENTS & {*check.requirements(row)}:
                return _stopped_by(adapter.hung)
            return self._unmet(check, row, unmet, adapter)
        except Exception as error:  # a fault of the suite's own must be seen, and must not end the run
            return _stopped_by(error)
        observes = ledger.get_requirement(check.requirements(row)[0]).level == ledger.Level.OBSERVE
        return RowOutcome(Outcome.OBSERVED if observes else Outcome.PASS, "", escape_text(observation))

    def _unmet(self, check: Check, row: Row, unmet: UnmetError, adapter: LoggingAdapter) -> RowOutcome:
        named = to_grpc_requirement(unmet.requirement) if check.is_over_grpc else unmet.requirement
        requirement = named or check.requirements(row)[0]
        outcome = UNMET_OUTCOMES[ledger.get_requirement(requirement).level]
        if outcome is Outcome.ADVISORY and self.strict:
            outcome = Outcome.FAIL
        failure = describe(unmet, requirement, adapter.asked)
        if self.evidence is not None:
            folder = self.evidence / build_folder_name(check.id, row.id)
            client_evidence.write(folder, check, row, failure, unmet.reply, adapter.asked)
        message = f"expected {failure.expected}, got {failure.actual}"
        return RowOutcome(outcome, message, failure.actual if outcome is Outcome.OBSERVED else "", failure)

    def _write_down(self, check: Check, row: Row, heard: Sequence[ReceivedRequest]) -> None:
        if self.journal is None:
            return
        for place, one in enumerate(heard):
            exchange = one.exchange()
            self.journal(Call(format_key(check.id, row.id), place, (exchange.message,), (exchange,)))


def _stopped_by(error: Exception) -> RowOutcome:
    """Say why a row came to no verdict."""
    text = escape_text(str(error), 600)
    match error:
        case NotApplicableError():
            return no_verdict(Outcome.NOT_APPLICABLE, ReasonKind.NOT_FOR_THIS_TARGET, text)
        case BlockedError():
            return no_verdict(Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG, text)
        case AdapterLostError():
            return no_verdict(Outcome.ERROR, ReasonKind.TARGET_LOST, text, text)
        case AdapterError():
            return no_verdict(Outcome.ERROR, ReasonKind.ADAPTER_BROKE, _with_lines(text, error.stderr))
    lines = [escape_text(line) for line in "".join(traceback.format_exception(error)).splitlines()]
    what = f"the suite failed: {escape_text(f'{type(error).__name__}: {error}')}"
    return no_verdict(Outcome.ERROR, ReasonKind.SUITE_FAILED, _with_lines(what, lines))


def _with_lines(text: str, lines: Sequence[str]) -> str:
    return "".join([text, *(f"\n| {line}" for line in lines)])
