"""What a recording peer writes down: a request as it came from a client, and what it was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from conformance.wire.client_request import ClientRequest


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
