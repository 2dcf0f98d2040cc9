"""Judges rows with short waits after a few requests to the target took the whole timeout.

A row that gets no answer in a short wait is repeated with the whole timeout, so that no server fails for being slow.
After a row of a requirement got no answer in the whole timeout, later rows of this requirement are not repeated: they
fail, which cannot change the verdict of the requirement, or are blocked if they cannot be judged without an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging.row_judge import RowOutcome, find_requirement, name_requirement, no_verdict
from conformance.spec.check import Check, Row
from conformance.spec.ledger import Level
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.target import Target
from conformance.transport.wait_budget import is_wait

# After this number of rows of a requirement got no answer in the whole timeout, its later rows are not repeated.
MAX_UNANSWERED_ROWS: Final = 1


class ShortWaitError(Exception):
    """A short wait ended without a whole answer, so that the row has no verdict yet; the message is one line.

    Attributes:
        requirement: the requirement that the row would not meet.
    """

    def __init__(self, message: str, requirement: str) -> None:
        super().__init__(message)
        self.requirement = requirement

    def conclude(self) -> RowOutcome:
        """Return the outcome of the row for the case that it is not repeated."""
        return no_verdict(Outcome.BLOCKED, ReasonKind.SHORT_WAIT, str(self), self.requirement)


class ShortWaits:
    """Decides how long the rows of one judge wait, and which of them are repeated.

    Args:
        target: the server.
        is_ahead: whether rows that do not pass are judged again, by another judge.
    """

    def __init__(self, target: Target, *, is_ahead: bool = False) -> None:
        self._target = target
        self._is_ahead = is_ahead
        self._unanswered: Counter[str] = Counter()

    def may_be_short(self, check: Check, row: Row) -> bool:
        """Return whether a row may wait for less than the timeout."""
        return not (check.explores or find_requirement(check, row).is_of_robustness)

    def find(self) -> float | None:
        """Return the short wait in seconds that rows use instead of the timeout, or None to use the timeout."""
        settings = self._target.settings
        return settings.wait.find_short_wait(settings.timeout)

    def must_repeat(self, found: RowOutcome) -> bool:
        """Return whether a row with short waits has to be repeated with the whole timeout."""
        reason = found.reason
        if reason is None or reason.kind is not ReasonKind.SHORT_WAIT or self._is_ahead:
            return False
        return self._unanswered[reason.subject] < MAX_UNANSWERED_ROWS

    def note(self, found: RowOutcome) -> None:
        """Count a row that fails because of a request without an answer; call it in the scope of the row."""
        if found.failure is not None and any(map(is_wait, self._target.exchanges)):
            self._unanswered[found.failure.requirement] += 1

    @contextmanager
    def detect(self, check: Check, row: Row) -> Iterator[None]:
        """Detect short waits of a check body.

        A body that passes does not depend on the unanswered requests: it judges other answers, which are correct.

        Raises:
            ShortWaitError: a short wait ended without a whole answer, and the body does not pass.
        """
        requirement = check.requirements(row)[0]
        try:
            yield
        except UnmetError as error:
            named = name_requirement(check, row, error)
            if self._is_ahead or self._unanswered[named] < MAX_UNANSWERED_ROWS:
                self._expect_whole_waits(named)
            raise
        except (BlockedError, NotApplicableError):
            self._expect_whole_waits(requirement)
            raise
        if find_requirement(check, row).level == Level.OBSERVE:
            self._expect_whole_waits(requirement)

    def _expect_whole_waits(self, requirement: str) -> None:
        short = next((one.failure for one in self._target.exchanges if one.is_short_wait), None)
        if short is not None:
            message = f"{short}; not repeated, because a row of {requirement} had no answer in the whole timeout"
            raise ShortWaitError(escape_text(message), requirement)
