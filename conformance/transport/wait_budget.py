"""How long waiting is borne: for requests in a row of which nothing whole came in time, and when it ends.

A wait is an exchange that used up its time: no answer, one that stalls, or one that goes on for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.wire.request import Message

# In a row: then something plain is asked, and where that is a wait, too, the target is lost.
PROBE_AFTER_WAITS: Final = 3
# Without an inference that is answered: a server that answers nothing else is as good as silent.
MAX_WAITS: Final = 5
# The same in time, as multiples of the timeout: a run that nothing comes of ends within a minute, where that is 10 s.
PROBE_AFTER_TIMEOUTS: Final = 2.5
MAX_TIMEOUTS: Final = 2.9
_INFERENCE: Final = "infer"  # how the paths of both transports end
_WAITS = (FailureKind.TIMEOUT, FailureKind.ENDLESS)


@dataclass(slots=True)
class WaitBudget:
    """Counts the waits in a row; what was sent together counts once.

    Attributes:
        timeout: seconds of silence that one exchange bears.
        waits: how many there were since the last answer to an inference; `seconds`: that were spent in them. Whatever
            else is answered between them gives no hope: that is what a server does of which the models hang.
        is_silent: no byte of an answer came in the last of them.
        answered: the last inference that was answered well: what a server has to answer that still infers.
    """

    timeout: float
    in_a_row: int = 0
    waits: int = 0
    is_silent: bool = False
    seconds: float = 0.0
    answered: Message | None = None

    def count(self, exchanges: Sequence[Exchange]) -> None:
        """Count what came of one call."""
        if exchanges and all(map(is_wait, exchanges)):
            self.in_a_row, self.waits = self.in_a_row + 1, self.waits + 1
            self.seconds += max(map(self._spent, exchanges))
            self.is_silent = all(map(_is_silence, exchanges))
            return
        self.in_a_row = 0
        for exchange in exchanges:
            if exchange.message.path.lower().endswith(_INFERENCE) and not is_wait(exchange):
                self.waits, self.seconds = 0, 0.0
                self.answered = exchange.message if Reply(exchange).succeeded else self.answered

    def _spent(self, exchange: Exchange) -> float:
        """Return the seconds of a wait; silence counts for the timeout, however late this machine noticed."""
        return self.timeout if _is_silence(exchange) else exchange.elapsed

    @property
    def is_long_in_a_row(self) -> bool:
        """Whether a few came in a row."""
        return self.in_a_row >= PROBE_AFTER_WAITS

    @property
    def is_low(self) -> bool:
        """Whether it is time to ask something plain: every few requests, or when they took long."""
        is_slow = self.seconds >= PROBE_AFTER_TIMEOUTS * self.timeout
        return self.in_a_row > 0 and (self.in_a_row % PROBE_AFTER_WAITS == 0 or is_slow)

    @property
    def is_over(self) -> bool:
        """Whether it was borne for too long, unless an inference is answered that was answered before."""
        return self.in_a_row > 0 and (self.waits >= MAX_WAITS or self.seconds >= MAX_TIMEOUTS * self.timeout)


def is_wait(exchange: Exchange) -> bool:
    """Say whether nothing whole came in time."""
    return exchange.failure is not None and exchange.failure.kind in _WAITS


def _is_silence(exchange: Exchange) -> bool:
    return exchange.status is None and exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT
