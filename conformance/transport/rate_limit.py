"""How fast a target is asked: at most so many requests a second, on all connections of a run together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """Holds requests back until their turn.

    Attributes:
        rate: requests a second; None holds none back.
        now: seconds, of a clock that never goes back; `sleep` waits for some of them.
    """

    rate: float | None = None
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, requests: int = 1) -> None:
        """Wait until so many requests may be sent at once; those that come later wait for them, too."""
        if self.rate is None:
            return
        with self._lock:
            now = self.now()
            turn = max(now, self._next)
            self._next = turn + requests / self.rate
        if turn > now:
            self.sleep(turn - now)
