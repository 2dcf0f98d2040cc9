"""uvicorn's HTTP protocol, adapted: every error has the OIP format, and trailers are not headers.

This is the only module that uses uvicorn's internals. `heads.py` decides which heads and chunks are refused.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus

from httptools import HttpParserInvalidMethodError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server import heads
from reference_server.heads import ChunkFrames, HeadRefusal
from reference_server.limits import DEFAULT, Limits
from reference_server.response import encode


class StallTimer:
    """Periodically checks that the write buffer shrinks; aborts the connection if the buffer does not shrink."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, period_s: float) -> None:
        self._transport = transport
        self._loop = loop
        self._period_s = period_s
        self._size = transport.get_write_buffer_size()
        self._timer = loop.call_later(period_s, self._check_buffer)

    def stop(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _check_buffer(self) -> None:
        size = self._transport.get_write_buffer_size()
        if size >= self._size:
            self._transport.abort()
            return
        self._size = size
        self._timer = self._loop.call_later(self._period_s, self._check_buffer)


class RefusedHeadError(Exception):
    """The head of a request is refused; raised in a parser callback, which stops the parser."""


class OipHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with an OIP error for malformed requests, with limits, and without trailers."""

    limits: Limits = DEFAULT
    _is_behind_the_head = False
    _is_in_head = False  # whether a head has begun, and has not ended
    _is_in_body = False  # whether a head has ended, and its body has not
    _head_size = 0  # bytes of the head, without those received together with its first byte
    _timer: asyncio.TimerHandle | None = None  # for a pending head, or for the rest of a body that the server discards
    _refusal: HeadRefusal | None = None
    _last_word: HeadRefusal | None = None  # refusal that waits for the answers to earlier requests; no more is read
    _data = b""  # the bytes being parsed
    _has_ended_one = False  # whether a request ended in `_data`, so that a later request does not start at byte 0
    _frames: ChunkFrames | None = None  # of a chunked body
    _stall_timer: StallTimer | None = None

    # --- a connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start a connection and the timer for its first head; refuse a connection over the limit."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(heads.TOO_MANY_CONNECTIONS)
        else:
            self._timer = self.loop.call_later(self.limits.wait_seconds, self._close_after_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a connection."""
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Handle the client's end of input: complete requests are still answered, an incomplete one is refused."""
        if self._is_in_body:
            self._refuse(heads.MALFORMED)
        elif self._last_word is None and self._is_answering():
            self.cycle.keep_alive = False
        return self._is_answering()

    def shutdown(self) -> None:
        """Close a connection at shutdown: at once if a body is incomplete, otherwise after the answer."""
        if self._is_in_body:
            self.transport.abort()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """Pause sending; abort the connection if the client reads nothing of the sent bytes for a limited time."""
        super().pause_writing()
        self._stall_timer = StallTimer(self.transport, self.loop, self.limits.wait_seconds)

    def resume_writing(self) -> None:
        """Resume sending."""
        if self._stall_timer is not None:
            self._stall_timer.stop()
            self._stall_timer = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; discard answers that the client has not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    # --- received data ---------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse bytes; limit the size of heads and of chunk framing."""
        if self._last_word is not None:
            return
        self._data, self._has_ended_one = data, False
        self._head_size += len(data)
        super().data_received(data)
        self._data = b""
        if self.transport.is_closing() or self._last_word is not None:
            return
        if not self._is_in_head:
            self._head_size = 0
        elif self._head_size > self.limits.head:
            self._refuse(heads.HEAD_TOO_LARGE)
        elif self._timer is None:  # the head is incomplete, which seldom happens
            self._timer = self.loop.call_later(self.limits.wait_seconds, self._close_after_timeout)
        if self._frames is not None and (refusal := self._frames.find_refusal(data)) is not None:
            self._refuse(refusal)

    def on_message_begin(self) -> None:
        """Start a request."""
        self._is_behind_the_head, self._is_in_head = False, True
        self._head_size = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; ignore trailer fields, whatever their name (RFC 9112, 7.1.2)."""
        if not self._is_behind_the_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Validate the completed head of a request."""
        self._is_behind_the_head, self._is_in_head = True, False
        self._stop_timer()
        version = self.parser.get_http_version()
        refusal = heads.find_refusal(version, self.parser.get_method(), self.url, self.headers)
        if version == "1.0":
            self.expect_100_continue = False  # RFC 9110, 10.1.1
            if heads.is_other_protocol(self._data):
                refusal = heads.MALFORMED
        if refusal is not None:
            self._refusal = refusal
            raise RefusedHeadError
        self._frames = ChunkFrames(self.limits) if heads.is_chunked(self.headers) else None
        super().on_headers_complete()
        self._is_in_body = True

    def on_chunk_header(self) -> None:
        """Record the start of a chunk: its size line has ended."""
        if self._frames is not None:
            self._frames.begin_chunk()

    def on_body(self, body: bytes) -> None:
        """Store a part of a body."""
        if self._frames is not None:
            self._frames.take(len(body))
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Record the end of a chunk."""
        if self._frames is not None:
            self._frames.end_chunk()

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        self._is_in_body, self._frames, self._has_ended_one = False, None, True
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Finish an answer; if it was sent before the body ended, the rest of the body must arrive in time."""
        is_last = not self.pipeline
        super().on_response_complete()
        if self._last_word is not None and is_last and not self.transport.is_closing():
            self._refuse_and_close(self._last_word)
        if self._is_in_body and self.cycle.response_complete and self._timer is None:
            self._timer = self.loop.call_later(self.limits.wait_seconds, self._close_after_timeout)

    # --- refusals --------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse a malformed request and close."""
        has_other_method = isinstance(sys.exc_info()[1], HttpParserInvalidMethodError)
        beginning = b"" if self._has_ended_one else self._data
        self._refuse(self._refusal or heads.find_parse_refusal(beginning, has_other_method))

    def _close_after_timeout(self) -> None:
        """Close a connection after a timeout: with an answer if a head is incomplete, otherwise without."""
        self._timer = None
        if self._is_in_head:
            self._refuse(heads.HEAD_TIMEOUT)
        else:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, refusal: HeadRefusal) -> None:
        """Send a refusal and close, after the answers to earlier requests."""
        self._stop_timer()
        if self._is_in_body and self.pipeline:
            self.pipeline.popleft()  # the refused request: it waits for earlier ones
            self._is_in_body = False
        elif self._is_in_body or not self._is_answering():
            self._refuse_and_close(refusal)
            return
        self._last_word = refusal

    def _is_answering(self) -> bool:
        """Whether an answer is being sent or is queued."""
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _refuse_and_close(self, refusal: HeadRefusal) -> None:
        """Send a refusal and close; send nothing if the answer to the refused request has already started."""
        if not (self._is_in_body and self.cycle.response_started):
            self.transport.write(self._format_refusal(refusal.status, encode({"error": refusal.message})))
        self.transport.close()

    def _format_refusal(self, status: HTTPStatus, body: bytes) -> bytes:
        head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        return f"{head}connection: close\r\n\r\n".encode("ascii") + body


def make_protocol(limits: Limits) -> type[OipHttpProtocol]:
    """Return a protocol class, as uvicorn expects it, with these limits."""
    return type("LimitedOipHttpProtocol", (OipHttpProtocol,), {"limits": limits})
