"""Reads and decodes request bodies within a limit, and encodes answers in a content coding.

The limit applies to bytes received, which covers chunked bodies without a declared length, and to the decoded bytes.
The protocol documents do not mention content codings, so only HTTP defines them. The inference header gives the length
of the JSON before coding (RFC 9110, 8.4: a coding belongs to the representation).

Sources: RFC 9110, 8.4.1 "Content Codings", 12.5.3 "Accept-Encoding", 15.5.16 "415 Unsupported Media Type".
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from io import BytesIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from reference_server import workers
from reference_server.errors import InferenceError, format_value
from reference_server.limits import Limits
from reference_server.workers import join_parts

LINGER_SECONDS = 2.0


class UnreadBodyError(InferenceError):
    """The request is refused while part of its body is still unread."""


async def read(http: Request, limits: Limits) -> bytes:
    """Return the body; refuse a body beyond the limits as early as possible, and a request with an Upgrade header."""
    limit = limits.body
    headers = http.headers
    if "upgrade" in headers:  # the HTTP parser stops at the head of such a request
        raise UnreadBodyError("the Upgrade header is not supported in an inference request")
    too_large = UnreadBodyError(f"the body is over the limit of {limit} bytes", status=413)
    if int(headers.get("content-length", "0")) > limit:
        raise too_large
    chunks, size = [], 0
    now = asyncio.get_running_loop().time
    began = now()
    try:
        async with asyncio.timeout_at(began + limits.wait_seconds) as deadline:
            async for chunk in http.stream():
                deadline.reschedule(min(now() + limits.wait_seconds, began + limits.body_seconds))
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise too_large
    except TimeoutError:
        raise UnreadBodyError("the body is incomplete after the timeout", status=408) from None
    return await workers.run_in_worker(size, lambda: join_parts(chunks))


class ClosingResponse(JSONResponse):
    """An answer sent before the whole body was read; it announces that the connection will close.

    The rest of the body is read and discarded for LINGER_SECONDS before the connection closes. Closing with unread
    bytes would reset it, and a client that is still sending would never see the answer (RFC 9112, 9.6).
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the answer, then drain the body."""
        self.headers["Connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b""})


# --- content codings -------------------------------------------------------------------------------------------------

# The `wbits` argument of zlib: a gzip container, or for deflate a zlib container.
WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
GZIP_MAGIC = b"\x1f\x8b"  # the first bytes of each member (RFC 1952, 2.3.1)
MAX_MEMBERS = 10_000  # members of a gzip body, which may be empty
PIECE_BYTES = 64 * 1024  # compressed bytes per step
UNPACKED_BYTES = 1024 * 1024  # decompressed bytes per step: they can be 1000 times the input, and are copied
COMPRESSION_LEVEL = 1  # a higher level is seldom worth the time for answers


def find_request_coding(http: Request) -> str | None:
    """Return the coding of a request's body, None for identity; refuse an unknown coding or several codings."""
    name = ", ".join(http.headers.getlist("content-encoding")).strip(" \t").lower()
    if name in ("", "identity"):
        return None
    if name not in WINDOWS:
        raise InferenceError(
            f"Content-Encoding is {format_value(name)}, but only gzip, deflate and identity are supported", status=415
        )
    return name


def decode(body: bytes, coding: str, limit: int) -> bytes:
    """Return a decoded body; refuse a body of more than `limit` decoded bytes without decoding the rest."""
    found = BytesIO()
    members = 0
    left = memoryview(body)
    while not members or (left[:2] == GZIP_MAGIC and WINDOWS[coding] == WINDOWS["gzip"] and found.tell() <= limit):
        left = left[_decompress_member(left, coding, found, limit) :]
        members += 1
        if members > MAX_MEMBERS:
            raise InferenceError(f"the body has more than {MAX_MEMBERS} gzip members", status=413)
    if found.tell() > limit:
        raise InferenceError(f"the decoded body is over the limit of {limit} bytes", status=413)
    if left:
        raise InferenceError(f"the {coding} body has data after its end")
    return found.getvalue()  # without a copy


def _decompress_member(body: memoryview, coding: str, found: BytesIO, limit: int) -> int:
    """Decompress the first member of a gzip body, up to one byte over the limit; return its compressed length.

    A body in another coding is one member. It is read in pieces, since zlib copies all input after the member's end.
    """
    unpacker = zlib.decompressobj(WINDOWS[coding])
    taken = 0
    try:
        while not unpacker.eof and found.tell() <= limit:
            piece = body[taken : taken + PIECE_BYTES]
            part = unpacker.decompress(piece, min(UNPACKED_BYTES, limit + 1 - found.tell()))
            used = len(piece) - len(unpacker.unused_data) - len(unpacker.unconsumed_tail)
            if not part and not used:
                raise InferenceError(f"the {coding} body is truncated")
            found.write(part)
            taken += used
    except zlib.error as error:
        raise InferenceError(f"the body is not valid {coding} data: {error}") from None
    return taken


def choose_coding(http: Request) -> str | None:
    """Return the first supported coding in a request's Accept-Encoding; None if the answer stays uncoded."""
    entries = ",".join(http.headers.getlist("accept-encoding")).split(",")
    return next((name for name in map(_parse_accepted_coding, entries) if name in WINDOWS), None)


def encode(answer: Response, coding: str) -> Response:
    """Return the answer in a coding."""
    packer = zlib.compressobj(COMPRESSION_LEVEL, wbits=WINDOWS[coding])
    answer.body = packer.compress(answer.body) + packer.flush()
    answer.headers.update({"Content-Length": str(len(answer.body)), "Content-Encoding": coding})
    return answer


def _parse_accepted_coding(entry: str) -> str | None:
    """Return the coding of one entry of Accept-Encoding, None if its weight is 0."""
    coding, *parameters = (part.strip(" \t").lower() for part in entry.split(";"))
    weights = [value.removeprefix("q=") for value in parameters if value.startswith("q=")]
    return None if weights and not weights[0].strip("0.") else coding
