"""Parses HTTP/2 frames from the bytes of one direction, and gRPC messages from these frames. Sans-I/O.

HTTP/2 yields headers, pieces of data, and ends of streams. A gRPC message is preceded by a compressed flag of one byte
and its length.

Source: RFC 9113, "HTTP Frames" and "Streams and Multiplexing"; RFC 7541; gRPC over HTTP2, "Length-Prefixed-Message".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hpack import Decoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame, RstStreamFrame

from conformance.clients.recording.recorder import Body, Store

Headers = tuple[tuple[str, str], ...]
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9  # bytes of a frame header
_MAX_TABLE_BYTES: Final = 1 << 24  # bytes; large enough for any table size that the peers negotiate
_MAX_HEADERS_BYTES: Final = 1 << 20


class NotHttp2Error(ValueError):
    """The bytes are not HTTP/2; the message is one line."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream: headers, data or a reset.

    Attributes:
        headers: the headers, or None.
        data: a piece of data; may be empty.
        has_ended: whether the event ends its direction of the stream.
        reset: the error code of a reset, or None.
    """

    stream: int
    headers: Headers | None = None
    data: bytes = b""
    has_ended: bool = False
    reset: int | None = None


class FrameReader:
    """Parses the HTTP/2 frames of one direction of a connection.

    `is_from_client`: whether the client sends the bytes. They begin with the connection preface.
    """

    def __init__(self, *, is_from_client: bool) -> None:
        self._buffer = bytearray()
        self._needs_preface = is_from_client
        self._decoder = Decoder(_MAX_HEADERS_BYTES)
        self._decoder.max_allowed_table_size = _MAX_TABLE_BYTES
        self._block = bytearray()  # a header block that continues in the next frame
        self._ends_stream = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Parse the next bytes; yield an event for each frame or header block that is complete.

        Raises NotHttp2Error: the bytes are not HTTP/2.
        """
        self._buffer += data
        if self._needs_preface and not self._skip_preface():
            return
        try:
            while (frame := self._parse_frame()) is not None:
                yield from self._list_events(frame)
        except (HyperframeError, HPACKError, UnicodeDecodeError) as error:
            raise NotHttp2Error(f"invalid HTTP/2 on a gRPC connection: {type(error).__name__}: {error}") from error

    def _skip_preface(self) -> bool:
        if not PREFACE.startswith(bytes(self._buffer[: len(PREFACE)])):
            raise NotHttp2Error("a connection to the gRPC port does not begin with the HTTP/2 preface")
        if len(self._buffer) < len(PREFACE):
            return False
        del self._buffer[: len(PREFACE)]
        self._needs_preface = False
        return True

    def _parse_frame(self) -> Frame | None:
        if len(self._buffer) < _HEAD:
            return None
        frame, length = Frame.parse_frame_header(memoryview(bytes(self._buffer[:_HEAD])))
        if len(self._buffer) < _HEAD + length:
            return None
        frame.parse_body(memoryview(bytes(self._buffer[_HEAD : _HEAD + length])))
        del self._buffer[: _HEAD + length]
        return frame

    def _list_events(self, frame: Frame) -> Iterator[Event]:
        if isinstance(frame, DataFrame):
            yield Event(frame.stream_id, data=bytes(frame.data), has_ended="END_STREAM" in frame.flags)
        elif isinstance(frame, RstStreamFrame):
            yield Event(frame.stream_id, has_ended=True, reset=frame.error_code)
        elif isinstance(frame, HeadersFrame | ContinuationFrame):
            yield from self._list_header_events(frame)

    def _list_header_events(self, frame: HeadersFrame | ContinuationFrame) -> Iterator[Event]:
        if isinstance(frame, HeadersFrame):
            self._ends_stream = "END_STREAM" in frame.flags
        self._block += frame.data
        if len(self._block) > _MAX_HEADERS_BYTES:
            raise NotHttp2Error("invalid HTTP/2 on a gRPC connection: too many bytes of headers")
        if "END_HEADERS" in frame.flags:
            pairs = self._decoder.decode(bytes(self._block), raw=True)
            self._block.clear()
            headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)
            yield Event(frame.stream_id, headers=headers, has_ended=self._ends_stream)


# --- messages ---------------------------------------------------------------------------------------------------------


PREFIX: Final = 5
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class MessageSplitter:
    """Splits the data of one direction of a stream into gRPC messages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefix = bytearray()
        self._body: Body | None = None
        self._missing_bytes = 0

    def feed(self, data: bytes) -> Iterator[tuple[bool, Body]]:
        """Add a piece of data; for each message that the piece completes, yield (is compressed, body)."""
        while data or (self._body is not None and not self._missing_bytes):
            if self._body is None:
                data = self._begin_message(data)
                continue
            piece, data = data[: self._missing_bytes], data[self._missing_bytes :]
            self._body.add(piece)
            self._missing_bytes -= len(piece)
            if not self._missing_bytes:
                done, self._body = self._body, None
                yield bool(self._prefix[0]), done
                self._prefix.clear()

    def _begin_message(self, data: bytes) -> bytes:
        missing = PREFIX - len(self._prefix)
        self._prefix += data[:missing]
        if len(self._prefix) == PREFIX:
            self._missing_bytes = int.from_bytes(self._prefix[1:], "big")
            self._body = Body(self._store)
        return data[missing:]

    def close(self) -> None:
        """Release the storage of an incomplete message."""
        if self._body is not None:
            self._body.release()
            self._body = None


def decompress_message(data: bytes, coding: str, max_bytes: int) -> bytes | None:
    """Decompress a message; return None for invalid data, an unknown coding, or more than `max_bytes`."""
    if coding not in _WINDOWS:
        return None
    decoder = zlib.decompressobj(_WINDOWS[coding])
    try:
        plain = decoder.decompress(data, max_bytes)
    except zlib.error:
        return None
    return plain if decoder.eof else None
