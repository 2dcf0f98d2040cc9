"""Traffic that no correct client sends: malformed requests, premature ends, connections that are held open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto

from conformance.transport import sockets
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.settings import Settings
from conformance.wire.request import Message


class ConnectionEnd(Enum):
    """The client's treatment of its connection after it has sent everything."""

    OPEN = auto()  # it stays open, as if more data followed
    DONE = auto()  # its sending side is closed, and the answer is read
    RESET = auto()  # the connection is reset, and nothing is read


@dataclass(frozen=True, slots=True)
class Octets:
    """Bytes to send on a separate connection.

    Attributes:
        head: the first bytes, unchanged.
        filling: bytes that follow, repeated `times` times.
        tail: the last bytes.
        described: a short description for failure messages.
        most: the maximum number of answers to read.
    """

    head: bytes
    described: str
    filling: bytes = b""
    times: int = 0
    tail: bytes = b""
    end: ConnectionEnd = ConnectionEnd.OPEN
    most: int = 1

    @property
    def size(self) -> int:
        """The total number of bytes."""
        return len(self.head) + self.times * len(self.filling) + len(self.tail)


# The suite waits this multiple of its timeout, so that a server with an equal timeout can still report it.
TIMEOUT_FACTOR = 1.5
_RESET = TransportFailure(FailureKind.CLOSED, "reset by the client")


def send_octets(settings: Settings, message: Message, octets: Octets) -> list[Exchange]:
    """Send the bytes, and read answers until the connection ends or the maximum is reached.

    Raises:
        UnreachableError: the connection failed.
    """
    note = f"{octets.described} ({octets.size} bytes)"
    answers: list[Exchange] = []
    with sockets.connect(replace(settings, timeout=TIMEOUT_FACTOR * settings.timeout)) as connection:
        broken = connection.send([octets.head + octets.filling * octets.times + octets.tail])
        if octets.end is ConnectionEnd.RESET:
            connection.reset()
            return [Exchange(0, message, settings.url + message.path, failure=_RESET, note=note, as_octets=True)]
        if octets.end is ConnectionEnd.DONE:
            connection.end_sending()
        while len(answers) < octets.most:
            found = connection.receive(message)
            failure = found.failure if found.status else broken or found.failure
            answers.append(replace(found, failure=failure, note=note, as_octets=True))
            if found.status is None or not connection.is_kept:
                break
    return answers


@contextmanager
def hold_connections(settings: Settings, pieces: Sequence[bytes]) -> Iterator[None]:
    """Open a connection for each piece, send the piece, and keep all open until the context ends.

    Raises:
        UnreachableError: the connection failed.
    """
    with ExitStack() as stack:
        for piece in pieces:
            connection = stack.enter_context(sockets.connect(settings))
            if piece:
                connection.send([piece])
        yield
