"""Records requests and their answers within memory limits, and passes the records to the listener.

Credentials are masked before anything is stored (`masking`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from conformance.clients.recording.masking import find_secrets, mask_answer, mask_request
from conformance.clients.recording.records import Listener, RecordedAnswer, RecordedExchange
from conformance.wire.client_request import ClientRequest

MAX_BODY_BYTES: Final = 64 * 1024 * 1024  # bytes of one body
MAX_HEAD_BYTES: Final = 256 * 1024
MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024  # bytes of all incomplete bodies together


class Store:
    """The memory budget for bodies, which all connections of a recording share."""

    def __init__(self, max_total_bytes: int = MAX_TOTAL_BYTES, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.free_bytes = max_total_bytes
        self.max_body_bytes = max_body_bytes


class Body:
    """A body in memory. If the body exceeds the memory budget, only its length is kept.

    Attributes:
        length: the number of received bytes.
        is_whole: whether all received bytes are stored.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pieces = bytearray()
        self.length = 0
        self.is_whole = True

    def add(self, data: bytes | bytearray) -> None:
        """Append the next bytes."""
        self.length += len(data)
        if self.is_whole and (self.length > self._store.max_body_bytes or len(data) > self._store.free_bytes):
            self.is_whole = False
            self.release()
        if self.is_whole:
            self._store.free_bytes -= len(data)
            self._pieces += data

    def release(self) -> bytes:
        """Release the memory and return the stored body; empty if it is incomplete."""
        kept = bytes(self._pieces)
        self._store.free_bytes += len(kept)
        self._pieces = bytearray()
        return kept if self.is_whole else b""


class PendingRequest:
    """A recorded request that waits for its answer, with the credentials to mask in that answer."""

    def __init__(self, recorded: RecordedExchange, secrets: tuple[str, ...]) -> None:
        self.recorded = recorded
        self.secrets = secrets
        self.received_at = time.monotonic()


class Recorder:
    """Records the requests and answers of one connection, and passes them to the listener.

    `store`: the memory budget for bodies, which all connections share.

    `numbers`: yields the numbers of requests, counted over all connections.
    """

    def __init__(self, listener: Listener, store: Store, numbers: Iterator[int]) -> None:
        self.store = store
        self._listener = listener
        self._numbers = numbers

    def record_request(self, received: ClientRequest, *, is_whole: bool = True) -> PendingRequest:
        """Mask the secrets of a request and report it to the listener; return it, to be completed with its answer."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = RecordedExchange(next(self._numbers), mask_request(received), is_whole, started=started)
        self._listener.handle_request(recorded)
        return PendingRequest(recorded, find_secrets(received))

    def record_answer(self, pending: PendingRequest, answer: RecordedAnswer) -> None:
        """Mask the answer to a request and report it to the listener; also call this for a missing answer."""
        pending.recorded.answer = mask_answer(answer, pending.secrets)
        pending.recorded.elapsed = time.monotonic() - pending.received_at
        self._listener.handle_answer(pending.recorded)

    def report_reset(self, pending: PendingRequest) -> None:
        """Report to the listener that the client reset the connection after the answer to this request."""
        self._listener.handle_reset(pending.recorded)

    def report_unread(self, why: str) -> None:
        """Report to the listener that bytes were forwarded without being recorded, and why."""
        self._listener.report_unread(why)
