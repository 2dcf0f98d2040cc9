"""Makes records of requests and of their answers, and tells the listener of them, without any credential in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from conformance.clients.recording.kept import Store
from conformance.clients.recording.masking import masked, masked_answer, secrets_of
from conformance.clients.recording.recorded import Answered, Listener, Recorded
from conformance.wire.received import Received


class Asked:
    """A request that waits for its answer."""

    def __init__(self, recorded: Recorded, secrets: tuple[str, ...]) -> None:
        self.recorded = recorded
        self.secrets = secrets
        self.at = time.monotonic()


class Recorder:
    """Records one connection.

    Attributes:
        store: the room for bodies, which all connections share.

    Args:
        numbers: of requests, through all connections.
    """

    def __init__(self, listener: Listener, store: Store, numbers: Iterator[int]) -> None:
        self.store = store
        self._listener = listener
        self._numbers = numbers

    def asked(self, received: Received, *, is_whole: bool = True) -> Asked:
        """Record a request and tell of it; it waits for its answer."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = Recorded(next(self._numbers), masked(received), is_whole, started=started)
        self._listener.asked(recorded)
        return Asked(recorded, secrets_of(received))

    def answered(self, asked: Asked, answer: Answered) -> None:
        """Record the answer of a request, or that none came, and tell of it."""
        asked.recorded.answer = masked_answer(answer, asked.secrets)
        asked.recorded.elapsed = time.monotonic() - asked.at
        self._listener.answered(asked.recorded)

    def unread(self, why: str) -> None:
        """Tell that something was forwarded and not read."""
        self._listener.unread(why)
