"""What the head of a request may be: how large, how slow, and how it frames its body.

A head that two readers could take for two things is refused: that is how a request is smuggled past one of them.
Sources: RFC 9112, 3.2 "Request Target", 6.1 "Transfer-Encoding", 6.3 "Message Body Length"; RFC 6585, 5.
"""

from __future__ import annotations

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


def refusal(version: str, headers: Sequence[tuple[bytes, bytes]]) -> HeadRefusal | None:
    """Return why a head is refused, or None.

    Args:
        version: of HTTP, as `1.1`.
        headers: with their names in lower case.
    """
    hosts = [value for name, value in headers if name == b"host"]
    if version == "1.1" and not hosts:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "a request of HTTP/1.1 has a header Host")
    if len(hosts) > 1:
        return HeadRefusal(HTTPStatus.BAD_REQUEST, "the header Host is there more than once")
    codings = b",".join(value for name, value in headers if name == b"transfer-encoding").strip().lower()
    if codings and version != "1.1":
        return HeadRefusal(HTTPStatus.BAD_REQUEST, f"HTTP/{version} has no Transfer-Encoding")
    if codings not in (b"", b"chunked"):
        return HeadRefusal(HTTPStatus.NOT_IMPLEMENTED, "the only transfer coding that is known is chunked")
    return None
