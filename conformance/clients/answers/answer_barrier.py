"""Holds answers to concurrent inferences back, so that they are sent in another order than their requests."""

from __future__ import annotations

import time
from threading import Barrier, BrokenBarrierError
from typing import Final

MAX_WAIT_S: Final = 0.5  # seconds to hold back the first answers if a client has fewer in flight than requested
_STEP: Final = 0.002  # seconds between two answers


class AnswerBarrier:
    """Holds answers back until all requests have arrived, then sends the answer to the last request first.

    Attributes:
        is_met: whether all requests were in flight at once.
    """

    def __init__(self, count: int) -> None:
        """Create a barrier for `count` requests."""
        self._barrier = Barrier(count)
        self.is_met = False

    def settle(self, *, is_met: bool) -> None:
        """Hold nothing back from now on: a recording says whether all requests were in flight at once."""
        self._barrier.abort()
        self.is_met = is_met

    def wait(self) -> None:
        """Wait until all requests have arrived, or for `MAX_WAIT_S`; then until it is the turn of this answer."""
        try:
            place = self._barrier.wait(MAX_WAIT_S)
        except BrokenBarrierError:
            return
        self.is_met = True
        time.sleep(place * _STEP)
