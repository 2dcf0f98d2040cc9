"""Content codings of requests and answers: undone within a limit, and whether they are those announced. Never raises.

Source: RFC 9110, 8.4 "Content-Encoding" and 8.4.1 "Content Codings".
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from conformance.wire.finding import Finding, format_value

MAX_DECODED_BYTES: Final = 256 * 1024 * 1024
MAX_GZIP_MEMBERS: Final = 64  # of one gzip body, at most; each costs a copy of what is left
HEADER: Final = "Content-Encoding"
IDENTITY: Final = "identity"

FAULTS: Final = ("coding-not-applied", "coding-not-announced", "coding-applied-twice", "coding-cut", "coding-bare")

# Window bits of zlib: with a gzip header, with that of zlib (which HTTP calls deflate), with neither.
_GZIP, _ZLIB, _BARE = 31, 15, -15
_WINDOWS: Final[Mapping[str, int]] = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class DecodedBody(NamedTuple):
    """A body before its content codings; None where it cannot be had. Whether any coding was announced."""

    body: bytes | None
    findings: tuple[Finding, ...] = ()
    is_announced: bool = False


class _Inflated(NamedTuple):
    body: bytes
    is_whole: bool  # it has its end, and nothing stands behind it


class _TooLargeError(Exception):
    """There is more than the limits allow: nothing that can be judged, and nothing that is wrong."""


def parse_codings(announced: str | None) -> list[str]:
    """Return the names of the codings in a value of Content-Encoding, in lower case, in the order of applying."""
    return [name for part in (announced or "").split(",") if (name := part.strip().lower()) not in ("", IDENTITY)]


def are_known(announced: str | None) -> bool:
    """Say whether all codings that a value of Content-Encoding lists can be undone."""
    return all(name in _WINDOWS for name in parse_codings(announced))


def decode_body(body: bytes, announced: str | None, *, is_text: bool, limit: int | None = None) -> DecodedBody:
    """Return a body before the codings that Content-Encoding announces, and what is wrong with them.

    What is in none of gzip and deflate, or larger than the limit, cannot be had, which is no fault.

    Args:
        body: as it came.
        announced: the value of Content-Encoding.
        is_text: whether JSON has to come of it; only then can it be told that one coding more is applied.
        limit: bytes that it may have; `MAX_DECODED_BYTES` where none is given.
    """
    limit = MAX_DECODED_BYTES if limit is None else limit
    names = parse_codings(announced)
    findings: list[Finding] = []
    try:
        for name in reversed(names):
            if name not in _WINDOWS:
                return DecodedBody(None, tuple(findings), is_announced=True)
            undone, found = _undone(body, name, limit)
            findings += found
            if undone is None:
                return DecodedBody(None, tuple(findings), is_announced=True)
            body = undone
        if is_text and (more := _coded_once_more(body, limit)) is not None:
            kind = "coding-applied-twice" if names else "coding-not-announced"
            stated = format_value(", ".join(names) or "none")
            findings += [] if findings else [Finding(kind, HEADER, None, "the coding of the body", stated)]
            body = more
    except _TooLargeError:
        return DecodedBody(None, tuple(findings), is_announced=bool(names))
    return DecodedBody(body, tuple(findings), is_announced=bool(names))


def _undone(body: bytes, name: str, limit: int) -> tuple[bytes | None, list[Finding]]:
    """Return a body before one coding, None where not even a part of it is in that coding's form."""
    wanted = f"a body in {name}"
    inflated = _inflate(body, _WINDOWS[name], limit)
    if inflated is not None and inflated.is_whole:
        return inflated.body, []
    if inflated is not None:
        return None, [Finding("coding-cut", HEADER, None, f"{wanted}, whole", "no end, or more behind it")]
    if name == "deflate" and (bare := _inflate(body, _BARE, limit)) is not None and bare.is_whole:
        return bare.body, [Finding("coding-bare", HEADER, None, wanted, "deflate without the zlib format")]
    return body, [Finding("coding-not-applied", HEADER, None, wanted, f"{len(body)} bytes that are not")]


def _coded_once_more(body: bytes, limit: int) -> bytes | None:
    """Return what a body holds that is itself gzip or zlib, whole; None for any other, such as JSON."""
    for window in (_GZIP, _ZLIB):
        inflated = _inflate(body, window, limit)
        if inflated is not None and inflated.is_whole:
            return inflated.body
    return None


def _inflate(body: bytes, window: int, limit: int) -> _Inflated | None:
    """Return what a coded body holds; None where it does not begin as one.

    Raises:
        _TooLargeError: it holds more than the limits.
    """
    parts: list[bytes] = []
    left, rest = limit, body
    while len(parts) < MAX_GZIP_MEMBERS:
        unpacker = zlib.decompressobj(wbits=window)
        try:
            parts.append(unpacker.decompress(rest, left + 1))
        except zlib.error:
            return _Inflated(b"", is_whole=False) if parts else None
        left -= len(parts[-1])
        if left < 0:
            raise _TooLargeError
        rest = unpacker.unused_data
        if window == _GZIP and not rest.strip(b"\0"):
            rest = b""  # zeros behind the last member hold nothing, and readers of gzip pass over them
        if not unpacker.eof or not rest or window != _GZIP:
            return _Inflated(b"".join(parts), is_whole=unpacker.eof and not rest)
        # RFC 1952, 2.2: a gzip file is one member or several behind each other.
    raise _TooLargeError
