"""What is sent together is one call. It knows where in the run it belongs, so that a recording can replace a target."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.transport.exchange import Exchange
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class Call:
    """Messages that were sent together, and what came of them.

    Attributes:
        scope: what they were sent for, as given to `Target.scope`.
        index: the place of the call in its scope.
        exchanges: as many as were answered, failed or broke; fewer than messages where a connection was closed.
        lost: why the target could not be reached, or None.
        has_died: see `TargetLostError`.
    """

    scope: str
    index: int
    messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...] = ()
    lost: str | None = None
    has_died: bool = False
