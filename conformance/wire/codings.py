"""Decodes the content codings of bodies within a size limit, and compares them with Content-Encoding. Never raises.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from conformance.wire.finding import Finding, format_value

MAX_DECODED_BYTES: Final = 256 * 1024 * 1024
MAX_GZIP_MEMBERS: Final = 64  # in one gzip body; decoding a member copies the remaining bytes
HEADER: Final = "Content-Encoding"
IDENTITY: Final = "identity"

FAULTS: Final = ("coding-not-applied", "coding-not-announced", "coding-applied-twice", "coding-cut", "coding-bare")

# Window bits of zlib: for gzip, for the zlib format (called deflate in HTTP), for raw deflate.
_GZIP, _ZLIB, _BARE = 31, 15, -15
_WINDOWS: Final[Mapping[str, int]] = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class DecodedBody(NamedTuple):
    """The result of decoding a body.

    Attributes:
        body: the decoded body; None if it cannot be decoded.
        is_announced: whether Content-Encoding names a coding.
    """

    body: bytes | None
    findings: tuple[Finding, ...] = ()
    is_announced: bool = False


class _InflatedBody(NamedTuple):
    body: bytes
    is_whole: bool  # whether the compressed data are complete, without trailing bytes


class _TooLargeError(Exception):
    """The decoded body exceeds the limits, so that the suite cannot judge it; this is not a fault of the peer."""


def parse_codings(announced: str | None) -> list[str]:
    """Return the codings that Content-Encoding lists, in the same order, in lower case, without `identity`."""
    return [name for part in (announced or "").split(",") if (name := part.strip().lower()) not in ("", IDENTITY)]


def is_decodable(announced: str | None) -> bool:
    """Return whether the suite can decode all codings in a value of Content-Encoding."""
    return all(name in _WINDOWS for name in parse_codings(announced))


def decode_body(body: bytes, announced: str | None, *, is_text: bool, limit: int | None = None) -> DecodedBody:
    """Decode a body according to its Content-Encoding, and report faults of the coding.

    If Content-Encoding names a coding other than gzip and deflate, or if the decoded body exceeds the limit, the
    result's body is None, which is not a fault.

    `announced`: the value of Content-Encoding; None if absent.
    `is_text`: whether the decoded body must be JSON; only then can an additional, unannounced coding be detected.
    `limit`: the maximum size of the decoded body in bytes; None: `MAX_DECODED_BYTES`.
    """
    limit = MAX_DECODED_BYTES if limit is None else limit
    names = parse_codings(announced)
    findings: list[Finding] = []
    try:
        for name in reversed(names):
            if name not in _WINDOWS:
                return DecodedBody(None, tuple(findings), is_announced=True)
            decoded, found = _decode_coding(body, name, limit)
            findings += found
            if decoded is None:
                return DecodedBody(None, tuple(findings), is_announced=True)
            body = decoded
        if is_text and (decoded_again := _decode_extra_coding(body, limit)) is not None:
            kind = "coding-applied-twice" if names else "coding-not-announced"
            stated = format_value(", ".join(names) or "none")
            findings += [] if findings else [Finding(kind, HEADER, None, "the coding of the body", stated)]
            body = decoded_again
    except _TooLargeError:
        return DecodedBody(None, tuple(findings), is_announced=bool(names))
    return DecodedBody(body, tuple(findings), is_announced=bool(names))


def _decode_coding(body: bytes, name: str, limit: int) -> tuple[bytes | None, list[Finding]]:
    """Decode one coding of a body, and return the decoded body with the findings.

    The decoded body is None if the data are truncated. It is the unchanged body if the body is not in this coding.
    """
    expected = f"a body in {name}"
    inflated = _inflate(body, _WINDOWS[name], limit)
    if inflated is not None and inflated.is_whole:
        return inflated.body, []
    if inflated is not None:
        return None, [
            Finding("coding-cut", HEADER, None, f"{expected}, complete", "a truncated body, or bytes after its end")
        ]
    if name == "deflate" and (bare := _inflate(body, _BARE, limit)) is not None and bare.is_whole:
        return bare.body, [Finding("coding-bare", HEADER, None, expected, "deflate without the zlib format")]
    return body, [Finding("coding-not-applied", HEADER, None, expected, f"{len(body)} bytes in another format")]


def _decode_extra_coding(body: bytes, limit: int) -> bytes | None:
    """Decode a body that is complete gzip or zlib data; return None for other bodies, such as JSON."""
    for window in (_GZIP, _ZLIB):
        inflated = _inflate(body, window, limit)
        if inflated is not None and inflated.is_whole:
            return inflated.body
    return None


def _inflate(body: bytes, window: int, limit: int) -> _InflatedBody | None:
    """Decompress a body; return None if the body does not begin like compressed data of this format.

    Raises _TooLargeError: the decompressed body exceeds the limits.
    """
    parts: list[bytes] = []
    room, rest = limit, body
    while len(parts) < MAX_GZIP_MEMBERS:
        unpacker = zlib.decompressobj(wbits=window)
        try:
            parts.append(unpacker.decompress(rest, room + 1))
        except zlib.error:
            return _InflatedBody(b"", is_whole=False) if parts else None
        room -= len(parts[-1])
        if room < 0:
            raise _TooLargeError
        rest = unpacker.unused_data
        if window == _GZIP and not rest.strip(b"\0"):
            rest = b""  # zeros after the last member are padding, which readers of gzip ignore
        if not unpacker.eof or not rest or window != _GZIP:
            return _InflatedBody(b"".join(parts), is_whole=unpacker.eof and not rest)
        # RFC 1952, 2.2: a gzip file consists of one or more concatenated members.
    raise _TooLargeError
