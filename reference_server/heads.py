"""What the head of a request may be: how large, how slow, and how it frames its body.

A head that two readers could take for two things is refused: that is how a request is smuggled past one of them.
Sources: RFC 9112, 2.3 "HTTP Version", 3.2 "Request Target", 6.1 "Transfer-Encoding", 6.3 "Message Body Length", 7.1.1
"Chunk Extensions"; RFC 9110, 7.2 "Host", 10.1.1 "Expect", 15.6.2 "501", 15.6.6 "505"; RFC 6585, 5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple


class HeadRefusal(NamedTuple):
    """Why a head is refused."""

    status: HTTPStatus
    message: str


TOO_LARGE = HeadRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is over the limit of this server")
TOO_SLOW = HeadRefusal(HTTPStatus.REQUEST_TIMEOUT, "the rest of the head does not come")
MALFORMED = HeadRefusal(HTTPStatus.BAD_REQUEST, "not HTTP: Invalid HTTP request received.")
TOO_MUCH_FRAME = HeadRefusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "extensions of chunks or trailers are over the limit of this server"
)
CHUNK_TOO_LARGE = HeadRefusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a chunk is over the limit of this server for bodies"
)
TOO_MANY = HeadRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are open")
OTHER_VERSION = HeadRefusal(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "the versions that are known are HTTP/1.1 and 1.0")
OTHER_METHOD = HeadRefusal(HTTPStatus.NOT_IMPLEMENTED, "the method is not known")
NOT_A_TARGET = HeadRefusal(HTTPStatus.BAD_REQUEST, "the target of the request is none that this method can have")

VERSIONS = ("1.1", "1.0")
REQUEST_LINE = re.compile(rb"(?:\r\n)*[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP/(?P<version>[0-9]\.[0-9])\r\n")
OTHER_PROTOCOLS = (b" RTSP/1.0\r\n", b" ICE/1.0\r\n")
HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")


def find_parse_refusal(data: bytes, has_other_method: bool) -> HeadRefusal:
    """Return why a request is refused that the parser does not take.

    Args:
        data: what it began with.
        has_other_method: the parser does not know the method; to it, all that is not HTTP has such a one.
    """
    line = REQUEST_LINE.match(data)
    if line is None:
        return MALFORMED
    if line["version"].decode() not in VERSIONS:
        return OTHER_VERSION
    return OTHER_METHOD if has_other_method else MALFORMED


def is_other_protocol(data: bytes) -> bool:
    """Say whether a head that the parser took is one of RTSP or ICE, which it takes, too."""
    return any(line in data for line in OTHER_PROTOCOLS)


def refusal(version: str, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> HeadRefusal | None:
    """Return why a head is refused, or None.

    Args:
        version: of HTTP, as `1.1`.
        method: as it stands there.
        target: of the request, as it stands there.
        headers: with their names in lower case.
    """
    if version not in VERSIONS:
        return OTHER_VERSION
    if method == b"CONNECT":
        return OTHER_METHOD
    if b"#" in target or (target == b"*" and method != b"OPTIONS"):
        return NOT_A_TARGET
    hosts = _values(headers, b"host")
    if version == "1.1" and not hosts:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "a request of HTTP/1.1 has a header Host")
    if len(hosts) > 1:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "the header Host is there more than once")
    if hosts and not HOST.fullmatch(hosts[0]):
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "the header Host has no host and port")
    return _of_framing(version, headers)


def _values(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def has_chunks(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Say whether a body comes in chunks, of a head that is not refused."""
    return bool(_values(headers, b"transfer-encoding"))


def _of_framing(version: str, headers: Sequence[tuple[bytes, bytes]]) -> HeadRefusal | None:
    codings = b",".join(_values(headers, b"transfer-encoding")).strip().lower()
    if codings and version != "1.1":
        return HeadRefusal(HTTPStatus.BAD_REQUEST, f"HTTP/{version} has no Transfer-Encoding")
    if codings not in (b"", b"chunked"):
        return HeadRefusal(HTTPStatus.NOT_IMPLEMENTED, "the only transfer coding that is known is chunked")
    expected = _values(headers, b"expect")
    if version == "1.1" and expected and {value.strip().lower() for value in expected} != {b"100-continue"}:
        return HeadRefusal(HTTPStatus.EXPECTATION_FAILED, "the only expectation that is known is 100-continue")
    return None
