"""One gRPC call as a stream of HTTP/2, and the frames that it comes in.

Frames are cut one by one, none longer than was agreed, so that little is kept of a lie.

Source: RFC 9113, 4.1 and 6.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from conformance.transport.exchange import TransportFailure

FRAME_HEAD_BYTES = 9  # bytes in front of a frame, of which the first three are its length
MAX_FRAME_BYTES = 16 * 1024  # bytes of data in one frame that every peer takes, and that we take
GOAWAY_TYPE = 7  # the type of a frame
_LENGTH, _GOAWAY_SIZE = 3, 8
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake


class FrameError(Exception):
    """What came is no HTTP/2; the message says what it is, in a few words of ours."""


@dataclass(frozen=True, slots=True)
class GoAway:
    """The other side takes no further streams.

    Attributes:
        last: the last stream that it has begun, or may begin.
        code: why.
    """

    last: int
    code: int


def cut_frames(octets: bytearray) -> Iterator[bytes]:
    """Take whole frames off the front, one at a time: what is wrong with one says nothing of those before it.

    Raises:
        FrameError: the next frame is longer than was agreed; that is said before it is read.
    """
    while len(octets) >= _LENGTH:
        size = int.from_bytes(octets[:_LENGTH], "big")
        if size > MAX_FRAME_BYTES:
            raise FrameError(_describe_octets(bytes(octets[:_LENGTH]), size))
        if len(octets) < FRAME_HEAD_BYTES + size:
            return
        frame = bytes(octets[: FRAME_HEAD_BYTES + size])
        del octets[: FRAME_HEAD_BYTES + size]
        yield frame


def _describe_octets(first: bytes, size: int) -> str:
    if first == b"HTT":
        return "an answer of HTTP/1"
    if first.startswith(_TLS_RECORDS):
        return "a record of TLS"
    return f"a frame of {size} bytes, and {MAX_FRAME_BYTES} were agreed"


def parse_goaway(frame: bytes) -> GoAway | None:
    """Return what a frame says of the end of its connection, None where it is about something else.

    Raises:
        FrameError: it is too short to say it.
    """
    if frame[3] != GOAWAY_TYPE:
        return None
    said = frame[FRAME_HEAD_BYTES:]
    if len(said) < _GOAWAY_SIZE:
        raise FrameError(f"a GOAWAY of {len(said)} bytes")
    return GoAway(int.from_bytes(said[:4], "big") & 0x7FFFFFFF, int.from_bytes(said[4:8], "big"))


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
