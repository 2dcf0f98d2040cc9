"""The way of a step's message to the server: its content coding, and how its bytes go out."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from conformance.checks.walk.covering import Step
from conformance.expect.content_coding import compress_gzip
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat, SendOptions
from conformance.wire.request import Message

_SEGMENTS = 2
# Into how many chunks a body is cut, and how they are written.
_CHUNKED: Mapping[str, tuple[int, ChunkFormat]] = {
    "one-chunk": (1, PLAIN_CHUNKS),
    "many-chunks": (12, PLAIN_CHUNKS),
    "upper-hex": (2, ChunkFormat(capitals=True, zeros=3)),
    "extensions": (3, ChunkFormat(extension=";walk=1")),
    "trailers": (2, ChunkFormat(trailers=(("X-Walk", "1"),))),
}


def encode_message(message: Message, step: Step) -> Message:
    """Return the message with its body in the step's content coding, and what it says of codings."""
    coding, body = step["coding"], message.body
    if step["answer_coding"] != "identity":
        message = message.with_header("Accept-Encoding", step["answer_coding"])
    if coding == "none":
        return message
    half = len(body) // 2
    packed = {
        "gzip": lambda: compress_gzip(body),
        "gzip-members": lambda: compress_gzip(body[:half]) + compress_gzip(body[half:]),
        "deflate": lambda: zlib.compress(body),
    }[coding]()
    return message.with_body(packed).with_header("Content-Encoding", coding.partition("-")[0])


def choose_send_options(message: Message, step: Step) -> SendOptions:
    """Return how the bytes of a coded message go out."""
    size, framing = len(message.body), step["framing"]
    parts, written = _CHUNKED.get(framing, (0, PLAIN_CHUNKS))
    return SendOptions(
        version=step["http"],
        chunked=tuple(_places(size, parts)) if parts else None,
        written=written,
        segments=tuple(_places(size, _SEGMENTS)) if framing == "segments" else (),
        closing=step["connection"] == "closing",
    )


def _places(size: int, parts: int) -> list[int]:
    """Return where a body is cut into parts that grow: the first ones are short, and no two of one length."""
    weight = parts * (parts + 1) // 2
    return sorted({max(1, size * k * (k + 1) // 2 // weight) for k in range(1, parts)})
