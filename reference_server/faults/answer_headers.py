"""The inference header, Content-Length and Content-Type of answers, written wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import Response

from reference_server.faults import fault
from reference_server.faults.headers import find_json_end
from reference_server.framing import HEADER
from reference_server.response import Octets

Binary = Sequence[Octets]

# --- the inference header of an answer -----------------------------------------------------------------------------


def set_header(response: Response, name: str, value: object | None) -> Response:
    """Set a header of an answer; None takes it away."""
    if value is None:
        del response.headers[name]
    else:
        response.headers[name] = str(value)
    return response


@fault("response.frame", breaks="BIN-HEADER-O")
def header_under_another_name(original: Any, head: bytes, binary: Binary) -> Response:
    """The inference header of an answer is called X-Inference-Header-Content-Length."""
    response: Response = original(head, binary)
    return set_header(set_header(response, HEADER, None), f"X-{HEADER}", len(head)) if binary else response


def rewrite_inference_header(original: Any, head: bytes, binary: Binary, value: object) -> Response:
    """Return the answer with another value in its inference header, if it has one."""
    response: Response = original(head, binary)
    return set_header(response, HEADER, value) if binary else response


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_characters(original: Any, head: bytes, binary: Binary) -> Response:
    """The inference header of an answer counts the characters of the JSON."""
    return rewrite_inference_header(original, head, binary, len(head.decode()))


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_the_body(original: Any, head: bytes, binary: Binary) -> Response:
    """The inference header of an answer is the length of the whole body."""
    return rewrite_inference_header(original, head, binary, len(head) + sum(map(len, binary)))


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES")
def answer_header_counts_a_nul(original: Any, head: bytes, binary: Binary) -> Response:
    """The inference header of an answer counts the NUL with which the JSON ends in memory."""
    return rewrite_inference_header(original, head, binary, len(head) + 1)


@fault("response.frame", breaks="BIN-HEADER-IN-BYTES", large=True)
def answer_header_of_sixteen_bits(original: Any, head: bytes, binary: Binary) -> Response:
    """The inference header of an answer is kept in 16 bits."""
    return rewrite_inference_header(original, head, binary, len(head) % 2**16)


@fault("response.frame", breaks="BIN-HEADER-ON-JSON-O")
def header_of_zero_without_binary_data(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer without binary data has an inference header of 0."""
    response: Response = original(head, binary)
    return response if binary else set_header(response, HEADER, 0)


# --- Content-Length ------------------------------------------------------------------------------------------------


class AnswerRewriter:
    """A connection on which head and body of answers with an inference header are changed, and that then closes."""

    def __init__(self, transport: Any, change: Callable[[bytes, bytes], bytes | None]) -> None:
        self._transport = transport
        self._change = change
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, octets: bytes | memoryview) -> None:
        """Write what the server writes; a head waits for its body, and `change` may give another for both."""
        data = bytes(octets)
        if f"\r\n{HEADER.lower()}: ".encode() in data:
            self._head = data
            return
        head, self._head = self._head, b""
        changed = self._change(head, data) if head else None
        self._transport.write(changed or head + data)
        if changed:
            self._transport.close()


def set_length(head: bytes, length: int) -> bytes:
    """Return a head with another Content-Length, and the announcement that the connection closes."""
    return re.sub(rb"(?<=\ncontent-length: )[0-9]+", str(length).encode() + b"\r\nconnection: close", head)


@fault("http_protocol.OipHttpProtocol.connection_made", breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_in_letters_of_the_text(original: Any, protocol: Any, transport: Any) -> None:
    """Content-Length counts the characters of the JSON instead of its bytes."""

    def change(head: bytes, body: bytes) -> bytes | None:
        text = body[: find_json_end(body)]
        few = len(body) - len(text) + len(text.decode())
        return None if few == len(body) else set_length(head, few) + body

    original(protocol, AnswerRewriter(transport, change))


@fault("http_protocol.OipHttpProtocol.connection_made", breaks=("BIN-CONTENT-LENGTH", "OIP-ANSWER"))
def content_length_counts_an_end_of_line(original: Any, protocol: Any, transport: Any) -> None:
    """Content-Length counts two bytes that are never sent, when the answer has an id."""

    def change(head: bytes, body: bytes) -> bytes | None:
        return set_length(head, len(body) + 2) + body if b'"id":' in body else None

    original(protocol, AnswerRewriter(transport, change))


@fault("http_protocol.OipHttpProtocol.connection_made", breaks="BIN-NOT-CHUNKED")
def binary_answer_ends_with_the_connection(original: Any, protocol: Any, transport: Any) -> None:
    """An answer with binary data has no Content-Length and ends where the connection does."""

    def change(head: bytes, body: bytes) -> bytes | None:
        return re.sub(rb"\ncontent-length: [0-9]+\r", b"\nconnection: close\r", head) + body

    original(protocol, AnswerRewriter(transport, change))


@fault("response.frame", breaks="BIN-NOT-CHUNKED")
def binary_answer_chunked(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with binary data is chunked."""
    response: Response = original(head, binary)
    return set_header(response, "Content-Length", None) if binary else response


@fault("response.frame", breaks="BIN-NOT-CHUNKED")
def binary_answer_over_two_kib_chunked(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with binary data is chunked when it does not fit a write buffer of 2048 bytes."""
    response: Response = original(head, binary)
    fits = len(head) + sum(map(len, binary)) <= 2048
    return response if fits or not binary else set_header(response, "Content-Length", None)


# --- the content type of an answer ---------------------------------------------------------------------------------


def set_content_type(original: Any, head: bytes, binary: Binary, content_type: str | None, *, when: bool) -> Response:
    """Return the answer, with another content type when a condition holds."""
    response: Response = original(head, binary)
    return set_header(response, "Content-Type", content_type) if when else response


@fault("response.frame", breaks="BIN-CONTENT-TYPE-O")
def binary_answer_called_json(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with binary data has Content-Type application/json."""
    return set_content_type(original, head, binary, "application/json", when=bool(binary))


@fault("response.frame", breaks="BIN-CONTENT-TYPE-O")
def mixed_answer_called_json(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer with JSON and binary outputs has Content-Type application/json."""
    return set_content_type(original, head, binary, "application/json", when=bool(binary) and b'"data":' in head)


@fault("response.frame", breaks="BIN-CONTENT-TYPE-OF-JSON")
def json_answer_without_content_type(original: Any, head: bytes, binary: Binary) -> Response:
    """An answer without binary data has no Content-Type."""
    return set_content_type(original, head, binary, None, when=not binary)
