"""Converts bodies to members of a recording's entries, and back.

A body is stored as text if possible, else as base64. A long body is stored once, with its digest (`_sha256`); if the
same body occurs again, only the digest is stored. A body beyond a limit is stored as length, digest, head and tail
(`_length`, `_sha256`, `_head`, `_tail`). This is enough to compare the body with another, but not to judge it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

KIB: Final = 1024
# The length in bytes from which a body has a digest and is stored once. If a shorter one repeats, compression makes it
# smaller than a digest.
MIN_SHARED_BYTES: Final = 4 * KIB
# Bytes of all bodies of a recording together; a certification of everything needs 160 MB.
MAX_TOTAL_BYTES: Final = 384 * KIB * KIB
# The maximum number of brackets in a body that is written as text: readers count the brackets of a line before parsing.
_MAX_BRACKETS: Final = 100_000
_NO_TEXT: Final = re.compile(rb"[^\t\n\r -~]")


class BodyError(ValueError):
    """A recording lacks a body, or a body does not match its digest; the message is one line."""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How many bytes of a body a recording stores.

    Attributes:
        whole: the length in bytes up to which a body is stored completely.
        head: the number of bytes stored from the beginning of a longer body.
        tail: the number of bytes stored from the end of a longer body.
    """

    whole: int
    head: int
    tail: int


# The longest correct bodies are those of the suite's longest tensors, 5 MiB.
JUDGED_LIMIT: Final = BodyLimit(8 * KIB * KIB, 4 * KIB, KIB)
# Replay sends the same requests again, so that a digest is sufficient for them.
REPEATABLE_LIMIT: Final = BodyLimit(KIB, KIB // 4, 0)


class Excerpt(bytes):
    """The first and the last bytes of a body, in place of the complete body.

    Attributes:
        length: the length of the complete body in bytes.
        digest: the SHA-256 of the complete body, in hexadecimal digits.
        head: how many bytes of the excerpt are from the beginning of the body; the others are from its end.
    """

    length: int
    digest: str
    head: int

    @classmethod
    def from_part(cls, excerpt: bytes, length: int, digest: str, head: int) -> Excerpt:
        """Return an excerpt with the length and digest of the complete body."""
        found = cls(excerpt)
        found.length, found.digest, found.head = length, digest, head
        return found

    def is_excerpt_of(self, body: bytes) -> bool:
        """Return whether length and digest of the complete body are those of `body`."""
        return self.length == len(body) and self.digest == sha256(body).hexdigest()


def shorten(body: bytes, limit: BodyLimit) -> bytes:
    """Return the body unchanged, or an excerpt if the body is longer than `limit.whole`."""
    if isinstance(body, Excerpt) or len(body) <= limit.whole:
        return body
    kept = body[: limit.head] + body[len(body) - limit.tail :]
    return Excerpt.from_part(kept, len(body), compute_digest(body), limit.head)


def compute_digest(body: bytes) -> str:
    """Return the SHA-256 of a body in hexadecimal digits; an `Excerpt` knows the digest of its complete body."""
    return body.digest if isinstance(body, Excerpt) else sha256(body).hexdigest()


@dataclass(slots=True)
class BodyWriter:
    """Converts the bodies of one recording to members of its entries, in the order of the entries."""

    _seen: dict[str, bool] = field(default_factory=dict)  # digest -> whether the body was written whole
    _room: int = MAX_TOTAL_BYTES

    def build_members(self, body: bytes, encoding: str) -> dict[str, Any]:
        """Return the members that represent a body.

        Args:
            body: complete, or an excerpt.
            encoding: the name of the member that is `base64` if the body is stored as base64, and else absent.
        """
        if len(body) < MIN_SHARED_BYTES and not isinstance(body, Excerpt):
            return _encode_body(body, encoding)
        digest = compute_digest(body)
        body = shorten(body, JUDGED_LIMIT if len(body) <= self._room else REPEATABLE_LIMIT)
        is_whole = not isinstance(body, Excerpt)
        if self._seen.get(digest, False) or (digest in self._seen and not is_whole):
            return {"_sha256": digest}
        self._room -= len(body)
        self._seen[digest] = is_whole
        if isinstance(body, Excerpt):
            pieces = {"_head": body[: body.head], "_tail": body[body.head :]}
            coded = {name: b64encode(piece).decode() for name, piece in pieces.items()}
            return {"_sha256": digest, "_length": body.length, **coded}
        return {**_encode_body(body, encoding), "_sha256": digest}


def _encode_body(body: bytes, encoding: str) -> dict[str, str]:
    if _NO_TEXT.search(body) or body.count(b"[") + body.count(b"{") > _MAX_BRACKETS:
        return {"text": b64encode(body).decode(), encoding: "base64"}
    return {"text": body.decode("ascii")}


@dataclass(slots=True)
class BodyReader:
    """Converts members of a recording's entries back to bodies, in the order of the entries."""

    _seen: dict[str, bytes] = field(default_factory=dict)

    def read_body(self, members: Mapping[str, Any], encoding: str) -> bytes:
        """Return a body: complete, or an excerpt.

        Args:
            members: the members that represent the body, written by this or an earlier version of the suite.
            encoding: see `BodyWriter.build_members`.

        Raises:
            BodyError: the body is missing, or does not match its digest.
            LookupError, TypeError, ValueError: the members are malformed.
        """
        digest = members.get("_sha256")
        if "_length" in members:
            found: bytes = _parse_excerpt(members)
        elif "text" in members:
            found = _decode_body(members, encoding)
            if digest is not None and compute_digest(found) != digest:
                raise BodyError("a body does not match its digest")
        elif digest in self._seen:
            return self._seen[str(digest)]
        else:
            raise BodyError("a body is missing")
        if digest is not None:
            self._seen[str(digest)] = found
        return found


def _parse_excerpt(members: Mapping[str, Any]) -> Excerpt:
    head, tail = (b64decode(members[name], validate=True) for name in ("_head", "_tail"))
    return Excerpt.from_part(head + tail, int(members["_length"]), str(members["_sha256"]), len(head))


def _decode_body(members: Mapping[str, Any], encoding: str) -> bytes:
    text = members["text"]
    if members.get(encoding) == "base64":
        return b64decode(text, validate=True)
    return str(text).encode("ascii")
