"""Makes records of requests and of their answers, and tells the listener of them, without any credential in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from conformance.clients.recording.body_store import Store
from conformance.clients.recording.masking import find_secrets, mask_answer, mask_request
from conformance.clients.recording.records import Listener, RecordedAnswer, RecordedExchange
from conformance.wire.client_request import ClientRequest


class PendingRequest:
    """A request that waits for its answer."""

    def __init__(self, recorded: RecordedExchange, secrets: tuple[str, ...]) -> None:
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

    def asked(self, received: ClientRequest, *, is_whole: bool = True) -> PendingRequest:
        """Record a request and tell of it; it waits for its answer."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = RecordedExchange(next(self._numbers), mask_request(received), is_whole, started=started)
        self._listener.asked(recorded)
        return PendingRequest(recorded, find_secrets(received))

    def answered(self, asked: PendingRequest, answer: RecordedAnswer) -> None:
        """Record the answer of a request, or that none came, and tell of it."""
        asked.recorded.answer = mask_answer(answer, asked.secrets)
        asked.recorded.elapsed = time.monotonic() - asked.at
        self._listener.answered(asked.recorded)

    def unread(self, why: str) -> None:
        """Tell that something was forwarded and not read."""
        self._listener.unread(why)
