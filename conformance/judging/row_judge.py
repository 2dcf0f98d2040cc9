"""The base class of row judges, shared by servers and clients."""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.check import Case, Check
from conformance.spec.outcome import UNMET_OUTCOMES, Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult, Failure, SentRequests
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide
from conformance.transport.journal import JournalError

# Requirement that advises a refusal -> another one, whose -SAFE is about the answers to its requests as well.
_SAFE_SUBSTITUTES = {"OIP-DIMENSION-NEGATIVE": "OIP-SIGNATURE"}
RowError = UnmetError | BlockedError  # what the body of a check raises if the row does not pass
MAX_MESSAGE_CHARS = 300  # characters of the reason why a row has no verdict


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of a row, with further fields that the judge copies to the row's `CheckResult`."""

    outcome: Outcome
    message: str = ""
    observation: str = ""
    failure: Failure | None = None
    reason: Reason | None = None
    sent: SentRequests | None = None

    def hide_secrets(self, secrets: Sequence[str]) -> RowOutcome:
        """Return the outcome without the secrets that the server echoes."""
        return replace(
            self,
            message=hide(self.message, secrets),
            observation=hide(self.observation, secrets),
            reason=self.reason and Reason(self.reason.kind, hide(self.reason.subject, secrets)),
        )


class RowJudge(ABC):
    """Runs one check on one row and returns its result."""

    def __call__(self, case: Case) -> CheckResult:
        """Return the result of a check on one row. Only exceptions that stop a run (`KeyboardInterrupt`) propagate."""
        started = time.monotonic()
        found, exchanges = self._judge(case)
        entry = case.requirement
        return CheckResult(
            id=case.check.id,
            row=case.row.id,
            claim=case.check.claim,
            area=str(entry.area),
            extension=str(entry.extension),
            outcome=found.outcome,
            requirements=list(case.requirements),
            message=found.message,
            observation=found.observation,
            duration_s=round(time.monotonic() - started, 6),
            exchanges=exchanges,
            failure=found.failure,
            reason=found.reason,
            sent=found.sent,
        )

    @abstractmethod
    def _judge(self, case: Case) -> tuple[RowOutcome, int]:
        """Return the outcome of a row and the number of its exchanges."""


def name_requirement(case: Case, unmet: UnmetError) -> str:
    """Return the id of the requirement that an `UnmetError` names, or else of the first requirement of the row.

    If the server answers a request that the documents call wrong, its answer breaks no requirement on legal requests,
    whatever it looks like, but the row's own: the one that such an answer does no harm, if there is one.
    """
    named, first = _find_named_requirement(case.check, unmet), case.requirements[0]
    return find_safe_requirement(first) if is_wrong_request_answered(case, unmet) else named or first


def is_wrong_request_answered(case: Case, unmet: UnmetError) -> bool:
    """Say whether an error names a requirement on legal requests for the answer to a request that is not legal."""
    named, own = _find_named_requirement(case.check, unmet), case.requirements
    if named is None or named in own or unmet.reply is None or not unmet.reply.succeeded:
        return False
    row_concern, concern = (ledger.get_requirement(name).concern for name in (own[0], named))
    return (row_concern, concern) == (ledger.Concern.REFUSAL, ledger.Concern.EXCHANGE)


def _find_named_requirement(check: Check, unmet: UnmetError) -> str | None:
    return to_grpc_requirement(unmet.requirement) if check.is_over_grpc else unmet.requirement


def find_safe_requirement(requirement: str) -> str:
    """Return the requirement that an answer does no harm, for one that advises a refusal; else the requirement."""
    name, *transport = requirement.split("/")
    safe = "/".join((f"{_SAFE_SUBSTITUTES.get(name, name)}-SAFE", *transport))
    return safe if safe in ledger.load() else requirement


def conclude_met(case: Case, observation: str | None) -> RowOutcome:
    """Return the outcome of a row whose check body returned without an error."""
    is_observed = case.requirement.level == ledger.Level.OBSERVE
    return RowOutcome(Outcome.OBSERVED if is_observed else Outcome.PASS, "", escape_text(observation or ""))


def conclude_unmet(failure: Failure, outcome: Outcome) -> RowOutcome:
    """Return the outcome of a row with a failure; `outcome` is the result of `grade_unmet`."""
    message = f"expected {failure.expected}, got {failure.actual}"
    return RowOutcome(outcome, message, failure.actual if outcome is Outcome.OBSERVED else "", failure)


def grade_unmet(requirement: str, *, strict: bool) -> Outcome:
    """Return the outcome of an unmet requirement; with `strict`, an unmet SHOULD fails."""
    outcome = UNMET_OUTCOMES[ledger.get_requirement(requirement).level]
    return Outcome.FAIL if strict and outcome is Outcome.ADVISORY else outcome


def no_verdict(outcome: Outcome, kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    """Return the outcome of a row without a verdict, and its reason."""
    return RowOutcome(outcome, message, reason=Reason(kind, subject))


def conclude_exception(error: BaseException, limit: int = MAX_MESSAGE_CHARS) -> RowOutcome:
    """Return the outcome of a row whose check raised an exception other than `UnmetError`.

    An unknown exception is a bug in the suite, which gives the row the outcome `error` and does not stop the run.

    Raises:
        JournalError: the error, which is none of the row: a call cannot be recorded.
    """
    if isinstance(error, JournalError):
        raise error
    text = escape_text(str(error), limit)
    match error:
        case NotApplicableError():
            return no_verdict(Outcome.NOT_APPLICABLE, ReasonKind.NOT_FOR_THIS_TARGET, text)
        case BlockedError():
            return no_verdict(Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG, text)
    lines = map(escape_text, "".join(traceback.format_exception(error)).splitlines())
    message = append_output_lines(f"the suite failed: {escape_text(f'{type(error).__name__}: {error}')}", list(lines))
    return no_verdict(Outcome.ERROR, ReasonKind.SUITE_FAILED, message)


def append_output_lines(text: str, lines: Sequence[str]) -> str:
    """Return a message followed by the output lines of a program."""
    return "".join([text, *(f"\n| {line}" for line in lines)])
