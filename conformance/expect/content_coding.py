"""Content codings: compresses requests, and decodes compressed answers within a limit.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Reply
from conformance.wire import codings

_GZIP = 31  # window bits of zlib: with a gzip header
# The maximum decoded size; the answers that are compared with uncompressed ones need no more.
MAX_DECODED_BYTES = 16 * 1024 * 1024


def compress_gzip(body: bytes) -> bytes:
    """Compress the body with gzip, deterministically."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def compress_zlib(body: bytes) -> bytes:
    """Compress the body in the zlib format, which HTTP calls deflate."""
    return zlib.compress(body)


def decode_reply(reply: Reply) -> Reply | None:
    """Return the reply without its Content-Encoding; None if the suite does not support the coding.

    Raises:
        UnmetError: the body is not encoded as Content-Encoding says, is truncated, has trailing bytes, or exceeds the
            limit.
    """
    coding = reply.header("Content-Encoding")
    found = codings.decode_body(reply.body, coding, is_text=False, limit=MAX_DECODED_BYTES)
    for finding in found.findings:
        raise UnmetError(finding.expected, finding.actual, reply)
    if found.body is not None:
        return Reply(replace(reply.exchange, body=found.body))
    if codings.is_decodable(coding):
        raise UnmetError(f"at most {MAX_DECODED_BYTES} bytes after decoding", "a longer body", reply)
    return None


def is_accepted(reply: Reply, coding: str) -> bool:
    """Return whether a reply uses no content coding except `coding`; x-gzip counts as gzip (RFC 9110, 8.4.1.3)."""
    return {name.removeprefix("x-") for name in codings.parse_codings(reply.header("Content-Encoding"))} <= {coding}
