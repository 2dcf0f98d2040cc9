"""One gRPC call as an HTTP/2 stream, and the parsing of frames.

A frame that is longer than the maximum of the suite's settings is rejected before it is buffered.

Source: RFC 9113, 4.1 and 6.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from conformance.transport.exchange import TransportFailure

FRAME_HEAD_BYTES = 9  # bytes of a frame header; the first three are the length
MAX_FRAME_BYTES = 16 * 1024  # bytes of data in one frame: the limit that every peer accepts, and ours
GOAWAY_TYPE = 7  # the type of a frame
_LENGTH_BYTES, _GOAWAY_SIZE = 3, 8
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake


class FrameError(Exception):
    """The received data are not valid HTTP/2; the message describes the data briefly."""


@dataclass(frozen=True, slots=True)
class GoAway:
    """A GOAWAY frame: the peer accepts no further streams.

    `last`: the number of the last stream that the peer may have processed.
    """

    last: int
    code: int


def cut_frames(octets: bytearray) -> Iterator[bytes]:
    """Remove the complete frames from a buffer, and yield one at a time.

    Raises FrameError: the next frame exceeds `MAX_FRAME_BYTES`; raised after the earlier frames were yielded.
    """
    while len(octets) >= _LENGTH_BYTES:
        size = int.from_bytes(octets[:_LENGTH_BYTES], "big")
        if size > MAX_FRAME_BYTES:
            raise FrameError(_describe_octets(bytes(octets[:_LENGTH_BYTES]), size))
        if len(octets) < FRAME_HEAD_BYTES + size:
            return
        frame = bytes(octets[: FRAME_HEAD_BYTES + size])
        del octets[: FRAME_HEAD_BYTES + size]
        yield frame


def _describe_octets(first: bytes, size: int) -> str:
    if first == b"HTT":
        return "an HTTP/1 answer"
    if first.startswith(_TLS_RECORDS):
        return "a TLS record"
    return f"a frame of {size} bytes; the maximum is {MAX_FRAME_BYTES}"


def parse_goaway(frame: bytes) -> GoAway | None:
    """Parse a GOAWAY frame; return None for other frames. Raises FrameError: the GOAWAY frame is too short."""
    if frame[3] != GOAWAY_TYPE:
        return None
    payload = frame[FRAME_HEAD_BYTES:]
    if len(payload) < _GOAWAY_SIZE:
        raise FrameError(f"a GOAWAY frame of {len(payload)} bytes")
    return GoAway(int.from_bytes(payload[:4], "big") & 0x7FFFFFFF, int.from_bytes(payload[4:8], "big"))


Header = tuple[str, str]
PREFIX_BYTES = 5  # bytes of a message prefix: the compression flag and the length


def read_declared_length(data: bytes | bytearray) -> int:
    """Return the length that the prefix of a stream's first message declares."""
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


def is_grpc(content_type: str = "application/grpc") -> bool:
    """Return whether a content type is gRPC; for an absent content type, leave out the argument.

    An answer without a content type counts as gRPC. Source: gRPC over HTTP2, "Responses".
    """
    return content_type.lower().startswith("application/grpc")


@dataclass(slots=True)
class Stream:
    """One call: the data to send, and the received answer.

    Attributes:
        body: the message to send, with its prefix.
        number: the number of the stream; 0 before the stream is opened.
        at: the offset in `body` up to which it was sent; one more after the end of the stream was sent.
        headers: the first header block of the answer.
        reset: the code with which the server reset the stream before its end, or None.
        unprocessed: whether the server reports that it has not processed the call, so that it can be repeated.
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

    def list_values(self, name: str) -> list[str]:
        """Return all values of a header in headers and trailers of the answer."""
        return [value for key, value in (*self.headers, *self.trailers) if key == name]

    @property
    def has_messages(self) -> bool:
        """Whether status and content type say that the data are gRPC messages, not the HTML page of a gateway."""
        return self.list_values(":status")[-1:] == ["200"] and is_grpc(*self.list_values("content-type")[-1:])

    @property
    def is_done(self) -> bool:
        """Whether the call has ended."""
        return self.has_ended or self.reset is not None or self.failure is not None
