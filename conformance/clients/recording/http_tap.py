"""Taps an HTTP/1 connection: records the requests of a client and pairs them with their answers."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Final

from conformance.clients.recording.message_reader import HttpMessage, make_answer_reader, make_request_reader
from conformance.clients.recording.recorder import PendingRequest, Recorder
from conformance.clients.recording.records import RecordedAnswer
from conformance.wire.client_request import ClientRequest
from conformance.wire.request import INFERENCE_HEADER

MAX_REST_BYTES: Final = 32  # kept of the bytes after a body: they may contain the head of another request
_NO_ANSWER: Final = "the connection ended without an answer"
_BEGINS_LIKE_A_REQUEST: Final = re.compile(rb"[A-Z]{1,12}(?: |\Z)")


class HttpTap:
    """Records the HTTP/1 requests of one connection; see `forwarding.Tap`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._requests = make_request_reader(recorder.store)
        self._answers = make_answer_reader(recorder.store, self._find_next_method)
        self._waiting: deque[PendingRequest] = deque()
        self._early_answers: deque[RecordedAnswer] = deque()  # answers to requests that are still incomplete
        self._last_request: ClientRequest | None = None
        self._last_answered: PendingRequest | None = None

    def read_from_client(self, data: bytes) -> None:
        """Process bytes from the client."""
        for message in self._requests.feed(data):
            self._record_parsed(message)

    def read_from_server(self, data: bytes) -> None:
        """Process bytes from the server."""
        for message in self._answers.feed(data):
            self._record_answer(_build_answer(message))
        if self._answers.is_stuck and not self._requests.is_stuck:
            self._requests.is_stuck = True
            self._recorder.report_unread("a connection continues with bytes that are not HTTP/1")

    def handle_reset(self) -> None:
        """Report a reset by the client after an answer, unless another request is waiting or has begun."""
        if self._last_answered is not None and not self._waiting and self._requests.current is None:
            self._recorder.report_reset(self._last_answered)

    def handle_end(self) -> None:
        """Record the messages that end with the connection: an answer, an incomplete request, missing answers."""
        if message := self._answers.end():
            self._record_answer(_build_answer(message))
        if (current := self._requests.current) is not None:
            self._record_incomplete(current)
        elif head := self._requests.incomplete_head:
            self._record_stray_bytes(head)
        while self._waiting:
            self._recorder.record_answer(self._waiting.popleft(), RecordedAnswer(trouble=_NO_ANSWER))

    # --- requests ---

    def _record_parsed(self, message: HttpMessage) -> None:
        is_whole, body = message.body.is_whole, message.body.release()
        if message.trouble and not message.method:
            self._record_stray_bytes(body)
        elif message.is_reader_limit:
            self._recorder.report_unread(message.trouble)
        else:
            self._record_request(_build_request(message, body, _describe_trouble(message)), is_whole=is_whole)

    def _record_request(self, received: ClientRequest, *, is_whole: bool = True) -> None:
        self._last_request = received
        pending = self._recorder.record_request(received, is_whole=is_whole)
        if self._early_answers:
            self._recorder.record_answer(pending, self._early_answers.popleft())
        else:
            self._waiting.append(pending)

    def _record_incomplete(self, message: HttpMessage) -> None:
        """Record an incomplete request, if its body has all bytes that the JSON declares.

        Otherwise the client may have aborted the request; report its bytes as unread.

        """
        body = message.body.release()
        missing = "without the last chunk" if message.is_chunked else "but a larger Content-Length"
        trouble = f"a complete body of {len(body)} bytes, {missing}"
        received = _build_request(message, body, trouble)
        if has_declared_bytes(received):
            self._record_request(received)
        else:
            self._recorder.report_unread("a request was aborted before it was complete")

    def _record_stray_bytes(self, rest: bytes) -> None:
        """Record bytes that follow a request, but do not begin another request.

        The body of the request may be longer than its Content-Length. If that is unlikely, report the bytes as unread.

        """
        last = self._last_request
        if last is None or last.is_chunked or not last.is_inference or _BEGINS_LIKE_A_REQUEST.match(rest):
            self._recorder.report_unread("a connection contains bytes that are not an HTTP/1 request")
            return
        trouble = f"a body longer than its Content-Length of {len(last.body)}"
        shown = rest[:MAX_REST_BYTES]
        self._record_request(ClientRequest(last.method, last.path, last.headers, shown, last.version, trouble=trouble))

    # --- answers ---

    def _find_next_method(self) -> str:
        """Return the method of the request to which the next answer belongs."""
        if self._waiting:
            return self._waiting[0].recorded.received.method
        return self._requests.current.method if self._requests.current else "GET"

    def _record_answer(self, answer: RecordedAnswer) -> None:
        if self._waiting:
            self._last_answered = self._waiting.popleft()
            self._recorder.record_answer(self._last_answered, answer)
        elif self._requests.current is not None:
            self._early_answers.append(answer)


def has_declared_bytes(received: ClientRequest) -> bool:
    """Whether a body has exactly the bytes that its JSON and the inference header declare, regardless of framing."""
    header = received.header(INFERENCE_HEADER)
    try:
        end = len(received.body) if header is None else int(header)
        document = json.loads(received.body[:end])
        sizes = [item.get("parameters", {}).get("binary_data_size", 0) for item in document["inputs"]]
        return 0 < end <= len(received.body) and end + sum(sizes) == len(received.body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _build_request(message: HttpMessage, body: bytes, trouble: str) -> ClientRequest:
    return ClientRequest(
        message.method, message.path, message.headers, body, message.version, bool(message.is_chunked), trouble
    )


def _describe_trouble(message: HttpMessage) -> str:
    """Return why a request is not valid HTTP; empty if the request is valid."""
    part = "head" if message.is_chunked is None else "chunks"
    return f"{part}: {message.trouble}" if message.trouble else ""


def _build_answer(message: HttpMessage) -> RecordedAnswer:
    body = message.body.release()
    return RecordedAnswer(message.status, message.headers, body, message.version, trouble=message.trouble)
