"""Validation of request heads, and of the framing of chunked bodies.

A head that two parsers could read differently is refused: such heads enable request smuggling.
The parser limits neither sizes nor extensions nor trailers of chunks; it only reports that a chunk begins, continues
and ends. While a chunk is incomplete, its bytes are the last of the parser's input, directly after the line with the
size.

Sources: RFC 9112, 2.3 "HTTP Version", 3.2 "Request Target", 6.1 "Transfer-Encoding", 6.3 "Message Body Length", 7.1
"Chunked Transfer Coding"; RFC 9110, 7.2 "Host", 10.1.1 "Expect", 15.6.2 "501", 15.6.6 "505"; RFC 6585, 5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

from reference_server.limits import Limits


class HeadRefusal(NamedTuple):
    """The status and message that refuse a request because of its head or chunk framing."""

    status: HTTPStatus
    message: str


HEAD_TOO_LARGE = HeadRefusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request head is over the limit of this server"
)
HEAD_TIMEOUT = HeadRefusal(HTTPStatus.REQUEST_TIMEOUT, "the head is incomplete after the timeout")
MALFORMED = HeadRefusal(HTTPStatus.BAD_REQUEST, "not HTTP: Invalid HTTP request received.")
CHUNK_FRAMING_TOO_LARGE = HeadRefusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "chunk extensions or trailers are over the limit of this server"
)
CHUNK_TOO_LARGE = HeadRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a chunk is over the body limit of this server")
TOO_MANY_CONNECTIONS = HeadRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are open")
UNSUPPORTED_VERSION = HeadRefusal(
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "the supported versions are HTTP/1.1 and HTTP/1.0"
)
UNSUPPORTED_METHOD = HeadRefusal(HTTPStatus.NOT_IMPLEMENTED, "the method is not supported")
INVALID_TARGET = HeadRefusal(HTTPStatus.BAD_REQUEST, "the request target is not valid for this method")

VERSIONS = ("1.1", "1.0")
REQUEST_LINE = re.compile(rb"(?:\r\n)*[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP/(?P<version>[0-9]\.[0-9])\r\n")
OTHER_PROTOCOLS = (b" RTSP/1.0\r\n", b" ICE/1.0\r\n")
HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")


def find_parse_refusal(data: bytes, has_other_method: bool) -> HeadRefusal:
    """Return the refusal for a request that the parser rejects.

    Args:
        data: the first bytes of the request.
        has_other_method: whether the parser reports an unknown method, as it does for anything that is not HTTP.
    """
    line = REQUEST_LINE.match(data)
    if line is None:
        return MALFORMED
    if line["version"].decode() not in VERSIONS:
        return UNSUPPORTED_VERSION
    return UNSUPPORTED_METHOD if has_other_method else MALFORMED


def is_other_protocol(data: bytes) -> bool:
    """Say whether a head is RTSP or ICE, which the parser also accepts."""
    return any(line in data for line in OTHER_PROTOCOLS)


def find_refusal(
    version: str, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> HeadRefusal | None:
    """Return the reason to refuse a head, or None.

    Args:
        version: HTTP version, such as `1.1`.
        method: unchanged from the request line.
        target: request target, unchanged from the request line.
        headers: with names in lower case.
    """
    if version not in VERSIONS:
        return UNSUPPORTED_VERSION
    if method == b"CONNECT":
        return UNSUPPORTED_METHOD
    if b"#" in target or (target == b"*" and method != b"OPTIONS"):
        return INVALID_TARGET
    hosts = _find_values(headers, b"host")
    if version == "1.1" and not hosts:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "an HTTP/1.1 request needs a Host header")
    if len(hosts) > 1:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "the request has more than one Host header")
    if hosts and not HOST.fullmatch(hosts[0]):
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "the Host header is not a host with an optional port")
    return _refuse_framing(version, headers)


def _find_values(headers: Sequence[tuple[bytes, bytes]], field: bytes) -> list[bytes]:
    return [value for name, value in headers if name == field]


def is_chunked(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Say whether the body is chunked, given an accepted head."""
    return bool(_find_values(headers, b"transfer-encoding"))


def _refuse_framing(version: str, headers: Sequence[tuple[bytes, bytes]]) -> HeadRefusal | None:
    codings = b",".join(_find_values(headers, b"transfer-encoding")).strip().lower()
    if codings and version != "1.1":
        return HeadRefusal(HTTPStatus.BAD_REQUEST, f"HTTP/{version} does not allow Transfer-Encoding")
    if codings not in (b"", b"chunked"):
        return HeadRefusal(HTTPStatus.NOT_IMPLEMENTED, "the only supported transfer coding is chunked")
    expected = _find_values(headers, b"expect")
    if version == "1.1" and expected and {value.strip().lower() for value in expected} != {b"100-continue"}:
        return HeadRefusal(HTTPStatus.EXPECTATION_FAILED, "the only supported expectation is 100-continue")
    return None


class ChunkFrames:
    """Tracks the chunk framing of one body."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._is_in_chunk = False
        self._has_new_line = False  # the size of this chunk is not known yet
        self._has_moved = True  # a chunk began, continued or ended in these bytes
        self._taken = 0  # bytes received of the chunk
        self._line = b""  # the last bytes received of an incomplete line
        self._outside = 0  # bytes since the last progress of a chunk

    def begin_chunk(self) -> None:
        """Record that the size line of a chunk has ended; the last chunk, which is empty, also has one."""
        self._is_in_chunk = self._has_new_line = self._has_moved = True
        self._taken = 0

    def take(self, size: int) -> None:
        """Record bytes of a chunk."""
        self._has_moved = True
        self._taken += size

    def end_chunk(self) -> None:
        """Record the end of a chunk."""
        self._is_in_chunk, self._has_moved = False, True

    def find_refusal(self, data: bytes) -> HeadRefusal | None:
        """Return the reason to refuse the bytes that were just parsed, or None."""
        self._outside = 0 if self._has_moved else self._outside + len(data)
        self._has_moved = False
        if self._is_in_chunk and self._has_new_line:
            self._has_new_line = False
            if self._parse_chunk_size(self._line + data[: len(data) - self._taken]) > self._limits.body:
                return CHUNK_TOO_LARGE
        self._line = b"" if self._is_in_chunk else (self._line + data)[-64:]
        return CHUNK_FRAMING_TOO_LARGE if self._outside > self._limits.head else None

    @staticmethod
    def _parse_chunk_size(received: bytes) -> int:
        """Return the chunk size that the last line of `received` gives; 0 if the line has no digits."""
        line = received.removesuffix(b"\r\n").rpartition(b"\n")[2]
        with suppress(ValueError):
            return int(line.partition(b";")[0], 16)
        return 0
