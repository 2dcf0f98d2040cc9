"""Content codings: what a client that asks for compression gets, undone within a limit.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from conformance.expect.unmet import Unmet
from conformance.transport.exchange import Reply
from conformance.wire import codings

_GZIP = 31  # window bits of zlib: with a gzip header
# What is undone at most: an answer that was to be the same one uncoded needs no more.
LIMIT = 16 * 1024 * 1024


def gzipped(body: bytes) -> bytes:
    """Return the body in the gzip coding, the same bytes each time."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def zlibbed(body: bytes) -> bytes:
    """Return the body in the coding that HTTP calls deflate: the zlib format."""
    return zlib.compress(body)


def uncoded(reply: Reply) -> Reply | None:
    """Return the reply as it was before its Content-Encoding, None where the suite cannot undo that.

    Raises:
        Unmet: the body is not in the codings, whole and nothing behind it, or is beyond the limit.
    """
    coding = reply.header("Content-Encoding")
    found = codings.uncoded(reply.body, coding, is_text=False, limit=LIMIT)
    for finding in found.findings:
        raise Unmet(finding.expected, finding.actual, reply)
    if found.body is not None:
        return Reply(replace(reply.exchange, body=found.body))
    if codings.are_known(coding):
        raise Unmet("an answer of the size that it has uncoded", f"more than {LIMIT} bytes", reply)
    return None


def is_accepted(reply: Reply, coding: str) -> bool:
    """Say whether the reply is in no coding but this one; x-gzip is gzip (RFC 9110, 8.4.1.3)."""
    return {name.removeprefix("x-") for name in codings.codings_of(reply.header("Content-Encoding"))} <= {coding}
