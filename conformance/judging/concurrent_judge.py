"""Judges rows while other processes judge other rows, and abandons each row that may not pass.

Only a row that passes, or does not apply, has a result here. Load, or a request of another process, may explain any
other outcome, so the main process judges such a row again alone. Nothing is repeated here, and no wait is long.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NoReturn

from conformance.expect.unmet import NotApplicableError
from conformance.judging.busy_retries import BusyError
from conformance.judging.judge import Judge
from conformance.judging.row_judge import RowError, RowOutcome, conclude_exception
from conformance.judging.row_models import RowModels
from conformance.judging.short_waits import WaitError
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.transport.broken_request import is_busy, is_retryable
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.target_client import HungError
from conformance.transport.unreachable import TargetLostError
from conformance.transport.wait_budget import is_wait

# The part of the timeout that a row waits at least: the other processes keep the machine and the server busy.
MIN_WAIT_PART: Final = 0.3


class AbandonReason(StrEnum):
    """Why a row has no result beside others; the last two say that the server should get one row after another."""

    NOT_PASSED = "not_passed"
    WAITED = "waited"  # a short wait ended without an answer
    BUSY = "busy"  # the server refused a request for now
    ENDED = "ended"  # a connection ended without an answer, or the server is gone


STOPS = (AbandonReason.BUSY, AbandonReason.ENDED)


class AbandonedError(Exception):
    """A row may not pass, so the main process judges it again alone.

    Attributes:
        reason: why the row is abandoned.
        unanswered: the request during which the connection ended, if that is the reason.
    """

    def __init__(self, reason: AbandonReason, unanswered: Exchange | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unanswered = unanswered


class ConcurrentJudge(Judge):
    """Judges rows beside other processes, with the models of the main judge and its knowledge of the target."""

    def __init__(self, main_judge: Judge) -> None:
        super().__init__(main_judge.target, main_judge.models.discovery_result, seed=main_judge.seed)
        self._set_models(main_judge.models)

    def _judge(self, case: Case) -> tuple[RowOutcome, int]:
        """Return the outcome of a row that passes or does not apply, and the number of exchanges.

        Raises:
            AbandonedError: the row may not pass.
        """
        settings, client = self.target.settings, self._client_names.choose_names(case)[0]
        short_s = max(MIN_WAIT_PART * settings.timeout, settings.wait.compute_short_wait(settings.timeout))
        self._busy.begin_row(case.key)
        with self.target.scope(case.key, client=client, short_wait=short_s, raises_when_hung=True):
            try:
                found = self.models.find_missing_prerequisite(case) or self._run_check(case)
                if not find_unanswered(self.target.exchanges):
                    found = self._fail_for_other_violation(case, found)
            except (AbandonedError, BusyError, HungError, TargetLostError):
                self._abandon()
            if not self._is_certain(found):
                self._abandon()
            return self._finish(found), len(self.target.exchanges)

    def _is_certain(self, found: RowOutcome) -> bool:
        """Return whether an outcome counts: the row passed, or does not apply, and no load explains that."""
        exchanges = self.target.exchanges
        if self.target.broken or any(map(is_wait, exchanges)):
            return False
        if found.outcome is Outcome.NOT_APPLICABLE:
            is_too_large = found.reason is not None and found.reason.kind is ReasonKind.TOO_LARGE
            return not is_too_large and not any(is_retryable(Reply(one)) for one in exchanges)
        is_met = found.failure is None and found.outcome in (Outcome.PASS, Outcome.OBSERVED)
        return is_met and not find_unanswered(exchanges)

    def _abandon(self) -> NoReturn:
        exchanges, self.target.broken = self.target.exchanges, []
        self._set_models(
            RowModels(self.target, self.models.discovery_result)
        )  # forgets answers whose calls are not recorded
        unanswered = find_unanswered(exchanges)
        last = self.target.last
        if self.target.lost and last is not None and Reply(last).has_ended_unanswered:
            unanswered = unanswered or [last]  # of a control, or one that was sent otherwise
        if unanswered or self.target.lost:
            raise AbandonedError(AbandonReason.ENDED, unanswered[0] if unanswered else None) from None
        if any(map(is_wait, exchanges)):
            raise AbandonedError(AbandonReason.WAITED) from None
        is_refused = any(is_busy(Reply(one)) for one in exchanges)
        raise AbandonedError(AbandonReason.BUSY if is_refused else AbandonReason.NOT_PASSED) from None

    # --- nothing explains an error here ---

    def _conclude_error(self, _case: Case, error: RowError | NotApplicableError) -> RowOutcome:
        if isinstance(error, NotApplicableError):
            return conclude_exception(error)
        raise AbandonedError(AbandonReason.NOT_PASSED)

    def _conclude_wait(self, _case: Case, wait: WaitError) -> RowOutcome:
        return wait.conclude()

    def _conclude_failure(self, *_: object) -> NoReturn:
        raise AbandonedError(AbandonReason.NOT_PASSED)


def find_unanswered(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges whose connection ended without an answer, although the request was sent as usual."""
    return [one for one in exchanges if not one.note and Reply(one).has_ended_unanswered]
