"""Answers that report an error (as a message, plain text or without a body), and truncated answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from conformance.clients.answers.honest import Style
from conformance.clients.answers.script import (
    PLAIN,
    CallAnswer,
    Delivery,
    Ending,
    HttpAnswer,
    HttpScript,
    Script,
    Tensors,
)
from conformance.clients.inference import Inference
from conformance.wire.client_request import ClientRequest

MESSAGE: Final = "request 4711 refused: too few lamps"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error that the peer answers, over either transport.

    Attributes:
        code: the gRPC code, by name.
        message: the error message for the caller; may be empty.
        body: the body of the HTTP answer, in any format.
    """

    status: int
    code: str
    message: str
    body: bytes
    content_type: str = JSON

    def answer_http(self, received: ClientRequest, _inference: Inference, _tensors: Tensors) -> HttpAnswer:
        """Return this error as the answer to an HTTP request. This method is an `HttpScript`."""
        headers = (("Content-Type", self.content_type),) if self.body else ()
        return PLAIN.answer(self.status, headers, self.body, received)

    def answer_call(self, _received: ClientRequest, _inference: Inference, _tensors: Tensors) -> CallAnswer:
        """Return this error as the answer to a gRPC call. This method is a `CallScript`."""
        return CallAnswer(code=self.code, details=self.message)

    def list_expected_texts(self, *, over_grpc: bool) -> tuple[str, ...]:
        """Return the texts of which the client's error must contain at least one.

        Return only the message for JSON bodies and over gRPC, or only the status if there is no message. For another
        HTTP body, return both.
        """
        status = self.code if over_grpc else str(self.status)
        if self.message and (over_grpc or self.content_type == JSON):
            return (self.message,)
        return (self.message, status) if self.message else (status,)

    def build_script(self) -> Script:
        """Return a script that answers every request with this error."""
        return Script(lambda _: (), self.answer_http, self.answer_call)


def _build_error_answer(status: int, code: str, message: str = MESSAGE) -> ErrorAnswer:
    return ErrorAnswer(status, code, message, json.dumps({"error": message}, ensure_ascii=False).encode())


LIKE_AN_ANSWER: Final = (
    b'{"model_name":"m","model_version":"1","outputs":[{"name":"OUT0","datatype":"INT32","shape":[1],"data":[1]}]}'
)
ERRORS: Final[Mapping[str, ErrorAnswer]] = {
    "400-object": _build_error_answer(400, "INVALID_ARGUMENT"),
    "404-object": _build_error_answer(404, "NOT_FOUND"),
    "500-object": _build_error_answer(500, "INTERNAL"),
    "503-object": _build_error_answer(503, "UNAVAILABLE"),
    "400-object-not-ascii": _build_error_answer(400, "FAILED_PRECONDITION", "Größe: 3 Lampen, 猫"),
    "429-text": ErrorAnswer(429, "RESOURCE_EXHAUSTED", MESSAGE, MESSAGE.encode(), "text/plain"),
    "500-empty": ErrorAnswer(500, "UNKNOWN", "", b""),
    "502-html": ErrorAnswer(502, "UNIMPLEMENTED", "", b"<html><body>Bad Gateway</body></html>", "text/html"),
    "500-like-an-answer": ErrorAnswer(500, "DATA_LOSS", "", LIKE_AN_ANSWER),
}


# --- truncated answers ------------------------------------------------------------------------------------------------


_HEAD_ENDS: Final = b"\r\n\r\n"


# Each function returns how many bytes of an answer to send.


def cut_before_all(_octets: bytes) -> int:
    """Cut before the first byte."""
    return 0


def cut_in_status_line(_octets: bytes) -> int:
    """Cut inside the status line."""
    return 11


def cut_in_head(octets: bytes) -> int:
    """Cut inside the headers."""
    return octets.index(_HEAD_ENDS) - 8


def cut_in_json(octets: bytes) -> int:
    """Cut inside the JSON."""
    return octets.index(_HEAD_ENDS) + len(_HEAD_ENDS) + 40


def cut_in_last_tensor(octets: bytes) -> int:
    """Return the offset three bytes before the end, inside the last tensor; the answer is cut there."""
    return len(octets) - 3


def cut_before_last_chunk(octets: bytes) -> int:
    """Cut before the terminating chunk."""
    return len(octets) - len(b"0\r\n\r\n")


PLACES: Final[Mapping[str, Callable[[bytes], int]]] = {
    "before-anything": cut_before_all,
    "in-the-status-line": cut_in_status_line,
    "in-the-head": cut_in_head,
    "in-the-json": cut_in_json,
    "in-the-last-tensor": cut_in_last_tensor,
}


def make_truncated_script(cut: Callable[[bytes], int], ending: Ending, delivery: Delivery | None = None) -> HttpScript:
    """Return a script of correct answers that are truncated.

    `cut`: returns how many bytes of an answer to send; one of the functions in `PLACES`.
    `delivery`: the HTTP framing of the answers; None: with Content-Length.
    """
    style = Style(delivery=delivery or Delivery())

    def answer(received: ClientRequest, inference: Inference, tensors: Tensors) -> HttpAnswer:
        whole = style(received, inference, tensors)
        octets = b"".join(whole.pieces)
        end = cut(octets)
        head = octets.index(_HEAD_ENDS) + len(_HEAD_ENDS)
        sent = octets[:end]
        if end < head:
            return HttpAnswer((sent,) if sent else (), ending=ending)
        return replace(whole, pieces=(sent,), body=sent[head:], ending=ending)

    return answer


IN_CHUNKS: Final = Delivery(chunk_bytes=64)
