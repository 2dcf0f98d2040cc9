"""What a recording peer writes down: a request of a client and its answer, and the exchange that failures show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What came back for a request.

    Attributes:
        status: of HTTP; None where no answer came. Over gRPC the status of HTTP that stands for the code.
        body: after HTTP's framing; of a call, its last message. Empty where it was longer than what is kept.
        code: of the status that a gRPC call ended with, by name; `details` is its message.
        trouble: what went wrong on the way, as one line; else empty.
    """

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    version: str = "HTTP/1.1"
    code: str = ""
    details: str = ""
    trouble: str = ""


@dataclass(slots=True)
class RecordedExchange:
    """One request and its answer.

    Attributes:
        number: of the request among those of the recording, from 1.
        is_whole: whether the request's body was kept; one that is longer than the limit is judged by its head alone.
        answer: None until it has come, or it is certain that none will.
        elapsed: seconds from the end of the request to that of its answer.
        started: when the request had come, a UTC time in ISO 8601.
    """

    number: int
    received: ClientRequest
    is_whole: bool = True
    answer: RecordedAnswer | None = None
    elapsed: float = 0.0
    started: str = ""


class Listener(Protocol):
    """Who wants to know of what is recorded. It is called in one thread, one call after the other."""

    def asked(self, recorded: RecordedExchange) -> None:
        """Take a request as soon as it has come whole, or as far as it will."""

    def answered(self, recorded: RecordedExchange) -> None:
        """Take it once more when its answer has ended."""

    def unread(self, why: str) -> None:
        """Learn that the rest of a connection was forwarded and not read, and why."""


# --- as exchanges -----------------------------------------------------------------------------------------------------


_NOT_YET: Final = RecordedAnswer(trouble="no answer came")


def to_exchange(recorded: RecordedExchange, url: str, message: Message | None = None) -> Exchange:
    """Return the exchange of a request and its answer.

    Args:
        recorded: the request.
        url: that the client was told.
        message: the request itself, where more is known of it than is recorded.
    """
    received, answer = recorded.received, recorded.answer or _NOT_YET
    kind = FailureKind.CLOSED if answer.status is None else FailureKind.BROKEN
    return Exchange(
        recorded.number,
        message or Message(received.path, received.headers, received.body, received.method),
        url + received.path,
        answer.status,
        answer.headers,
        answer.body,
        TransportFailure(kind, answer.trouble) if answer.trouble else None,
        recorded.elapsed,
        note=_note(recorded),
        code=answer.code,
        details=answer.details,
        version=answer.version,
        is_chunked=received.is_chunked,
    )


def _note(recorded: RecordedExchange) -> str:
    """Return what a request's head and body do not show."""
    received = recorded.received
    version = received.version if not received.is_over_grpc and received.version != "HTTP/1.1" else ""
    too_long = "" if recorded.is_whole else "too long to be kept"
    chunks = "in chunks" if received.is_chunked else ""
    return ", ".join(part for part in (version, chunks, too_long, received.trouble) if part)


def read_recorded_answer(exchange: Exchange) -> RecordedAnswer:
    """Return the answer of an exchange as it was recorded."""
    return RecordedAnswer(
        exchange.status,
        exchange.headers,
        exchange.body,
        exchange.version,
        exchange.code,
        exchange.details,
        exchange.failure.text if exchange.failure else "",
    )
