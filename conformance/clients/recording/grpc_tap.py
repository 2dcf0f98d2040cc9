"""Taps a gRPC connection: records each request message of a client with its answer message and the call's status.

The proxy forwards the HTTP/2 bytes unchanged: metadata, deadlines, compression and the order of frames stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from conformance.clients.recording.grpc_frames import (
    Event,
    FrameReader,
    Headers,
    MessageSplitter,
    NotHttp2Error,
    decompress_message,
)
from conformance.clients.recording.recorder import Body, PendingRequest, Recorder
from conformance.clients.recording.records import RecordedAnswer
from conformance.transport.grpc_ending import CODES, RESET_NAMES
from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_request import GRPC_METHOD

MAX_STREAMS: Final = 10_000  # open on one connection at a time
MAX_MESSAGES: Final = 1000  # messages of one call


@dataclass(slots=True)
class _Call:
    """The state of one call. A server may end a call before the client has sent all messages.

    Attributes:
        pending: the request messages so far, in order.
        bodies: the answer messages so far, in order.
        trouble: why the call ended without a status; empty if the call ended with a status; None until the server or a
            reset ends the call.
        has_client_ended: whether the client has ended its side of the stream.
    """

    headers: Headers
    requests: MessageSplitter
    answers: MessageSplitter
    pending: list[PendingRequest] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answer_headers: Headers = ()
    trouble: str | None = None
    has_client_ended: bool = False


class GrpcTap:
    """Records the gRPC calls of one connection; see `forwarding.Tap`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._client_frames = FrameReader(is_from_client=True)
        self._server_frames = FrameReader(is_from_client=False)
        self._calls: dict[int, _Call] = {}
        self._is_stuck = False

    def read_from_client(self, data: bytes) -> None:
        """Process bytes from the client."""
        self._read_events(self._client_frames, data, is_from_client=True)

    def read_from_server(self, data: bytes) -> None:
        """Process bytes from the server."""
        self._read_events(self._server_frames, data, is_from_client=False)

    def handle_reset(self) -> None:
        """Do nothing: only HTTP/1 counts connection resets, gRPC resets streams."""

    def handle_end(self) -> None:
        """Record that the connection ended before its open calls."""
        for call in self._calls.values():
            _release(call)
            if call.trouble is None:
                self._end_call(call, "the connection ended before the call")

    def _read_events(self, reader: FrameReader, data: bytes, *, is_from_client: bool) -> None:
        if self._is_stuck:
            return
        try:
            for event in reader.feed(data):
                (self._handle_client_event if is_from_client else self._handle_server_event)(event)
        except NotHttp2Error as error:
            self._is_stuck = True
            self._recorder.report_unread(str(error))

    # --- the client's side ---

    def _handle_client_event(self, event: Event) -> None:
        if event.headers is not None and event.stream not in self._calls:
            if len(self._calls) >= MAX_STREAMS:
                raise NotHttp2Error(f"a gRPC connection has more than {MAX_STREAMS} open calls")
            store = self._recorder.store
            self._calls[event.stream] = _Call(event.headers, MessageSplitter(store), MessageSplitter(store))
        call = self._calls.get(event.stream)
        if call is None:
            return
        for is_compressed, body in call.requests.feed(event.data):
            if len(call.pending) < MAX_MESSAGES:
                self._record_request(call, body, is_compressed=is_compressed)
            else:
                body.release()
        call.has_client_ended = call.has_client_ended or event.has_ended
        if event.reset is not None and call.trouble is None:
            self._end_call(call, f"the client cancelled the call: {RESET_NAMES.get(event.reset, event.reset)}")
        self._remove_call(event.stream, call)

    def _record_request(self, call: _Call, body: Body, *, is_compressed: bool) -> None:
        is_whole, data = body.is_whole, body.release()
        if is_whole and is_compressed:
            coding = _find_header(call.headers, "grpc-encoding") or ""
            plain = decompress_message(data, coding, self._recorder.store.max_body_bytes)
            is_whole, data = plain is not None, plain or b""
        metadata = tuple(pair for pair in call.headers if not pair[0].startswith(":"))
        received = ClientRequest(GRPC_METHOD, _find_header(call.headers, ":path") or "", metadata, data, "HTTP/2")
        pending = self._recorder.record_request(received, is_whole=is_whole)
        call.pending.append(pending)
        if call.trouble is not None:
            self._recorder.record_answer(pending, _build_answer(call.answer_headers, b"", call.trouble))

    # --- the server's side ---

    def _handle_server_event(self, event: Event) -> None:
        call = self._calls.get(event.stream)
        if call is None:
            return
        for is_compressed, body in call.answers.feed(event.data):
            data = body.release()
            if is_compressed:
                coding = _find_header(call.answer_headers, "grpc-encoding") or ""
                data = decompress_message(data, coding, self._recorder.store.max_body_bytes) or b""
            if len(call.bodies) < MAX_MESSAGES:
                call.bodies.append(data)
        call.answer_headers += tuple(pair for pair in event.headers or () if pair != (":status", "200"))
        if event.has_ended and call.trouble is None:
            self._end_call(call, "" if event.reset is None else f"reset: {RESET_NAMES.get(event.reset, event.reset)}")
        self._remove_call(event.stream, call)

    def _end_call(self, call: _Call, trouble: str) -> None:
        """Record the answer of each request message: the answer message at the same index, with the call's status."""
        call.trouble = trouble
        for index, pending in enumerate(call.pending):
            body = call.bodies[index] if index < len(call.bodies) else b""
            self._recorder.record_answer(pending, _build_answer(call.answer_headers, body, trouble))

    def _remove_call(self, stream: int, call: _Call) -> None:
        """Forget a call if both the client and the server have ended it."""
        if call.has_client_ended and call.trouble is not None:
            _release(call)
            del self._calls[stream]


def _release(call: _Call) -> None:
    call.requests.close()
    call.answers.close()


def _build_answer(headers: Headers, body: bytes, trouble: str) -> RecordedAnswer:
    number = _find_header(headers, "grpc-status")
    if number is None or not number.isdecimal() or int(number) >= len(CODES):
        return RecordedAnswer(None, headers, body, "HTTP/2", trouble=trouble or "the call ended without a status")
    code, status = CODES[int(number)]
    details = unquote(_find_header(headers, "grpc-message") or "", errors="replace")
    return RecordedAnswer(status, headers, body, "HTTP/2", code, details)


def _find_header(headers: Headers, name: str) -> str | None:
    return next((value for key, value in headers if key == name), None)
