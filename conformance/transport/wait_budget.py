"""Limits the time that a run spends on consecutive requests without a complete answer.

Such a request is called a wait: its answer did not come, stalled, or did not end before the timeout or size limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.wire.request import Message

# Waits in a row before a simple request is sent; if that request has no complete answer either, the target is lost.
PROBE_AFTER_WAITS: Final = 3
# Waits since the last answered inference, after which the target is lost unless it still answers an inference.
MAX_WAITS: Final = 5
# The same limits as multiples of the timeout: a run without answers ends within a minute, at a timeout of 10 s.
PROBE_AFTER_TIMEOUTS: Final = 2.5
MAX_TIMEOUTS: Final = 2.9
_INFERENCE: Final = "infer"  # the end of inference paths on both transports
_WAITS = (FailureKind.TIMEOUT, FailureKind.ENDLESS)


@dataclass(slots=True)
class WaitBudget:
    """Counts waits; requests that were sent together count once.

    Attributes:
        timeout: the maximum number of seconds of silence in one exchange.
        in_a_row: the number of waits since the last complete answer to any request.
        waits: the number of waits since the last answered inference. Other answers do not reset this number, because a
            server whose models hang may still answer other requests.
        is_silent: whether no byte of an answer arrived in the last wait.
        seconds: the total time of these `waits`.
        answered: the last inference with a successful answer; a working server must be able to answer it again.
    """

    timeout: float
    in_a_row: int = 0
    waits: int = 0
    is_silent: bool = False
    seconds: float = 0.0
    answered: Message | None = None

    def count(self, exchanges: Sequence[Exchange]) -> None:
        """Count the exchanges of one call."""
        if exchanges and all(map(is_wait, exchanges)):
            self.count_wait(max(map(self._measure_wait, exchanges)), is_silent=all(map(is_silence, exchanges)))
            return
        self.in_a_row = 0
        for exchange in exchanges:
            if is_inference(exchange) and not is_wait(exchange):
                self.count_inference()
                self.answered = exchange.message if Reply(exchange).succeeded else self.answered

    def count_wait(self, seconds: float, *, is_silent: bool) -> None:
        """Count one wait."""
        self.in_a_row, self.waits = self.in_a_row + 1, self.waits + 1
        self.seconds += seconds
        self.is_silent = is_silent

    def count_inference(self) -> None:
        """Count an answered inference, which resets the waits."""
        self.in_a_row, self.waits, self.seconds = 0, 0, 0.0

    def _measure_wait(self, exchange: Exchange) -> float:
        """Return the seconds of a wait; silence counts as exactly the timeout, even if this machine noticed it late."""
        return self.timeout if is_silence(exchange) else exchange.elapsed

    @property
    def has_many_in_a_row(self) -> bool:
        """Whether `PROBE_AFTER_WAITS` waits occurred in a row."""
        return self.in_a_row >= PROBE_AFTER_WAITS

    @property
    def is_probe_due(self) -> bool:
        """Whether to test the target with a simple request: after every few waits in a row, or if they took long."""
        is_slow = self.seconds >= PROBE_AFTER_TIMEOUTS * self.timeout
        return self.in_a_row > 0 and (self.in_a_row % PROBE_AFTER_WAITS == 0 or is_slow)

    @property
    def is_used_up(self) -> bool:
        """Whether the waits since the last answered inference are too many or took too long."""
        return self.in_a_row > 0 and (self.waits >= MAX_WAITS or self.seconds >= MAX_TIMEOUTS * self.timeout)


def is_inference(exchange: Exchange) -> bool:
    """Return whether the request asks for an inference."""
    return exchange.message.path.lower().endswith(_INFERENCE)


def is_wait(exchange: Exchange) -> bool:
    """Return whether no complete answer arrived in time."""
    return exchange.failure is not None and exchange.failure.kind in _WAITS


def is_silence(exchange: Exchange) -> bool:
    """Return whether no byte of an answer arrived in time."""
    return exchange.status is None and exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT
