"""Content codings: compressed requests are undone within the limit for bodies, answers compressed for who asks for it.

The documents of the protocol do not speak of them, so HTTP alone decides. The inference header counts the JSON as it is
before coding (RFC 9110, 8.4: a coding belongs to the representation, as a property of the whole body).
Sources: RFC 9110, 8.4.1 "Content Codings", 12.5.3 "Accept-Encoding", 15.5.16 "415 Unsupported Media Type".
"""

from __future__ import annotations

import zlib
from io import BytesIO

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError, format_value

# The container, in zlib's terms: gzip's own, or for deflate that of zlib.
WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
GZIP_MAGIC = b"\x1f\x8b"  # the first bytes of each member (RFC 1952, 2.3.1)
MAX_MEMBERS = 10_000  # of a gzip body, each of which may hold nothing
PIECE = 64 * 1024  # bytes that are unpacked at once
SLICE = 1024 * 1024  # bytes that they become at once: they can be a thousand times as many, and are copied
COMPRESSION_LEVEL = 1  # answers are seldom worth more


def of_request(http: Request) -> str | None:
    """Return the coding of a request's body, None for identity; refuse what is not known, several codings among it."""
    name = ", ".join(http.headers.getlist("content-encoding")).strip(" \t").lower()
    if name in ("", "identity"):
        return None
    if name not in WINDOWS:
        raise InferenceError(
            f"Content-Encoding is {format_value(name)}, known are gzip, deflate and identity", status=415
        )
    return name


def decoded(body: bytes, coding: str, limit: int) -> bytes:
    """Return a coded body as it was; refuse one over `limit` bytes before it takes more memory than that."""
    found = BytesIO()
    members = 0
    left = memoryview(body)
    while not members or (left[:2] == GZIP_MAGIC and WINDOWS[coding] == WINDOWS["gzip"] and found.tell() <= limit):
        left = left[_member(left, coding, found, limit) :]
        members += 1
        if members > MAX_MEMBERS:
            raise InferenceError(f"the body has more than {MAX_MEMBERS} gzip members", status=413)
    if found.tell() > limit:
        raise InferenceError(f"the body is over the limit of {limit} bytes without its coding", status=413)
    if left:
        raise InferenceError(f"the body in the coding {coding} goes on behind its end")
    return found.getvalue()  # without a copy


def _member(body: memoryview, coding: str, found: BytesIO, limit: int) -> int:
    """Add what the first member of a gzip body holds, up to one byte over the limit; return how long the member is.

    A body in another coding is one member. It is unpacked in pieces, since all that follows an end is copied.
    """
    unpacker = zlib.decompressobj(WINDOWS[coding])
    taken = 0
    try:
        while not unpacker.eof and found.tell() <= limit:
            piece = body[taken : taken + PIECE]
            part = unpacker.decompress(piece, min(SLICE, limit + 1 - found.tell()))
            used = len(piece) - len(unpacker.unused_data) - len(unpacker.unconsumed_tail)
            if not part and not used:
                raise InferenceError(f"the body in the coding {coding} is cut short")
            found.write(part)
            taken += used
    except zlib.error as error:
        raise InferenceError(f"the body is not in the coding {coding}: {error}") from None
    return taken


def chosen(http: Request) -> str | None:
    """Return the first coding of a request's Accept-Encoding that we know; None when the answer is to stay as it is."""
    entries = ",".join(http.headers.getlist("accept-encoding")).split(",")
    return next((name for name in map(_accepted, entries) if name in WINDOWS), None)


def encoded(answer: Response, coding: str) -> Response:
    """Return the answer in a coding."""
    packer = zlib.compressobj(COMPRESSION_LEVEL, wbits=WINDOWS[coding])
    answer.body = packer.compress(answer.body) + packer.flush()
    answer.headers.update({"Content-Length": str(len(answer.body)), "Content-Encoding": coding})
    return answer


def _accepted(entry: str) -> str | None:
    """Return the coding of one entry of Accept-Encoding, None for one of no weight."""
    coding, *parameters = (part.strip(" \t").lower() for part in entry.split(";"))
    weights = [value.removeprefix("q=") for value in parameters if value.startswith("q=")]
    return None if weights and not weights[0].strip("0.") else coding
