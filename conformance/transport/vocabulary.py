"""The words that any honest answer is made of: what is one of them is no secret, and must not vanish from an answer."""

from __future__ import annotations

from functools import cache

from conformance.terms import data
from conformance.terms.extensions import CHOICES
from conformance.transport.spellings import folded

_SCHEMAS = ("error", "model_metadata", "request", "response", "server_metadata")


@cache
def words() -> bytes:
    """Return all of them, folded: names of roles and tensors, members of JSON, extensions, media types."""
    texts = [(data.PACKAGE / "roles/roles.toml").read_bytes()]
    texts += [(data.folder("schemas") / f"{name}.schema.json").read_bytes() for name in _SCHEMAS]
    texts += [" ".join(CHOICES).encode(), b"application/json application/octet-stream application/grpc"]
    return folded(b"\n".join(texts))


def is_word(text: str) -> bool:
    """Say whether a text is part of these words."""
    return folded(text.encode("utf-8", "replace")) in words()


@cache
def vocabulary(length: int) -> frozenset[bytes]:
    """Return every piece of a length of these words."""
    return frozenset(pieces_of(words(), length))


def pieces_of(text: bytes, length: int) -> list[bytes]:
    """Return every piece of a length."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]
