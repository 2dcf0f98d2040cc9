"""Derives waits from the times of a target's answers: for an answer, and between the segments of a request.

Waits for answers are shortened if a few requests have run into the timeout. A target without such requests always gets
the whole timeout, however slow it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final

# Requests that take the whole timeout before waits are shortened.
MAX_WHOLE_WAITS: Final = 2
# A short wait is this multiple of the slowest answer so far, and at least this part of the timeout: 1 s of 10 s.
SLOWEST_ANSWERS: Final = 10
MIN_PART: Final = 0.1
# The pause between TCP segments is this multiple of the fastest answer so far, within limits.
FASTEST_ANSWERS: Final = 2
MIN_SEGMENT_PAUSE_S, MAX_SEGMENT_PAUSE_S = 0.002, 0.005


@dataclass(slots=True)
class AnswerTimes:
    """The times of a target, which all sessions of a run share.

    Attributes:
        fastest_s: seconds of the fastest whole answer.
        slowest_s: seconds of the slowest whole answer.
        whole_waits: the number of requests that took the whole timeout.
    """

    fastest_s: float = inf
    slowest_s: float = 0.0
    whole_waits: int = 0

    def note_answer(self, seconds: float) -> None:
        """Note the time of a whole answer."""
        self.fastest_s = min(self.fastest_s, seconds)
        self.slowest_s = max(self.slowest_s, seconds)

    def find_segment_pause(self) -> float:
        """Return the seconds between TCP segments of a request: in twice its fastest answer a server reads one."""
        return max(MIN_SEGMENT_PAUSE_S, min(MAX_SEGMENT_PAUSE_S, FASTEST_ANSWERS * self.fastest_s))


@dataclass(slots=True)
class AnswerWait:
    """The wait for the answers of one target.

    Attributes:
        short_s: seconds of silence that replace the timeout, or None. It may change between two requests.
    """

    times: AnswerTimes = field(default_factory=AnswerTimes)
    short_s: float | None = None

    def find_short_wait(self, timeout: float) -> float | None:
        """Return the seconds to wait instead of the timeout, or None for the whole timeout."""
        if self.times.whole_waits < MAX_WHOLE_WAITS:
            return None
        seconds = max(MIN_PART * timeout, SLOWEST_ANSWERS * self.times.slowest_s)
        return seconds if seconds < timeout else None
