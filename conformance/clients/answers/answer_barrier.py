"""Delays the answers to concurrent inferences until all requests have arrived."""

from __future__ import annotations

import time
from threading import Barrier, BrokenBarrierError
from typing import Final

MAX_WAIT_S: Final = 0.5  # seconds to hold back the first answers if a client has fewer in flight than requested
_STEP: Final = 0.002  # seconds between two answers


class AnswerBarrier:
    """Delays answers until all requests have arrived, then releases them one by one, in reverse order of arrival.

    A client that assigns answers to requests by their order mixes up the answers.

    Attributes:
        is_met: whether all requests were in flight at once.
    """

    def __init__(self, count: int) -> None:
        """Create a barrier for `count` requests."""
        self._barrier = Barrier(count)
        self.is_met = False

    def release(self, *, is_met: bool) -> None:
        """Stop delaying answers, for a replay, and set `is_met` to the value in the recording."""
        self._barrier.abort()
        self.is_met = is_met

    def wait(self) -> None:
        """Wait until all requests have arrived, plus `_STEP` seconds for each request that arrived after this one.

        Return after `MAX_WAIT_S` if requests are missing.
        """
        try:
            arrived_before = self._barrier.wait(MAX_WAIT_S)
        except BrokenBarrierError:
            return
        self.is_met = True
        time.sleep((self._barrier.parties - 1 - arrived_before) * _STEP)
