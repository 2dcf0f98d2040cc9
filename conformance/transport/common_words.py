"""The words that any honest answer is made of: what is one of them is no secret, and must not vanish from an answer."""

from __future__ import annotations

from functools import cache

from conformance.spec import data_files
from conformance.spec.extensions import CHOICES
from conformance.transport.secret_encodings import fold

_SCHEMAS = ("error", "model_metadata", "request", "response", "server_metadata")


@cache
def load_words() -> bytes:
    """Return all of them, folded: names of roles and tensors, members of JSON, extensions, media types."""
    texts = [(data_files.PACKAGE_FOLDER / "roles/roles.toml").read_bytes()]
    texts += [(data_files.find_folder("schemas") / f"{name}.schema.json").read_bytes() for name in _SCHEMAS]
    texts += [" ".join(CHOICES).encode(), b"application/json application/octet-stream application/grpc"]
    return fold(b"\n".join(texts))


def is_word(text: str) -> bool:
    """Say whether a text is part of these words."""
    return fold(text.encode("utf-8", "replace")) in load_words()


@cache
def get_word_pieces(length: int) -> frozenset[bytes]:
    """Return every piece of a length of these words."""
    return frozenset(cut_pieces(load_words(), length))


def cut_pieces(text: bytes, length: int) -> list[bytes]:
    """Return every piece of a length."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]
