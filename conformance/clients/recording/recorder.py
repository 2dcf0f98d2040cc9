"""Records requests and their answers within memory limits, and passes the records to the listener.

Masks credentials before anything is stored, since no rule needs them. Keeps the names of headers and of URL parameters.
Elsewhere, replaces a long secret by asterisks of the same length, so that lengths and offsets stay correct.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from conformance.clients.recording.records import Listener, RecordedAnswer, RecordedExchange
from conformance.transport import credentials
from conformance.wire.client_request import ClientRequest

MAX_BODY_BYTES: Final = 64 * 1024 * 1024  # bytes of one body
MAX_HEAD_BYTES: Final = 256 * 1024
MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024  # bytes of all incomplete bodies together


class Store:
    """The memory budget that all connections of a recording share."""

    def __init__(self, max_total_bytes: int = MAX_TOTAL_BYTES, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.free_bytes = max_total_bytes
        self.max_body_bytes = max_body_bytes


class Body:
    """A body that is stored within the budget; one that does not fit is only counted.

    Attributes:
        length: the number of received bytes.
        is_whole: whether all of them are stored.
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
    """A request that waits for its answer."""

    def __init__(self, recorded: RecordedExchange, secrets: tuple[str, ...]) -> None:
        self.recorded = recorded
        self.secrets = secrets
        self.received_at = time.monotonic()


class Recorder:
    """Records one connection.

    Attributes:
        store: the memory budget for bodies, which all connections share.

    Args:
        numbers: numbers for requests, counted over all connections.
    """

    def __init__(self, listener: Listener, store: Store, numbers: Iterator[int]) -> None:
        self.store = store
        self._listener = listener
        self._numbers = numbers

    def record_request(self, received: ClientRequest, *, is_whole: bool = True) -> PendingRequest:
        """Record a request, report it to the listener, and return it as pending."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorded = RecordedExchange(next(self._numbers), mask_request(received), is_whole, started=started)
        self._listener.handle_request(recorded)
        return PendingRequest(recorded, find_secrets(received))

    def record_answer(self, pending: PendingRequest, answer: RecordedAnswer) -> None:
        """Record the answer of a request, or that there was none, and report it to the listener."""
        pending.recorded.answer = mask_answer(answer, pending.secrets)
        pending.recorded.elapsed = time.monotonic() - pending.received_at
        self._listener.handle_answer(pending.recorded)

    def report_reset(self, pending: PendingRequest) -> None:
        """Report to the listener that the client reset the connection after the answer to this request."""
        self._listener.handle_reset(pending.recorded)

    def report_unread(self, why: str) -> None:
        """Report to the listener that something was forwarded without being read."""
        self._listener.report_unread(why)


# --- masking credentials ----------------------------------------------------------------------------------------------


HIDDEN: Final = "..."
# Secrets of at least this length are masked everywhere in a request: a shorter one may be part of its JSON.
MIN_SECRET_CHARS: Final = 16
_USER: Final = re.compile(r"\A([a-z]+://)[^/@?#]*@", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


def find_secrets(received: ClientRequest) -> tuple[str, ...]:
    """Return the credentials that a request carries, the longest first."""
    in_url = [(match[2], match[3]) for match in _PARAMETER.finditer(received.path)]
    return credentials.find_secrets([*received.headers, *in_url])


def mask_request(received: ClientRequest) -> ClientRequest:
    """Mask the credentials in a request."""
    long = [secret for secret in find_secrets(received) if len(secret) >= MIN_SECRET_CHARS and not secret.isdecimal()]
    path = _PARAMETER.sub(_mask_parameter, _USER.sub(rf"\1{HIDDEN}@", received.path))
    return replace(
        received,
        path=_hide_secrets(path, long),
        headers=_mask_headers(received.headers, long),
        body=credentials.hide_bytes(received.body, long),
    )


def mask_answer(answer: RecordedAnswer, secrets: tuple[str, ...]) -> RecordedAnswer:
    """Mask cookies in an answer, and credentials of the request that it repeats."""
    return replace(
        answer,
        headers=_mask_headers(answer.headers, secrets),
        body=credentials.hide_bytes(answer.body, secrets),
        details=_hide_secrets(answer.details, secrets),
    )


def _mask_headers(headers: tuple[tuple[str, str], ...], secrets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, HIDDEN if credentials.is_credential(name) else _hide_secrets(value, secrets)) for name, value in headers
    )


def _hide_secrets(text: str, secrets: Sequence[str]) -> str:
    return credentials.hide_bytes(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def _mask_parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    return f"{before}{name}={HIDDEN if credentials.is_credential(name) else value}"
