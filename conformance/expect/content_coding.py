"""Content codings: what a client that asks for compression gets, undone within a limit.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Reply
from conformance.wire import codings

_GZIP = 31  # window bits of zlib: with a gzip header
# What is undone at most: an answer that was to be the same one uncoded needs no more.
MAX_DECODED_BYTES = 16 * 1024 * 1024


def compress_gzip(body: bytes) -> bytes:
    """Return the body in the gzip coding, the same bytes each time."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def compress_zlib(body: bytes) -> bytes:
    """Return the body in the coding that HTTP calls deflate: the zlib format."""
    return zlib.compress(body)


def decode_reply(reply: Reply) -> Reply | None:
    """Return the reply as it was before its Content-Encoding, None where the suite cannot undo that.

    Raises:
        Unmet: the body is not in the codings, whole and nothing behind it, or is beyond the limit.
    """
    coding = reply.header("Content-Encoding")
    found = codings.decode_body(reply.body, coding, is_text=False, limit=MAX_DECODED_BYTES)
    for finding in found.findings:
        raise UnmetError(finding.expected, finding.actual, reply)
    if found.body is not None:
        return Reply(replace(reply.exchange, body=found.body))
    if codings.are_known(coding):
        raise UnmetError("an answer of the size that it has uncoded", f"more than {MAX_DECODED_BYTES} bytes", reply)
    return None


def is_accepted(reply: Reply, coding: str) -> bool:
    """Say whether the reply is in no coding but this one; x-gzip is gzip (RFC 9110, 8.4.1.3)."""
    return {name.removeprefix("x-") for name in codings.parse_codings(reply.header("Content-Encoding"))} <= {coding}
