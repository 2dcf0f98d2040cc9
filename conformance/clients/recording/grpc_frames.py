"""Reads HTTP/2 out of a copy of what passes, in one direction: headers, pieces of data, and ends of streams. Sans-I/O.

Source: RFC 9113, "HTTP Frames" and "Streams and Multiplexing"; RFC 7541.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hpack import Decoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame, RstStreamFrame

Headers = tuple[tuple[str, str], ...]
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9  # bytes in front of a frame
_MAX_TABLE_BYTES: Final = 1 << 24  # bytes; whatever the other side allows is decoded
_MAX_HEADERS_BYTES: Final = 1 << 20


class NotHttp2Error(ValueError):
    """What came is not HTTP/2; the message is one line."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that came on a stream.

    Attributes:
        headers: a block of them, or None; `data`: a piece of data.
        has_ended: whether the stream ends with it; `reset`: with an error of this number, or None.
    """

    stream: int
    headers: Headers | None = None
    data: bytes = b""
    has_ended: bool = False
    reset: int | None = None


class FrameReader:
    """Reads one direction of a connection.

    Args:
        is_of_client: it begins with the preface.
    """

    def __init__(self, *, is_of_client: bool) -> None:
        self._buffer = bytearray()
        self._needs_preface = is_of_client
        self._decoder = Decoder(_MAX_HEADERS_BYTES)
        self._decoder.max_allowed_table_size = _MAX_TABLE_BYTES
        self._block = bytearray()  # of headers that go on in the next frame
        self._ends_stream = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take the next bytes; yield what they complete.

        Raises:
            NotHttp2Error: they are not HTTP/2.
        """
        self._buffer += data
        if self._needs_preface and not self._take_preface():
            return
        try:
            while (frame := self._next()) is not None:
                yield from self._event(frame)
        except (HyperframeError, HPACKError, UnicodeDecodeError) as error:
            raise NotHttp2Error(f"a connection of gRPC cannot be read: {type(error).__name__}: {error}") from error

    def _take_preface(self) -> bool:
        if not PREFACE.startswith(bytes(self._buffer[: len(PREFACE)])):
            raise NotHttp2Error("a connection to the port of gRPC does not begin as HTTP/2 does")
        if len(self._buffer) < len(PREFACE):
            return False
        del self._buffer[: len(PREFACE)]
        self._needs_preface = False
        return True

    def _next(self) -> Frame | None:
        if len(self._buffer) < _HEAD:
            return None
        frame, length = Frame.parse_frame_header(memoryview(bytes(self._buffer[:_HEAD])))
        if len(self._buffer) < _HEAD + length:
            return None
        frame.parse_body(memoryview(bytes(self._buffer[_HEAD : _HEAD + length])))
        del self._buffer[: _HEAD + length]
        return frame

    def _event(self, frame: Frame) -> Iterator[Event]:
        if isinstance(frame, DataFrame):
            yield Event(frame.stream_id, data=bytes(frame.data), has_ended="END_STREAM" in frame.flags)
        elif isinstance(frame, RstStreamFrame):
            yield Event(frame.stream_id, has_ended=True, reset=frame.error_code)
        elif isinstance(frame, HeadersFrame | ContinuationFrame):
            yield from self._headers(frame)

    def _headers(self, frame: HeadersFrame | ContinuationFrame) -> Iterator[Event]:
        if isinstance(frame, HeadersFrame):
            self._ends_stream = "END_STREAM" in frame.flags
        self._block += frame.data
        if len(self._block) > _MAX_HEADERS_BYTES:
            raise NotHttp2Error("a connection of gRPC cannot be read: headers without end")
        if "END_HEADERS" in frame.flags:
            pairs = self._decoder.decode(bytes(self._block), raw=True)
            self._block.clear()
            headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)
            yield Event(frame.stream_id, headers=headers, has_ended=self._ends_stream)
