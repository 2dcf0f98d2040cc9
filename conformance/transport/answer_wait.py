"""Shortens the wait for answers of a target after a few of its requests ran into the timeout.

A target whose requests never ran into the timeout always gets the whole timeout, however slow it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

# Requests that take the whole timeout before waits are shortened.
MAX_WHOLE_WAITS: Final = 2
# A short wait is SLOWEST_ANSWERS times the slowest answer so far, and at least MIN_PART of the timeout (1 s of 10 s).
SLOWEST_ANSWERS: Final = 10
MIN_PART: Final = 0.1


@dataclass(slots=True)
class AnswerTimes:
    """The answer times of a target, shared by all sessions of a run.

    Attributes:
        slowest_s: the seconds that the slowest complete answer took.
        whole_waits: the number of requests that ran into the timeout.
    """

    slowest_s: float = 0.0
    whole_waits: int = 0

    def note_answer(self, seconds: float) -> None:
        """Note the seconds that a complete answer took."""
        self.slowest_s = max(self.slowest_s, seconds)


@dataclass(slots=True)
class AnswerWait:
    """How long to wait for the answers of one target.

    Attributes:
        times: the answer times of the target.
        short_s: the seconds that replace the timeout; None: the timeout applies. May change between requests.
    """

    times: AnswerTimes = field(default_factory=AnswerTimes)
    short_s: float | None = None

    def find_short_wait(self, timeout: float) -> float | None:
        """Return the seconds to wait instead of the timeout; None if the timeout applies."""
        if self.times.whole_waits < MAX_WHOLE_WAITS:
            return None
        seconds = self.compute_short_wait(timeout)
        return seconds if seconds < timeout else None

    def compute_short_wait(self, timeout: float) -> float:
        """Return the seconds within which the target has answered everything so far, with a margin."""
        return min(timeout, max(MIN_PART * timeout, SLOWEST_ANSWERS * self.times.slowest_s))
