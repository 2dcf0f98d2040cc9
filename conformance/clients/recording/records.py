"""The records of a recording peer: a request of a client and its answer, also as an exchange for failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer to a request.

    Attributes:
        status: the HTTP status; None without an answer. Over gRPC, the HTTP status that corresponds to the code.
        body: the body without HTTP framing; of a call, the answer message. Empty if it was too long to store.
        code: the gRPC status code, by name; `details` is its message.
        trouble: the failure of the transfer, as one line; else empty.
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
        number: the number of the request within the recording, from 1.
        is_whole: whether the body of the request was stored; otherwise only its head is judged.
        answer: None until the answer has arrived or the call or connection has ended.
        elapsed: seconds from the end of the request to the end of its answer.
        started: when the request was received, a UTC time in ISO 8601.
    """

    number: int
    received: ClientRequest
    is_whole: bool = True
    answer: RecordedAnswer | None = None
    elapsed: float = 0.0
    started: str = ""


class Listener(Protocol):
    """Receives the records. All calls are made sequentially in one thread."""

    def handle_request(self, recorded: RecordedExchange) -> None:
        """Handle a request once it is complete, or cut short."""

    def handle_answer(self, recorded: RecordedExchange) -> None:
        """Handle the same exchange again once its answer has ended."""

    def handle_reset(self, recorded: RecordedExchange) -> None:
        """Handle a reset of the connection by the client after the answer to this request, its last."""

    def report_unread(self, why: str) -> None:
        """Handle bytes of a connection that were forwarded without being read; `why` is the reason."""


# --- as exchanges -----------------------------------------------------------------------------------------------------


_NO_ANSWER: Final = RecordedAnswer(trouble="no answer came")


def to_exchange(recorded: RecordedExchange, url: str, message: Message | None = None) -> Exchange:
    """Return the exchange of a request and its answer.

    Args:
        recorded: the request.
        url: the base URL given to the client.
        message: the request, if the caller knows more of it than is recorded.
    """
    received, answer = recorded.received, recorded.answer or _NO_ANSWER
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
        note=_describe_request(recorded),
        code=answer.code,
        details=answer.details,
        version=answer.version,
        is_chunked=received.is_chunked,
    )


def _describe_request(recorded: RecordedExchange) -> str:
    """Return the facts about a request that its head and body do not show."""
    received = recorded.received
    version = received.version if not received.is_over_grpc and received.version != "HTTP/1.1" else ""
    too_long = "" if recorded.is_whole else "too long to be stored"
    chunks = "in chunks" if received.is_chunked else ""
    return ", ".join(part for part in (version, chunks, too_long, received.trouble) if part)


def read_recorded_answer(exchange: Exchange) -> RecordedAnswer:
    """Convert an exchange back to its recorded answer."""
    return RecordedAnswer(
        exchange.status,
        exchange.headers,
        exchange.body,
        exchange.version,
        exchange.code,
        exchange.details,
        exchange.failure.text if exchange.failure else "",
    )
