"""The records of the recording proxy: requests of clients and their answers. Converts them from and to exchanges."""

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
        status: the HTTP status, or None without an answer; over gRPC, the HTTP status that corresponds to the code.
        body: the body without HTTP framing; over gRPC, the answer message. Empty if it was too long to store.
        code: the gRPC status code, by name; empty over HTTP.
        trouble: why the answer is missing or incomplete, as one line; empty for a complete answer.
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
    """A recorded request and its answer.

    Attributes:
        number: the number of the request within the recording, from 1.
        received: the request, with credentials masked.
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
    """Receives the records of the proxy. All methods are called in one thread, one after the other."""

    def handle_request(self, recorded: RecordedExchange) -> None:
        """Handle a request that is complete or was truncated; `answer` is still None."""

    def handle_answer(self, recorded: RecordedExchange) -> None:
        """Handle the answer to a request that `handle_request` has received before; `answer` is set."""

    def handle_reset(self, recorded: RecordedExchange) -> None:
        """Handle a reset by the client, after the answer to this request, which is the last of the connection."""

    def report_unread(self, why: str) -> None:
        """Handle a report that bytes of a connection were forwarded without being recorded; `why` is the reason."""


# --- as exchanges -----------------------------------------------------------------------------------------------------


_NO_ANSWER: Final = RecordedAnswer(trouble="no answer arrived")


def to_exchange(recorded: RecordedExchange, url: str, message: Message | None = None) -> Exchange:
    """Convert a recorded request and its answer to an exchange.

    `message`: the request as the exchange holds it; None: built from the recorded request.
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
    """Return a note on properties that headers and body do not show: HTTP version, chunks, truncation, HTTP faults."""
    received = recorded.received
    version = received.version if not received.is_over_grpc and received.version != "HTTP/1.1" else ""
    too_long = "" if recorded.is_whole else "too long to be stored"
    chunks = "in chunks" if received.is_chunked else ""
    return ", ".join(part for part in (version, chunks, too_long, received.trouble) if part)


def read_recorded_answer(exchange: Exchange) -> RecordedAnswer:
    """Extract the answer from an exchange; the reverse of `to_exchange`."""
    return RecordedAnswer(
        exchange.status,
        exchange.headers,
        exchange.body,
        exchange.version,
        exchange.code,
        exchange.details,
        exchange.failure.text if exchange.failure else "",
    )
