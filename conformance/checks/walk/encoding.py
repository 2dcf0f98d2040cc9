"""Encode the message of a step: apply its content coding, media type, usual headers and HTTP framing."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from conformance.checks.support.covering import Step
from conformance.checks.support.usual_headers import USUAL_HEADERS
from conformance.expect.content_coding import compress_gzip
from conformance.transport.send_options import PLAIN_CHUNKS, ChunkFormat, SendOptions
from conformance.transport.settings import Settings
from conformance.wire.request import JSON, OCTET_STREAM, Message

_SEGMENTS = 2
# framing -> the number of chunks of a body, and their format
_CHUNKED: Mapping[str, tuple[int, ChunkFormat]] = {
    "one-chunk": (1, PLAIN_CHUNKS),
    "many-chunks": (12, PLAIN_CHUNKS),
    "upper-hex": (2, ChunkFormat(capitals=True, zeros=3)),
    "extensions": (3, ChunkFormat(extension=";walk=1")),
    "trailers": (2, ChunkFormat(trailers=(("X-Walk", "1"),))),
}


# media -> the Content-Type of a request; None for no such header
_MEDIA_TYPES: Mapping[str, str | None] = {
    "json": JSON,
    "json-charset": "Application/JSON; charset=utf-8",
    "octets": OCTET_STREAM,
    "text": "text/plain; charset=utf-8",
    "none": None,
}


def encode_message(message: Message, step: Step, settings: Settings) -> Message:
    """Return the message with the content coding, media type and further headers of the step."""
    coding, body = step["coding"], message.body
    if step["media"] != "own":
        message = message.with_header("Content-Type", _MEDIA_TYPES[step["media"]])
    if step["sender"] != "plain":
        message = USUAL_HEADERS[step["sender"]].add_to(message, settings)
    if step["answer_coding"] != "identity":
        message = message.with_header("Accept-Encoding", step["answer_coding"])
    if coding == "none":
        return message
    half = len(body) // 2
    encoded = {
        "gzip": lambda: compress_gzip(body),
        "gzip-members": lambda: compress_gzip(body[:half]) + compress_gzip(body[half:]),
        "deflate": lambda: zlib.compress(body),
    }[coding]()
    return message.with_body(encoded).with_header("Content-Encoding", coding.partition("-")[0])


def choose_send_options(message: Message, step: Step) -> SendOptions:
    """Return how to send an encoded message: HTTP version, chunks, segments, and whether to close the connection."""
    size, framing = len(message.body), step["framing"]
    parts, chunk_format = _CHUNKED.get(framing, (0, PLAIN_CHUNKS))
    return SendOptions(
        version=step["http"],
        chunked=tuple(_find_split_offsets(size, parts)) if parts else None,
        chunk_format=chunk_format,
        segments=tuple(_find_split_offsets(size, _SEGMENTS)) if framing == "segments" else (),
        closing=step["connection"] == "closing",
    )


def _find_split_offsets(size: int, parts: int) -> list[int]:
    """Return the offsets that split a body into parts of increasing length."""
    weight = parts * (parts + 1) // 2
    return sorted({max(1, size * k * (k + 1) // 2 // weight) for k in range(1, parts)})
