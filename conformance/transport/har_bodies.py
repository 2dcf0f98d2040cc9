"""Bodies in a recording: text where they are text, else base64; a longer one stands there once, and has its digest.

What repeats an earlier body has its digest alone (`_sha256`). Of a body beyond a limit a recording has length, digest,
head and tail (`_length`, `_sha256`, `_head`, `_tail`): enough to compare it with another, not to judge it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

KIB: Final = 1024
# From this length on, in bytes, a body has its digest, and stands in a recording only once. What is shorter is packed
# into less than a digest where it repeats.
MIN_SHARED_BYTES: Final = 4 * KIB
# Bytes of all bodies of a recording together; a certification of everything has 90 MB of them.
MAX_TOTAL_BYTES: Final = 384 * KIB * KIB
# Brackets of a body that is written as text: who reads a line counts them before it trusts a parser with it.
_MAX_BRACKETS: Final = 100_000
_NO_TEXT: Final = re.compile(rb"[^\t\n\r -~]")


class BodyError(ValueError):
    """A recording has no such body, or another than it says; the message is one line."""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How much is kept of a body, in bytes.

    Attributes:
        whole: the longest that is kept whole.
        head: from the beginning of a longer one; `tail`: from its end.
    """

    whole: int
    head: int
    tail: int


# The longest honest bodies are those of the suite's longest tensors, 5 MiB.
JUDGED_LIMIT: Final = BodyLimit(8 * KIB * KIB, 4 * KIB, KIB)
# The suite sends the same again when a recording is judged, so that a digest is as good as the body.
REPEATABLE_LIMIT: Final = BodyLimit(KIB, KIB // 4, 0)


class Excerpt(bytes):
    """Head and tail of a body, in its place.

    Attributes:
        length: of the whole body in bytes; `digest`: its SHA-256, in hexadecimal digits.
        head: bytes of the excerpt that are its beginning; the rest is its end.
    """

    length: int
    digest: str
    head: int

    @classmethod
    def of(cls, kept: bytes, length: int, digest: str, head: int) -> Excerpt:
        """Return an excerpt with what is known of the whole."""
        found = cls(kept)
        found.length, found.digest, found.head = length, digest, head
        return found

    def is_of(self, body: bytes) -> bool:
        """Say whether it was taken from this body."""
        return self.length == len(body) and self.digest == sha256(body).hexdigest()


def shorten(body: bytes, limit: BodyLimit) -> bytes:
    """Return a body, or its excerpt where it is longer than the limit."""
    if isinstance(body, Excerpt) or len(body) <= limit.whole:
        return body
    kept = body[: limit.head] + body[len(body) - limit.tail :]
    return Excerpt.of(kept, len(body), compute_digest(body), limit.head)


def compute_digest(body: bytes) -> str:
    """Return the SHA-256 of a whole body, in hexadecimal digits."""
    return body.digest if isinstance(body, Excerpt) else sha256(body).hexdigest()


@dataclass(slots=True)
class BodyWriter:
    """Turns the bodies of one recording into members of its entries, in the order in which they stand there."""

    _seen: dict[str, bool] = field(default_factory=dict)  # digest -> whether it stands there whole
    _room: int = MAX_TOTAL_BYTES

    def members(self, body: bytes, encoding: str) -> dict[str, Any]:
        """Return the members that a body is.

        Args:
            body: whole, or an excerpt.
            encoding: the name of the member that says `base64`.
        """
        if len(body) < MIN_SHARED_BYTES and not isinstance(body, Excerpt):
            return _written(body, encoding)
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
        return {**_written(body, encoding), "_sha256": digest}


def _written(body: bytes, encoding: str) -> dict[str, str]:
    if _NO_TEXT.search(body) or body.count(b"[") + body.count(b"{") > _MAX_BRACKETS:
        return {"text": b64encode(body).decode(), encoding: "base64"}
    return {"text": body.decode("ascii")}


@dataclass(slots=True)
class BodyReader:
    """Turns members of entries into bodies again, in the order in which they stand in a recording."""

    _seen: dict[str, bytes] = field(default_factory=dict)

    def body(self, members: Mapping[str, Any], encoding: str) -> bytes:
        """Return a body: whole, or an excerpt.

        Args:
            members: of an entry, that a `BodyWriter` made, or an earlier suite.
            encoding: see `BodyWriter.members`.

        Raises:
            BodyError: there is none, or it is not the one that its digest says.
            LookupError, TypeError, ValueError: the members are no such thing.
        """
        digest = members.get("_sha256")
        if "_length" in members:
            found: bytes = _excerpt(members)
        elif "text" in members:
            found = _read(members, encoding)
            if digest is not None and compute_digest(found) != digest:
                raise BodyError("a body is not the one that its digest says")
        elif digest in self._seen:
            return self._seen[str(digest)]
        else:
            raise BodyError("a body is missing")
        if digest is not None:
            self._seen[str(digest)] = found
        return found


def _excerpt(members: Mapping[str, Any]) -> Excerpt:
    head, tail = (b64decode(members[name], validate=True) for name in ("_head", "_tail"))
    return Excerpt.of(head + tail, int(members["_length"]), str(members["_sha256"]), len(head))


def _read(members: Mapping[str, Any], encoding: str) -> bytes:
    text = members["text"]
    if members.get(encoding) == "base64":
        return b64decode(text, validate=True)
    return str(text).encode("ascii")
