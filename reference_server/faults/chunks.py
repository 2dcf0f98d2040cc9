"""Chunks that are written as clients may write them, and are not read."""

from __future__ import annotations

import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server.faults import fault

READ = "http_protocol.OipHttpProtocol.data_received"


def _refuse(original: Any, protocol: Any, data: bytes, pattern: bytes) -> None:
    """Refuse what came if it is the rest of a chunked request, or a whole one, in which the pattern stands."""
    is_chunked = b"chunked\r\n" in data
    if is_chunked and re.search(pattern, data):
        protocol.send_400_response("chunks that are not understood")
    else:
        original(protocol, data)


@fault(READ, breaks="HTTP-CHUNKED")
def chunk_extensions_refused(original: Any, protocol: Any, data: bytes) -> None:
    """A chunk with an extension behind its size is refused."""
    _refuse(original, protocol, data, rb"\r\n[0-9A-Fa-f]+;")


@fault(READ, breaks="HTTP-CHUNKED-TRAILER")
def trailers_refused(original: Any, protocol: Any, data: bytes) -> None:
    """A field behind the last chunk is refused."""
    _refuse(original, protocol, data, rb"\r\n0\r\n[A-Za-z-]+: ")


@fault(READ, breaks="HTTP-CHUNKED-TRAILER", walks="json")
def connection_is_deaf_behind_a_trailer(original: Any, protocol: Any, data: bytes) -> None:
    """After a request whose chunks end with a trailer nothing is read on its connection any more."""
    if getattr(protocol, "_is_deaf", False):
        protocol._unset_keepalive_if_required()
        return
    protocol._is_deaf = b"chunked\r\n" in data and bool(re.search(rb"\r\n0\r\n[A-Za-z-]+: ", data))
    original(protocol, data)


@fault("http_protocol.OipHttpProtocol.on_header", breaks="ROBUST-TRAILER")
def trailers_merged_into_the_headers(_original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """A field behind the last chunk is taken for a header."""
    HttpToolsProtocol.on_header(protocol, name, value)


# --- chunks and a length ---------------------------------------------------------------------------------------------


def _has_two_lengths(data: bytes) -> bool:
    head = data.partition(b"\r\n\r\n")[0].lower()
    return b"\r\ntransfer-encoding: chunked" in head and b"\r\ncontent-length: " in head


@fault(READ, breaks="ROBUST-FRAMING")
def content_length_counts_beside_chunks(original: Any, protocol: Any, data: bytes) -> None:
    """Of a request with both Transfer-Encoding and Content-Length, the latter counts, and the chunks are the body."""
    if _has_two_lengths(data):
        data = re.sub(rb"(?i)\r\ntransfer-encoding: chunked", b"", data, count=1)
    original(protocol, data)


@fault(READ, breaks="ROBUST-FRAMING-CLOSES")
def connection_kept_after_two_lengths(original: Any, protocol: Any, data: bytes) -> None:
    """A request with both Transfer-Encoding and Content-Length is read by its chunks, and the connection goes on."""
    if _has_two_lengths(data):
        data = re.sub(rb"(?i)\r\ncontent-length: [0-9]+", b"", data, count=1)
    original(protocol, data)
