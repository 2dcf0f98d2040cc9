"""Requests as octets, to be made wrong: a head with other headers, a body in chunks of other sizes."""

from __future__ import annotations

from conformance.roles.model import Model
from conformance.transport.target import Target
from conformance.wire.request import Message

CRLF = b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked"


def make_plain_request(model: Model) -> Message:
    """Return a plain request, as JSON."""
    return model.request(send="json").message()


def make_head(target: Target, message: Message, *lines: bytes, version: bytes = b"1.1") -> bytes:
    """Return the head of a request with these headers instead of its Content-Length, and the empty line."""
    first, *headers = target.render_octets(message).partition(CRLF * 2)[0].split(CRLF)
    kept = [line for line in headers if not line.lower().startswith(b"content-length:")]
    return CRLF.join([first.replace(b"HTTP/1.1", b"HTTP/" + version), *kept, *lines, b"", b""])


def wrap_in_chunk(body: bytes, size: bytes | None = None) -> bytes:
    """Return a body as one chunk and the last chunk; `size` stands in place of the right one."""
    return (size or b"%X" % len(body)) + CRLF + body + CRLF + LAST_CHUNK


LAST_CHUNK = b"0\r\n\r\n"
