"""An inference request that a peer heard, and what it answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from conformance.clients.answers.script import CallAnswer, Ending, HttpAnswer
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER, Message

_FAILURES: Final = {
    Ending.CLOSE: TransportFailure(FailureKind.BROKEN, "the peer closed the connection, as scripted"),
    Ending.RESET: TransportFailure(FailureKind.BROKEN, "the peer reset the connection, as scripted"),
    Ending.SILENT: TransportFailure(FailureKind.TIMEOUT, "the peer fell silent, as scripted"),
}


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One inference request and its answer.

    Attributes:
        address: of the peer, as the client was given it.
        number: its place among those that a check has heard.
    """

    received: ClientRequest
    answer: HttpAnswer | CallAnswer
    address: str
    number: int = 0

    def exchange(self, number: int | None = None) -> Exchange:
        """Return it as an exchange, for reports; `number` is its own unless it is given."""
        place = self.number if number is None else number
        message = Message(
            self.received.path,
            self.received.headers,
            self.received.body,
            self.received.method,
            json_length=_json_length(self.received),
        )
        url = f"{self.address}{self.received.path}"
        chunked = self.received.is_chunked
        if isinstance(self.answer, HttpAnswer):
            failure = _FAILURES.get(self.answer.ending)
            headers, body = self.answer.headers, self.answer.body
            return Exchange(place, message, url, self.answer.status, headers, body, failure, is_chunked=chunked)
        ending = Ending.SILENT if self.answer.is_silent else Ending.CLOSE if self.answer.is_closed else Ending.KEEP
        code, details = self.answer.code, self.answer.details
        return Exchange(
            place, message, url, None, (), self.answer.message, _FAILURES.get(ending), code=code, details=details
        )


def _json_length(received: ClientRequest) -> int:
    """Return how long the request says that its JSON is, as far as that can be."""
    said = received.header(INFERENCE_HEADER) or ""
    length = int(said) if said.isascii() and said.isdigit() and len(said) < 12 else len(received.body)
    return 0 if received.is_over_grpc else min(length, len(received.body))
