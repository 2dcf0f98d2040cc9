"""Bodies of refused requests that are left unread on a kept connection, where they become the next request."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from reference_server import models
from reference_server.faults import fault

READ = "http_protocol.OipHttpProtocol.data_received"
NO_BODY = b"Content-Length: 0"


def _leave(original: Any, protocol: Any, data: bytes, is_left: Callable[[bytes], bool], framing: bytes) -> None:
    """Read what came, but give the head of a request whose body is left unread another framing: the rest comes next."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not (end and re.match(rb"[A-Z]+ /", head) and is_left(head)):
        original(protocol, data)
        return
    framed = re.sub(rb"(?i)(transfer-encoding: *chunked|content-length: *[0-9]+)", framing, head, count=1)
    original(protocol, framed + end)
    if rest:
        original(protocol, rest)


@cache
def _names() -> frozenset[bytes]:
    return frozenset(name.encode() for name in models.load())


def _is_for_unknown_model(head: bytes) -> bool:
    found = re.match(rb"POST /v2/models/([^/ ]+)", head)
    return found is not None and found[1] not in _names()


def _is_chunked(head: bytes) -> bool:
    return b"transfer-encoding: chunked" in head.lower()


@fault(READ, breaks="HTTP-UNREAD-BODY")
def chunked_body_for_an_unknown_model_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """Of a chunked request to an unknown model the size of the first chunk is read and no more."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if end and _is_chunked(head) and _is_for_unknown_model(head):
        data = head + end + rest.partition(b"\r\n")[2]
    _leave(original, protocol, data, lambda head: _is_for_unknown_model(head) and _is_chunked(head), NO_BODY)


@fault(READ, breaks="HTTP-UNREAD-BODY")
def body_at_an_unknown_path_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """Where no endpoint takes the path or the method, the body is not read, and the connection is kept."""
    _leave(original, protocol, data, lambda head: not re.match(rb"POST /v2/models/[^ ]+/infer ", head), NO_BODY)


@fault(READ, breaks="HTTP-UNREAD-BODY")
def body_behind_a_wrong_inference_header_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """An inference header that is no number is refused without the body being read, and the connection is kept."""
    _leave(original, protocol, data, lambda head: bool(re.search(rb"(?i)inference-[a-z-]+: *[^ 0-9]", head)), NO_BODY)


@fault(READ, breaks="HTTP-UNREAD-BODY")
def body_behind_an_expectation_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """A request with Expect that is refused at once is taken for one whose body will not come."""
    _leave(
        original,
        protocol,
        data,
        lambda head: b"\r\nexpect: 100" in head.lower() and _is_for_unknown_model(head),
        NO_BODY,
    )


@fault(READ, breaks="HTTP-UNREAD-BODY")
def no_more_than_64_kib_of_a_refused_body_read(original: Any, protocol: Any, data: bytes) -> None:
    """Of the body of a request to an unknown model 64 KiB are read and dropped, and the rest is left."""
    is_long = re.compile(rb"(?i)content-length: *(6[6-9]|[7-9][0-9]|[0-9]{3})[0-9]{3}\r")
    _leave(
        original,
        protocol,
        data,
        lambda head: _is_for_unknown_model(head) and bool(is_long.search(head + b"\r")),
        b"Content-Length: 65536",
    )
