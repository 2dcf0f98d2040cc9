"""What was recorded of a client as an exchange, which is what failures and recordings show."""

from __future__ import annotations

from typing import Final

from conformance.clients.recording.records import RecordedAnswer, RecordedExchange
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.wire.request import Message

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
