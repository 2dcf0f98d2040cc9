"""How long silence is borne: requests in a row that had no answer in time, and when nobody waits for more of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from conformance.transport.exchange import Exchange, FailureKind

# In a row: then something plain is asked, and where that has no answer either, the target is lost.
A_FEW: Final = 3
# In a row, whatever the plain requests between them: a server that answers nothing else is as good as silent.
MANY: Final = 20


@dataclass(slots=True)
class Patience:
    """Counts what had no answer in time; what was sent together counts once."""

    in_a_row: int = 0

    def count(self, exchanges: Sequence[Exchange]) -> None:
        """Count what came of one call."""
        self.in_a_row = self.in_a_row + 1 if all(map(is_silence, exchanges)) and exchanges else 0

    @property
    def is_low(self) -> bool:
        """Whether it is time to ask something plain: every few requests."""
        return self.in_a_row > 0 and self.in_a_row % A_FEW == 0

    @property
    def is_over(self) -> bool:
        """Whether it was borne for too long, whatever a plain request says."""
        return self.in_a_row >= MANY


def is_silence(exchange: Exchange) -> bool:
    """Say whether no byte of an answer came in time."""
    return exchange.status is None and exchange.failure is not None and exchange.failure.kind is FailureKind.TIMEOUT
