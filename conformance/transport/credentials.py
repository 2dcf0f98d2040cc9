"""Credentials that a user gave, taken out of what a server sends back: some servers repeat a request in their errors.

What is taken out is replaced by as many asterisks, so that lengths and offsets stay true. Only headers that carry
credentials count, and nothing short: a name that is no secret must not vanish from an answer.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import cache
from urllib.parse import quote

_CREDENTIAL = re.compile(r"auth|cookie|token|secret|key|pass|credential|session|signature|jwt", re.IGNORECASE)
SHORTEST = 6
PIECE = 8


def of(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the secrets in headers, the longest first: values without their scheme, cookies, and basic passwords."""
    found = set()
    for name, value in headers:
        if is_credential(name):
            scheme, _, rest = value.partition(" ")
            found |= {rest or value, *(part.partition("=")[2] for part in value.split("; "))}
            if scheme.lower() == "basic":
                found |= {_credentials(rest), _credentials(rest).partition(":")[2]}
    return tuple(sorted((secret for secret in found if len(secret) >= SHORTEST), key=len, reverse=True))


def is_credential(name: str) -> bool:
    """Say whether a header, or a parameter of a URL, carries a credential, by its name."""
    return _CREDENTIAL.search(name) is not None


def _credentials(encoded: str) -> str:
    try:
        return b64decode(encoded, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return ""


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return text without secrets, and without pieces of one: messages quote the beginning of what is long."""
    masked = {
        place
        for secret in secrets
        for spelling, piece in _spellings(secret)
        for start in _places(text, spelling, min(piece, len(spelling)))
        for place in range(start, start + min(piece, len(spelling)))
    }
    return "".join("*" if place in masked else c for place, c in enumerate(text)) if masked else text


def hide_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Return bytes without secrets."""
    for secret in secrets:
        for spelling, _ in _spellings(secret):
            octets = spelling.encode("utf-8")
            data = data.replace(octets, b"*" * len(octets))
    return data


@cache
def _spellings(secret: str) -> tuple[tuple[str, int], ...]:
    """Return how servers, and messages, write a secret; each with the length from which on a piece counts."""
    escaped = json.dumps(secret)[1:-1]
    texts = dict.fromkeys((secret, quote(secret), quote(secret, safe=""), escaped, escaped.replace("/", "\\/")))
    octets = secret.encode("utf-8").hex(" ")
    return (*((text, PIECE) for text in texts), (octets, len("00 ") * PIECE - 1))


def _places(text: str, secret: str, piece: int) -> Iterator[int]:
    """Yield where so many characters begin that stand in a row in the secret."""
    pieces = _pieces(secret, piece)
    return (start for start in range(len(text) - piece + 1) if text[start : start + piece] in pieces)


@cache
def _pieces(secret: str, piece: int) -> frozenset[str]:
    return frozenset(secret[start : start + piece] for start in range(len(secret) - piece + 1))
