"""What a judge says of a row, before it becomes a result: the outcome, and why."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.spec.outcome import Outcome, Reason, ReasonKind
from conformance.spec.result import Failure, SentRequests


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What is said of a row; the fields are those of a `CheckResult`."""

    outcome: Outcome
    message: str = ""
    observation: str = ""
    failure: Failure | None = None
    reason: Reason | None = None
    sent: SentRequests | None = None


def no_verdict(outcome: Outcome, kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    """Return what is said of a row that comes to no verdict, for a reason of this kind."""
    return RowOutcome(outcome, message, reason=Reason(kind, subject))
