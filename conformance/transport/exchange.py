"""One request and what came back, kept as bytes: the evidence of a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import count

from conformance.transport.send_options import PLAIN, SendOptions
from conformance.wire import grpc_answer
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.response import Answer, parse


class FailureKind(StrEnum):
    """What can go wrong on the way of a request or its answer."""

    TIMEOUT = "timeout"  # no connection, no answer, or no next byte of it, in time
    CLOSED = "closed"  # the connection ended without a byte of an answer
    BROKEN = "broken"  # the connection was reset, or ended inside an answer
    MALFORMED = "malformed"  # what came is not what the transport's own specification says
    STATUSLESS = "statusless"  # a gRPC call ended, on a connection that went on, and the server gave it no status
    ENDLESS = "endless"  # the answer is longer, or takes longer, than anybody reads


class GoAhead(StrEnum):
    """What came of a head with `Expect: 100-continue`, while its body was held back."""

    GIVEN = "given"  # 100 Continue came
    NOT_NEEDED = "not needed"  # a final answer came, or the connection ended: the body was never sent
    WITHHELD = "withheld"  # nothing came for as long as was waited; then the body was sent nevertheless


@dataclass(frozen=True, slots=True)
class TransportFailure:
    """What went wrong on the way: the kind for programs, a few words for people."""

    kind: FailureKind
    text: str

    def __str__(self) -> str:
        """Return the words."""
        return self.text


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer.

    Attributes:
        number: the place of this exchange in its check, from 0.
        url: where the request went, without credentials.
        status: None where no answer came; over gRPC the HTTP status that stands for the code.
        headers: of the answer, in wire order and with its own spelling.
        body: of the answer, after HTTP's framing and without any decoding.
        failure: what went wrong on the way, or None. A body cut short has status and failure.
        elapsed: seconds.
        note: how it was sent, where that was not in one piece.
        code: of the status that a gRPC call ended with, by name; empty over HTTP. `details` is its message.
        version: of HTTP, as the answer states it.
        go_ahead: where the body was held back behind `Expect: 100-continue`, what came of that; else None.
        manner: how it was sent, where that could be chosen; a recording has none.
        is_chunked: whether the request went out in chunks.
        connection: the number of its connection, where other exchanges may share that; else 0.
        as_octets: what went out is no message, but what the note says.
        call: the place of its call in its check, from 0: exchanges of one call were in flight at once, or one after
            the other on one connection.
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
    manner: SendOptions = PLAIN
    is_chunked: bool = False
    connection: int = 0
    call: int = 0
    as_octets: bool = False


_connections = count(1)


def take_connection_number() -> int:
    """Return the number of a connection that is opened now."""
    return next(_connections)


class Reply:
    """An exchange as checks look at it; the answer is taken apart when first asked for."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange

    @property
    def status(self) -> int | None:
        """The HTTP status, None where no answer came."""
        return self.exchange.status

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        return self.exchange.body

    @property
    def succeeded(self) -> bool:
        """Whether a whole answer with a 2xx status came."""
        return self.exchange.failure is None and self.status is not None and 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Return the value of a header of the answer, in any case; several are joined by commas (RFC 9110 5.3)."""
        values = [value for key, value in self.exchange.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    @cached_property
    def answer(self) -> Answer:
        """The body taken apart; its outputs have the names of the role that the model fills."""
        if self.is_over_grpc:
            return grpc_answer.parse(self.body).renamed(self.exchange.message.names)
        return parse(self.body, self.header(INFERENCE_HEADER)).renamed(self.exchange.message.names)

    @property
    def is_http_1_0(self) -> bool:
        """Whether the answer is one of HTTP/1.0, which knows no chunks and no interim answers."""
        return self.exchange.version == "HTTP/1.0"

    @property
    def is_refusal(self) -> bool:
        """Whether a whole answer came, and its status says that the request was refused."""
        return self.exchange.failure is None and self.status is not None and self.status >= 400

    @property
    def unasked_coding(self) -> str:
        """The content coding of a good answer to a request that asks for none by itself; empty where it has none."""
        coding = (self.header("Content-Encoding") or "").strip()
        is_asked = any(name.lower() == "accept-encoding" for name, _ in self.exchange.message.headers)
        return "" if is_asked or self.is_over_grpc or coding.lower() == "identity" else coding

    def has_failed(self, *kinds: FailureKind) -> bool:
        """Whether something of these kinds went wrong on the way."""
        return self.exchange.failure is not None and self.exchange.failure.kind in kinds

    @property
    def is_over_grpc(self) -> bool:
        """Whether it is the end of a gRPC call."""
        return self.exchange.message.method == GRPC_METHOD

    @property
    def status_line(self) -> str:
        """The status for a person: `HTTP 200`, or a gRPC code."""
        return self.exchange.code or f"HTTP {self.status}"

    def outcome(self) -> str:
        """What came back, on one line, for a person."""
        if self.status is None:
            return str(self.exchange.failure or "no answer")
        cut = f", {self.exchange.failure}" if self.exchange.failure else ""
        text = self._error_text() if not self.succeeded else f"{len(self.body)} bytes"
        return f"{self.status_line}{cut}: {text}" if text else f"{self.status_line}{cut}"

    def _error_text(self) -> str:
        """What the server says of an error."""
        return self.exchange.details[:200] if self.is_over_grpc else self.body[:200].decode("utf-8", "replace")


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
