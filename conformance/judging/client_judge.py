"""Runs one check on one row against a client, and says what came of it: the counterpart of `judge` for clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.clients.adapter import Adapter
from conformance.terms.check import Check, Row
from conformance.terms.result import CheckResult


@dataclass(slots=True)
class ClientJudge:
    """Everything that judging one row of a client takes.

    Attributes:
        adapter: of the client.
        strict: advice counts as failure.
        evidence: where a failed check leaves request and answer, or None.
    """

    adapter: Adapter
    strict: bool = False
    evidence: Path | None = None

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        raise NotImplementedError
