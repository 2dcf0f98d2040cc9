"""What no client sends: octets that are no request, ends in the middle, connections that are held open."""

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
    """What becomes of the client's side of a connection, once everything is sent."""

    OPEN = auto()  # it stays open, as if more were coming
    DONE = auto()  # it is closed, and the answer is read
    RESET = auto()  # the connection is reset, and nothing is read


@dataclass(frozen=True, slots=True)
class Octets:
    """What is sent on a connection of its own.

    Attributes:
        head: as it goes out.
        filling: is repeated behind it, `times` times.
        tail: what follows.
        described: all that in a few words, as a failure shows it.
        most: answers that are read.
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
        """How many octets there are."""
        return len(self.head) + self.times * len(self.filling) + len(self.tail)


# A server that waits for as long as we do is given that much longer to say so.
TIMEOUT_FACTOR = 1.5
_RESET = TransportFailure(FailureKind.CLOSED, "reset by the client")


def send_octets(settings: Settings, message: Message, octets: Octets) -> list[Exchange]:
    """Send octets, and read what comes back until the connection ends or so many answers are there.

    Raises:
        Unreachable: no connection could be made.
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
    """Open a connection for each piece, send it, and leave them open until the end of the context.

    Raises:
        Unreachable: no connection could be made.
    """
    with ExitStack() as stack:
        for piece in pieces:
            connection = stack.enter_context(sockets.connect(settings))
            if piece:
                connection.send([piece])
        yield
