"""How long to wait for the answers of a target: longer beside other requests, shorter after a few waits in vain.

A server may answer one request after the other, so requests in flight together get as long as it takes for all of them.
A target whose requests never ran into the timeout always gets the whole timeout, however slow it is.

No document says how fast an answer has to be. A wait proves that a server hangs only if the server has answered such
requests well within the wait (`AnswerTimes.find_hint`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

# Requests that take the whole timeout before waits are shortened.
MAX_WHOLE_WAITS: Final = 2
# A short wait is SLOWEST_ANSWERS times the slowest answer so far, and at least MIN_PART of the timeout (1 s of 10 s).
SLOWEST_ANSWERS: Final = 10
MIN_PART: Final = 0.1
# After MANY_SHORT_WAITS of them, the target hangs on a whole kind of request, and a short wait is this part of it.
MANY_SHORT_WAITS: Final = 16
LATER_PART: Final = 0.3
# A wait of fewer than so many times the fastest answer proves nothing: alone, and for each of the requests in flight.
PROVING_ANSWERS: Final = 4
PROVING_ANSWERS_EACH: Final = 2
# The timeout that a message suggests for a target that has answered no inference, as a multiple of the timeout.
SUGGESTED_TIMEOUTS: Final = 6


@dataclass(slots=True)
class AnswerTimes:
    """The answer times of a target; a forked process goes on from those of the main process.

    Attributes:
        slowest_s: the seconds that the slowest complete answer took.
        short_waits: the number of calls that got no answer in a short wait.
        slowest_alone_s: the seconds that the slowest inference took of those without others in flight.
        fastest_s: path -> the seconds that the fastest inference with this path took.
        in_flight: the number of requests in flight, with one for each other process.
        abandoned: the number of requests without an answer since the last answered inference: a server may still be
            busy with them.
        queued: how many of these a server may still be busy with that takes no longer for each than it has so far.
    """

    slowest_s: float = 0.0
    whole_waits: int = 0
    short_waits: int = 0
    slowest_alone_s: float = 0.0
    fastest_s: dict[str, float] = field(default_factory=dict)
    in_flight: int = 0
    abandoned: int = 0
    queued: int = 0
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def count_in_flight(self, count: int) -> Iterator[None]:
        """Count requests as in flight in this context."""
        self._add_in_flight(count)
        try:
            yield
        finally:
            self._add_in_flight(-count)

    def _add_in_flight(self, count: int) -> None:
        with self._lock:
            self.in_flight += count

    @property
    def pending(self) -> int:
        """The number of requests that the server may be busy with."""
        return self.in_flight + self.abandoned

    def note_answer(self, seconds: float) -> None:
        """Note the seconds that a complete answer took."""
        self.slowest_s = max(self.slowest_s, seconds)

    def note_inference(self, path: str, seconds: float) -> None:
        """Note the seconds that a successful inference took."""
        if self.pending <= 1:
            self.slowest_alone_s = max(self.slowest_alone_s, seconds)
        self.fastest_s[path] = min(seconds, self.fastest_s.get(path, seconds))
        self.abandoned = self.queued = 0

    def note_abandoned(self, count: int, seconds: float) -> None:
        """Note how many requests got no answer in so many seconds, in which the server ends some of those before."""
        ended = int(seconds / self.slowest_alone_s) if self.slowest_alone_s else 0
        self.abandoned += count
        self.queued = max(0, self.queued + count - ended)

    def find_hint(self, path: str, wait_s: float, timeout: float) -> str:
        """Return the option that helps if a wait may have ended because the server is slow, else an empty string.

        `path`: the path of the request.
        `wait_s`: the seconds of the wait.
        """
        fastest = self.fastest_s.get(path, min(self.fastest_s.values(), default=0.0))
        proving_s = fastest * max(PROVING_ANSWERS, PROVING_ANSWERS_EACH * self.pending)
        if self.fastest_s and proving_s < wait_s:
            return ""
        suggested = max(SUGGESTED_TIMEOUTS * timeout, 10 * (proving_s // 10 + 1))
        return f"; the server may only be slow: try --target-timeout={suggested:g}"


@dataclass(slots=True)
class AnswerWait:
    """How long to wait for the answers of one target.

    `short_s`: the seconds that replace the timeout; None: the timeout applies. May change between requests.
    """

    times: AnswerTimes = field(default_factory=AnswerTimes)
    short_s: float | None = None

    def choose_wait(self, timeout: float) -> float:
        """Return the seconds to wait now: time for all requests in flight and one more, and at least the timeout."""
        alone = timeout if self.short_s is None else self.short_s
        others = self.times.in_flight + self.times.queued - 1
        return alone if others <= 0 else max(alone, (others + 2) * self.times.slowest_alone_s)

    def find_short_wait(self, timeout: float) -> float | None:
        """Return the seconds to wait instead of the timeout; None if the timeout applies."""
        if self.times.whole_waits < MAX_WHOLE_WAITS:
            return None
        seconds = self.compute_short_wait(timeout)
        if seconds >= timeout:
            return None
        return seconds * (LATER_PART if self.times.short_waits >= MANY_SHORT_WAITS else 1)

    def compute_short_wait(self, timeout: float) -> float:
        """Return the seconds within which the target has answered everything so far, with a margin."""
        return min(timeout, max(MIN_PART * timeout, SLOWEST_ANSWERS * self.times.slowest_s))
