"""Sends what no correct client sends: malformed or incomplete requests, and connections that are held open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto

from conformance.transport.connection import connect
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.settings import Settings
from conformance.wire.request import Message


class ConnectionEnd(Enum):
    """What the client does with its connection after it has sent all bytes."""

    OPEN = auto()  # the connection stays open, as if more data followed
    DONE = auto()  # the client closes its sending side, and reads the answer
    RESET = auto()  # the client resets the connection, and reads nothing
    RESET_ANSWER = auto()  # the client resets the connection shortly after the answer has begun, and reads nothing


@dataclass(frozen=True, slots=True)
class Octets:
    """Raw bytes to send on a separate connection: `head`, then `times` times `filling`, then `tail`.

    Attributes:
        described: a short description of the bytes for failure messages.
        end: what the client does after it has sent the bytes.
        max_answers: the maximum number of answers to read.
    """

    head: bytes
    described: str
    filling: bytes = b""
    times: int = 0
    tail: bytes = b""
    end: ConnectionEnd = ConnectionEnd.OPEN
    max_answers: int = 1

    @property
    def size(self) -> int:
        """The total number of bytes."""
        return len(self.head) + self.times * len(self.filling) + len(self.tail)


# The suite waits this multiple of its timeout, so that a server with an equal timeout can still report it.
TIMEOUT_FACTOR = 1.5
RESET_PAUSE_S = 0.02  # between the first byte of an answer and a reset: the server sends the body in between
_RESET = TransportFailure(FailureKind.CLOSED, "reset by the client")


def send_octets(settings: Settings, message: Message, octets: Octets) -> list[Exchange]:
    """Send the bytes, and read answers until the connection ends or `max_answers` is reached.

    Raises UnreachableError: the connection failed.
    """
    note = f"{octets.described} ({octets.size} bytes)"
    answers: list[Exchange] = []
    with connect(replace(settings, timeout=TIMEOUT_FACTOR * settings.timeout)) as connection:
        connection.send([octets.head + octets.filling * octets.times + octets.tail])
        if octets.end in (ConnectionEnd.RESET, ConnectionEnd.RESET_ANSWER):
            if octets.end is ConnectionEnd.RESET_ANSWER:
                connection.delay_reading(RESET_PAUSE_S)
            connection.reset()
            return [Exchange(0, message, settings.url + message.path, failure=_RESET, note=note, as_octets=True)]
        if octets.end is ConnectionEnd.DONE:
            connection.end_sending()
        while len(answers) < octets.max_answers:
            found = connection.receive(message)
            answers.append(replace(found, note=note, as_octets=True))
            if found.status is None or not connection.is_kept:
                break
    return answers


@contextmanager
def hold_connections(settings: Settings, pieces: Sequence[bytes]) -> Iterator[None]:
    """Open a connection for each piece, send the piece, and keep all open until the context ends.

    Raises UnreachableError: the connection failed.
    """
    with ExitStack() as stack:
        for piece in pieces:
            connection = stack.enter_context(connect(settings))
            if piece:
                connection.send([piece])
        yield
