"""One gRPC call as a stream of HTTP/2: what is still to be sent of it, and what has come, as it came."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.transport.exchange import TransportFailure

Header = tuple[str, str]
PREFIX_BYTES = 5  # bytes in front of a message: whether it is compressed, and its length


def read_declared_length(data: bytes | bytearray) -> int:
    """Return the length that the first message of a stream says it has."""
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


def is_grpc(content_type: str = "application/grpc") -> bool:
    """Say whether a content type, where there is one, is that of gRPC (gRPC over HTTP2, "Responses")."""
    return content_type.lower().startswith("application/grpc")


@dataclass(slots=True)
class Stream:
    """One call: what is still to be sent, and what has come.

    Attributes:
        headers: the first block of them that came; `trailers` the second.
        reset: the code with which the server ended the stream before it was complete, or None.
        unprocessed: the server says that it has done nothing about the call, so that it may be made again.
    """

    sent: list[Header]
    body: bytes
    number: int = 0
    at: int = 0
    headers: tuple[Header, ...] = ()
    trailers: tuple[Header, ...] = ()
    data: bytearray = field(default_factory=bytearray)
    has_ended: bool = False
    reset: int | None = None
    unprocessed: bool = False
    failure: TransportFailure | None = None
    elapsed: float = 0.0

    def given(self, name: str) -> list[str]:
        """Return the values of a header of the answer."""
        return [value for key, value in (*self.headers, *self.trailers) if key == name]

    @property
    def has_messages(self) -> bool:
        """Whether its data are messages of gRPC: a gateway may answer with a page of its own."""
        return self.given(":status")[-1:] == ["200"] and is_grpc(*self.given("content-type")[-1:])

    @property
    def is_done(self) -> bool:
        """Whether nothing more can come."""
        return self.has_ended or self.reset is not None or self.failure is not None
