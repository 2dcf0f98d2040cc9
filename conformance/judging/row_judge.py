"""The judge of one row: what is the same for servers and for clients."""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.check import Check, Row
from conformance.spec.outcome import UNMET_OUTCOMES, Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult, Failure, SentRequests
from conformance.spec.text import escape_text

MAX_MESSAGE_CHARS = 300  # characters of why a row came to no verdict


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What is said of a row, before it becomes a result; the fields are those of a `CheckResult`."""

    outcome: Outcome
    message: str = ""
    observation: str = ""
    failure: Failure | None = None
    reason: Reason | None = None
    sent: SentRequests | None = None


class RowJudge(ABC):
    """Runs one check on one row, and says what came of it."""

    def __call__(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row. Raises nothing but what stops a run (`KeyboardInterrupt`)."""
        started = time.monotonic()
        found, exchanges = self._judge(check, row)
        entry = find_requirement(check, row)
        return CheckResult(
            id=check.id,
            row=row.id,
            claim=check.claim,
            area=str(entry.area),
            extension=str(entry.extension),
            outcome=found.outcome,
            requirements=list(check.requirements(row)),
            message=found.message,
            observation=found.observation,
            duration_s=round(time.monotonic() - started, 6),
            exchanges=exchanges,
            failure=found.failure,
            reason=found.reason,
            sent=found.sent,
        )

    @abstractmethod
    def _judge(self, check: Check, row: Row) -> tuple[RowOutcome, int]:
        """Return what a row comes to, and how many exchanges that took."""


def find_requirement(check: Check, row: Row) -> ledger.Requirement:
    """Return the requirement that a row is about unless its body names another."""
    return ledger.get_requirement(check.requirements(row)[0])


def name_requirement(check: Check, row: Row, unmet: UnmetError) -> str:
    """Return the id of the requirement that is unmet."""
    named = to_grpc_requirement(unmet.requirement) if check.is_over_grpc else unmet.requirement
    return named or check.requirements(row)[0]


def conclude_met(check: Check, row: Row, observation: str | None) -> RowOutcome:
    """Return the outcome of a row whose body is satisfied."""
    is_observed = find_requirement(check, row).level == ledger.Level.OBSERVE
    return RowOutcome(Outcome.OBSERVED if is_observed else Outcome.PASS, "", escape_text(observation or ""))


def conclude_unmet(failure: Failure, outcome: Outcome) -> RowOutcome:
    """Return the outcome of a row with a failure."""
    message = f"expected {failure.expected}, got {failure.actual}"
    return RowOutcome(outcome, message, failure.actual if outcome is Outcome.OBSERVED else "", failure)


def grade(requirement: str, *, strict: bool) -> Outcome:
    """Return what an unmet requirement comes to; under `strict` advice fails."""
    outcome = UNMET_OUTCOMES[ledger.get_requirement(requirement).level]
    return Outcome.FAIL if strict and outcome is Outcome.ADVISORY else outcome


def no_verdict(outcome: Outcome, kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    """Return the outcome of a row that comes to no verdict, for a reason of this kind."""
    return RowOutcome(outcome, message, reason=Reason(kind, subject))


def conclude_stopped(error: Exception, limit: int = MAX_MESSAGE_CHARS) -> RowOutcome:
    """Return the outcome of a row whose body was stopped by an error; a fault of the suite's own ends no run."""
    text = escape_text(str(error), limit)
    match error:
        case NotApplicableError():
            return no_verdict(Outcome.NOT_APPLICABLE, ReasonKind.NOT_FOR_THIS_TARGET, text)
        case BlockedError():
            return no_verdict(Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG, text)
    lines = map(escape_text, "".join(traceback.format_exception(error)).splitlines())
    message = add_lines(f"the suite failed: {escape_text(f'{type(error).__name__}: {error}')}", list(lines))
    return no_verdict(Outcome.ERROR, ReasonKind.SUITE_FAILED, message)


def add_lines(text: str, lines: Sequence[str]) -> str:
    """Return a message with what a program printed below it."""
    return "".join([text, *(f"\n| {line}" for line in lines)])
