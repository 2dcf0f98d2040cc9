"""Decodes content codings of requests and answers within a limit, and checks the announced codings. Never raises.

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
    """A decoded body; None if it cannot be decoded. `is_announced`: whether a coding was announced."""

    body: bytes | None
    findings: tuple[Finding, ...] = ()
    is_announced: bool = False


class _InflatedBody(NamedTuple):
    body: bytes
    is_whole: bool  # whether the compressed data are complete, without trailing bytes


class _TooLargeError(Exception):
    """The body exceeds the limits, so that it cannot be judged; this is not a fault."""


def parse_codings(announced: str | None) -> list[str]:
    """Parse Content-Encoding into lower-case names, in the order in which they were applied."""
    return [name for part in (announced or "").split(",") if (name := part.strip().lower()) not in ("", IDENTITY)]


def are_known(announced: str | None) -> bool:
    """Return whether all codings in a value of Content-Encoding can be decoded."""
    return all(name in _WINDOWS for name in parse_codings(announced))


def decode_body(body: bytes, announced: str | None, *, is_text: bool, limit: int | None = None) -> DecodedBody:
    """Decode a body according to its Content-Encoding, and report faults.

    For a coding other than gzip and deflate, and for a body beyond the limit, the result has neither body nor fault.

    Args:
        body: as received.
        announced: the value of Content-Encoding.
        is_text: whether the decoded body must be JSON; only then can an additional, unannounced coding be detected.
        limit: maximum size in bytes; None: `MAX_DECODED_BYTES`.
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
    """Decode one coding; return None for a truncated body, and the body itself if it is not in this coding."""
    expected = f"a body in {name}"
    inflated = _inflate(body, _WINDOWS[name], limit)
    if inflated is not None and inflated.is_whole:
        return inflated.body, []
    if inflated is not None:
        return None, [Finding("coding-cut", HEADER, None, f"{expected}, whole", "no end, or more behind it")]
    if name == "deflate" and (bare := _inflate(body, _BARE, limit)) is not None and bare.is_whole:
        return bare.body, [Finding("coding-bare", HEADER, None, expected, "deflate without the zlib format")]
    return body, [Finding("coding-not-applied", HEADER, None, expected, f"{len(body)} bytes that are not")]


def _decode_extra_coding(body: bytes, limit: int) -> bytes | None:
    """Decode a body that is itself complete gzip or zlib data; None for any other, such as JSON."""
    for window in (_GZIP, _ZLIB):
        inflated = _inflate(body, window, limit)
        if inflated is not None and inflated.is_whole:
            return inflated.body
    return None


def _inflate(body: bytes, window: int, limit: int) -> _InflatedBody | None:
    """Decompress a body; None if it does not begin in this format.

    Raises:
        _TooLargeError: the result exceeds the limits.
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
