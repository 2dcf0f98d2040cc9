"""One request and its answer, kept as bytes: the evidence of a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import count

from conformance.spec.text import shorten_middle
from conformance.transport.send_options import PLAIN, SendOptions
from conformance.wire import grpc_answer
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.response import Answer, parse

# Statuses of a gateway that cannot reach its server (RFC 9110, 15.6.3 to 15.6.5).
GATEWAY_STATUSES = (502, 503, 504)
MAX_ERROR_BYTES = 64 * 1024  # of an error body that a message quotes


class FailureKind(StrEnum):
    """The kinds of failures during the transfer of a request or its answer."""

    TIMEOUT = "timeout"  # the timeout passed without a connection, an answer, or the next byte of an answer
    CLOSED = "closed"  # the connection ended before the first byte of an answer
    BROKEN = "broken"  # the connection was reset, or ended inside an answer
    MALFORMED = "malformed"  # the received bytes violate the specification of the transport
    STATUSLESS = "statusless"  # a gRPC call ended without a status from the server, while its connection stayed open
    ENDLESS = "endless"  # the answer exceeds the limit of size or time
    GONE = "gone"  # a gateway answered in place of its server, and then everything else in the same way
    REFUSED = "refused"  # the host refused the connection, and the suite did not wait for the server to come back


class GoAhead(StrEnum):
    """How the server reacted to a head with `Expect: 100-continue`, before the suite sent the body."""

    GIVEN = "given"  # the server sent 100 Continue
    NOT_NEEDED = "not needed"  # the server sent a final answer or closed the connection: the body was never sent
    WITHHELD = "withheld"  # the server sent nothing during the wait; the body was sent anyway


@dataclass(frozen=True, slots=True)
class TransportFailure:
    """A transport failure: the kind for programs, a short text for people."""

    kind: FailureKind
    text: str

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer.

    Attributes:
        number: the index of this exchange in its scope, from 0.
        url: the URL of the request, without credentials.
        status: the HTTP status, or over gRPC the HTTP status that corresponds to `code`; None if no answer came.
        headers: the headers of the answer, in wire order, with the case of the server.
        body: the body of the answer, after HTTP's framing and with content codings still applied.
        failure: the failure of the transfer, or None. An exchange with a truncated body has a status and a failure.
        elapsed: the seconds that the exchange took.
        note: how the message was sent, in words; empty if it was sent in one piece.
        code: the name of the gRPC status code; empty over HTTP.
        details: the message of the gRPC status; empty over HTTP.
        go_ahead: the reaction to `Expect: 100-continue`, if the body was held back; else None.
        send_options: the options with which the message was sent; the default if the sending function has none, and for
            exchanges read from a recording.
        is_chunked: whether the request was sent in chunks.
        connection: the number of the connection, if other exchanges may share the connection; else 0.
        as_octets: whether raw bytes were sent instead of the message; the note describes the bytes.
        call: the index of the exchange's `Call` in its scope, from 0.
        is_short_wait: whether no complete answer came in a wait that was shorter than the timeout; see `answer_wait`.
        is_slow: whether no answer came, but the server may be slow instead of hanging; see `answer_wait`.
        surplus: the number of bytes that came with the answer, but after its end.
    """

    number: int
    message: Message
    url: str
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    failure: TransportFailure | None = None
    elapsed: float = 0.0
    note: str = ""
    code: str = ""
    details: str = ""
    version: str = "HTTP/1.1"
    go_ahead: GoAhead | None = None
    send_options: SendOptions = PLAIN
    is_chunked: bool = False
    connection: int = 0
    call: int = 0
    as_octets: bool = False
    is_short_wait: bool = False
    is_slow: bool = False
    surplus: int = 0


_connection_numbers = count(1)


def assign_connection_number() -> int:
    """Return the next unused number, for a new connection."""
    return next(_connection_numbers)


class Reply:
    """The answer of an exchange, as checks use it; the body is parsed on first access."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @property
    def status(self) -> int | None:
        """The status of the answer: see `Exchange.status`."""
        return self.exchange.status

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        return self.exchange.body

    @property
    def succeeded(self) -> bool:
        """Whether a complete answer with a 2xx status came."""
        return self.exchange.failure is None and self.status is not None and 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Return a header of the answer, case-insensitively; several values are joined by commas (RFC 9110 5.3)."""
        values = [value for key, value in self.exchange.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    @cached_property
    def answer(self) -> Answer:
        """The parsed body; the server's output names are replaced by the names that the model role defines."""
        if self.is_over_grpc:
            method = self.exchange.message.path.rpartition("/")[2]
            if method != "ModelInfer" and not self.succeeded:  # no bytes would be a message of default values
                return Answer(self.body, None, 0, (), ())
            return grpc_answer.parse(self.body, method).rename_outputs(self.exchange.message.names)
        return parse(self.body, self.header(INFERENCE_HEADER)).rename_outputs(self.exchange.message.names)

    @property
    def is_http_1_0(self) -> bool:
        """Whether the answer is HTTP/1.0, which has neither chunks nor interim answers."""
        return self.exchange.version == "HTTP/1.0"

    @property
    def is_refusal(self) -> bool:
        """Whether a complete answer with an error status came."""
        return self.exchange.failure is None and self.status is not None and self.status >= 400

    @property
    def unrequested_coding(self) -> str:
        """The content coding of the answer, if the request had no Accept-Encoding; else empty."""
        coding = (self.header("Content-Encoding") or "").strip()
        is_requested = any(name.lower() == "accept-encoding" for name, _ in self.exchange.message.headers)
        return "" if is_requested or self.is_over_grpc or coding.lower() == "identity" else coding

    def has_failed(self, *kinds: FailureKind) -> bool:
        """Return whether the exchange failed with one of these kinds."""
        return self.exchange.failure is not None and self.exchange.failure.kind in kinds

    @property
    def has_ended_unanswered(self) -> bool:
        """Whether the connection, or the server behind a gateway, ended before the head of an answer was complete."""
        return self.status is None and self.has_failed(FailureKind.CLOSED, FailureKind.BROKEN, FailureKind.GONE)

    @property
    def has_no_server_answer(self) -> bool:
        """Whether the server may be gone: no answer came, or one that a gateway gives in its place."""
        is_of_gateway = self.exchange.code == "UNAVAILABLE" or (
            self.status in GATEWAY_STATUSES and not self.exchange.code
        )
        return is_of_gateway or self.has_ended_unanswered

    @property
    def is_over_grpc(self) -> bool:
        """Whether the exchange is a gRPC call."""
        return self.exchange.message.method == GRPC_METHOD

    @property
    def status_line(self) -> str:
        """The status as text for people: `HTTP 200`, or the name of a gRPC code."""
        return self.exchange.code or f"HTTP {self.status}"

    def outcome(self) -> str:
        """Return one line for people: the status, a failure if any, and the error text or the size of the body."""
        if self.status is None:
            return str(self.exchange.failure or "no answer")
        cut = f", {self.exchange.failure}" if self.exchange.failure else ""
        text = self._format_error_text() if not self.succeeded else f"{len(self.body)} bytes"
        return f"{self.status_line}{cut}: {text}" if text else f"{self.status_line}{cut}"

    def _format_error_text(self) -> str:
        """Return the server's error, without the middle of a long one: the gRPC message, or the body; no HTML page."""
        is_html = (self.header("Content-Type") or "").partition(";")[0].strip().lower() == "text/html"
        if is_html and self.answer.document is None:
            return "text/html"
        text = self.exchange.details if self.is_over_grpc else self.body[:MAX_ERROR_BYTES].decode("utf-8", "replace")
        return shorten_middle(text, 200)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method of `Target`: the messages that it sent, and their exchanges.

    The messages of a call are sent concurrently, or one after the other on one connection.

    Attributes:
        scope: the name of the scope (`TargetClient.scope`) in which the call was made.
        index: the index of the call in its scope, from 0.
        exchanges: one for each message that was answered or failed; fewer than messages if a connection was closed.
        lost: why the target could not be reached, or None.
        has_died: see `TargetLostError`.
        has_hung: see `TargetClient.has_hung`.
    """

    scope: str
    index: int
    messages: tuple[Message, ...]
    exchanges: tuple[Exchange, ...] = ()
    lost: str | None = None
    has_died: bool = False
    has_hung: bool = False
