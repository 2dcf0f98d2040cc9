"""Delays the answers to concurrent inferences until all requests have arrived."""

from __future__ import annotations

import time
from threading import Condition
from typing import Final

MAX_PAUSE_S: Final = 0.5  # seconds without a further request after which a client has fewer in flight than requested
_STEP: Final = 0.002  # seconds between two answers


class AnswerBarrier:
    """Delays answers until all requests have arrived, then releases them one by one, in reverse order of arrival.

    A client that assigns answers to requests by their order mixes up the answers.

    `is_met`: whether all requests were in flight at once.
    """

    def __init__(self, count: int) -> None:
        """Create a barrier for `count` requests."""
        self._count = count
        self._arrived = 0
        self._is_open = False
        self._changed = Condition()
        self.is_met = False

    def release(self, *, is_met: bool) -> None:
        """Stop delaying answers, for a replay, and set `is_met` to the value in the recording."""
        self._is_open = True
        self.is_met = is_met

    def wait(self) -> None:
        """Wait until all requests have arrived, plus `_STEP` seconds for each request that arrived after this one.

        Return when no request has arrived for `MAX_PAUSE_S`; a busy machine may be slow to send them all.
        """
        with self._changed:
            arrived_before = self._arrived
            self._arrived += 1
            self.is_met = self.is_met or (self._arrived == self._count and not self._is_open)
            self._changed.notify_all()
            while not (self.is_met or self._is_open):
                self._is_open = not self._changed.wait(MAX_PAUSE_S)
        if self.is_met:
            time.sleep(max(0, self._count - 1 - arrived_before) * _STEP)
