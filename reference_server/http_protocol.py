"""What uvicorn does with bytes, bent to the protocol: every error has the OIP form, and a trailer is no header.

The one place that touches uvicorn's inside. `heads.py` says which heads and chunks are refused.
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


class Unsent:
    """Looks now and then whether what waits to be sent becomes less; a connection where it does not is at its end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        self._transport = transport
        self._loop = loop
        self._patience = patience
        self._size = transport.get_write_buffer_size()
        self._timer = loop.call_later(patience, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        size = self._transport.get_write_buffer_size()
        if size >= self._size:
            self._transport.abort()
            return
        self._size = size
        self._timer = self._loop.call_later(self._patience, self._look)


class RefusedHeadError(Exception):
    """The head of a request is refused; raised through the parser, which stops there."""


class OipHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with an OIP error for malformed requests, with limits, and without trailers."""

    limits: Limits = DEFAULT
    _is_behind_the_head = False
    _is_in_head = False  # whether a head has begun, and has not ended
    _is_in_body = False  # whether a head has ended, and its body has not
    _head_size = 0  # bytes of it, but for those that came with its first
    _timer: asyncio.TimerHandle | None = (
        None  # of a head that is waited for, or of the rest of a body that nobody reads
    )
    _refusal: HeadRefusal | None = None
    _last_word: HeadRefusal | None = None  # for a request behind others that have no answer yet; no more is read
    _data = b""  # what is being read
    _has_ended_one = False  # whether a request has ended in that, so that it does not begin with the next
    _frames: ChunkFrames | None = None  # of a body in chunks
    _unsent: Unsent | None = None

    # --- a connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; the first head has to come in time. One too many is refused."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(heads.TOO_MANY)
        else:
            self._timer = self.loop.call_later(self.limits.patience, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Take it that the client sends no more: whole requests still get their answers, one cut off is refused."""
        if self._is_in_body:
            self._refuse(heads.MALFORMED)
        elif self._last_word is None and self._is_answering():
            self.cycle.keep_alive = False
        return self._is_answering()

    def shutdown(self) -> None:
        """End a connection as the server does: at once where no whole request has come, else after the answer."""
        if self._is_in_body:
            self.transport.abort()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """Wait for the client to take what is sent, but not for ever."""
        super().pause_writing()
        self._unsent = Unsent(self.transport, self.loop, self.limits.patience)

    def resume_writing(self) -> None:
        """Go on sending."""
        if self._unsent is not None:
            self._unsent.stop()
            self._unsent = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, with what the client does not take of its answers."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    # --- what comes ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head may have so many and no more, and so may what stands around chunks."""
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
            self._refuse(heads.TOO_LARGE)
        elif self._timer is None:  # the head did not come whole, which seldom happens
            self._timer = self.loop.call_later(self.limits.patience, self._give_up)
        if self._frames is not None and (refusal := self._frames.refusal(data)) is not None:
            self._refuse(refusal)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_behind_the_head, self._is_in_head = False, True
        self._head_size = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a field behind the body is none, whatever its name (RFC 9112, 7.1.2)."""
        if not self._is_behind_the_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._is_behind_the_head, self._is_in_head = True, False
        self._stop_timer()
        version = self.parser.get_http_version()
        refusal = heads.refusal(version, self.parser.get_method(), self.url, self.headers)
        if version == "1.0":
            self.expect_100_continue = False  # RFC 9110, 10.1.1
            if heads.is_other_protocol(self._data):
                refusal = heads.MALFORMED
        if refusal is not None:
            self._refusal = refusal
            raise RefusedHeadError
        self._frames = ChunkFrames(self.limits) if heads.has_chunks(self.headers) else None
        super().on_headers_complete()
        self._is_in_body = True

    def on_chunk_header(self) -> None:
        """Begin a chunk: the line with its size has ended."""
        if self._frames is not None:
            self._frames.begin_chunk()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if self._frames is not None:
            self._frames.take(len(body))
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """End a chunk."""
        if self._frames is not None:
            self._frames.end_chunk()

    def on_message_complete(self) -> None:
        """End a request."""
        self._is_in_body, self._frames, self._has_ended_one = False, None, True
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer; the rest of a body that it was given without has to come in time."""
        is_last = not self.pipeline
        super().on_response_complete()
        if self._last_word is not None and is_last and not self.transport.is_closing():
            self._end_with(self._last_word)
        if self._is_in_body and self.cycle.response_complete and self._timer is None:
            self._timer = self.loop.call_later(self.limits.patience, self._give_up)

    # --- what is refused -------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse a malformed request and close."""
        has_other_method = isinstance(sys.exc_info()[1], HttpParserInvalidMethodError)
        beginning = b"" if self._has_ended_one else self._data
        self._refuse(self._refusal or heads.find_parse_refusal(beginning, has_other_method))

    def _give_up(self) -> None:
        """End a connection whose next head, or the rest of whose body, does not come; in a head, with an answer."""
        self._timer = None
        if self._is_in_head:
            self._refuse(heads.TOO_SLOW)
        else:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, refusal: HeadRefusal) -> None:
        """Say why and close, when the requests in front have their answers."""
        self._stop_timer()
        if self._is_in_body and self.pipeline:
            self.pipeline.popleft()  # the request that is refused: it waits for those in front
            self._is_in_body = False
        elif self._is_in_body or not self._is_answering():
            self._end_with(refusal)
            return
        self._last_word = refusal

    def _is_answering(self) -> bool:
        """Whether an answer is under way, or waits for one that is."""
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _end_with(self, refusal: HeadRefusal) -> None:
        """Say why and close; without a word where the refused request itself has begun to be answered."""
        if not (self._is_in_body and self.cycle.response_started):
            self.transport.write(self._refused(refusal.status, encode({"error": refusal.message})))
        self.transport.close()

    def _refused(self, status: HTTPStatus, body: bytes) -> bytes:
        head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        return f"{head}connection: close\r\n\r\n".encode("ascii") + body


def make_protocol(limits: Limits) -> type[OipHttpProtocol]:
    """Return the protocol with limits of its own, as uvicorn takes one: a class."""
    return type("LimitedOipHttpProtocol", (OipHttpProtocol,), {"limits": limits})
