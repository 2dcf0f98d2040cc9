"""Content codings: what a client that asks for compression gets, undone within a limit.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from conformance.expect.unmet import Unmet
from conformance.terms.text import safe
from conformance.transport.exchange import Reply

# Window bits of zlib: with a gzip header, with either header.
_GZIP, _EITHER = 31, 47
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _EITHER}
# What is undone at most: an answer that was to be the same one uncoded needs no more.
LIMIT = 16 * 1024 * 1024


def gzipped(body: bytes) -> bytes:
    """Return the body in the gzip coding, the same bytes each time."""
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def zlibbed(body: bytes) -> bytes:
    """Return the body in the coding that HTTP calls deflate: the zlib format."""
    return zlib.compress(body)


def uncoded(reply: Reply) -> Reply:
    """Return the reply as it was before its Content-Encoding; itself where it names none.

    Raises:
        Unmet: the coding is not one of gzip and deflate, or the body is not in it, whole and nothing behind it.
    """
    coding = (reply.header("Content-Encoding") or "identity").strip().lower()
    if coding == "identity":
        return reply
    if coding not in _WINDOWS:
        raise Unmet("a coding that was asked for: gzip or deflate", f"Content-Encoding: {safe(coding, 60)}", reply)
    unpacker = zlib.decompressobj(wbits=_WINDOWS[coding])
    try:
        body = unpacker.decompress(reply.body, LIMIT)
    except zlib.error as error:
        raise Unmet(f"a body coded as {coding}", f"{len(reply.body)} bytes that are not ({error})", reply) from error
    if not unpacker.eof or unpacker.unused_data:
        what = f"{len(unpacker.unused_data)} more bytes behind it" if unpacker.eof else "one without its end"
        raise Unmet(f"a body coded as {coding}, whole", what, reply)
    return Reply(replace(reply.exchange, body=body))
