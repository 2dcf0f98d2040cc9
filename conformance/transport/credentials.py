"""Selects the user's secrets, which `masking` hides in answers: some servers repeat a request in their errors.

Hiding must not change a verdict. So a value is not hidden if a correct answer may contain the same text: a word of the
protocol, a short text, or a short number. `find_unmaskable_headers` reports such values.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from functools import lru_cache

from conformance.transport.masking import MIN_SECRET_DIGITS, is_word, make_mask

_CREDENTIAL = re.compile(r"auth|cookie|token|secret|key|pass|credential|session|signature|jwt", re.IGNORECASE)
_SCHEME = re.compile(r"\A[A-Za-z][\w-]* +(?=\S)")  # of an Authorization header (RFC 9110, 11.4)
PUBLIC_HEADERS = frozenset({"host"})  # headers that only address the request
MIN_SECRET_CHARS = 6
MIN_DISTINCT_CHARS = 4  # different characters


def find_secrets(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the secrets in headers whose names suggest credentials, the longest first."""
    return _select_hideable(
        part for name, value in headers if is_credential(name) for part in _list_secret_parts(name, value)
    )


@lru_cache(maxsize=64)
def find_user_secrets(headers: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the secrets in the user's headers, whatever their names; the longest first."""
    return _select_hideable(
        part for name, value in headers if _may_be_secret(name) for part in _list_secret_parts(name, value)
    )


def find_unmaskable_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the names of the user's headers whose values cannot be hidden in answers, each with the reason."""
    return [
        (name, why)
        for name, value in headers
        if _may_be_secret(name) and (why := _explain_unmaskable(_strip_scheme(name, value)))
    ]


def is_credential(name: str) -> bool:
    """Return whether the name of a header or URL parameter suggests a credential."""
    return _CREDENTIAL.search(name) is not None


def _may_be_secret(name: str) -> bool:
    return name.lower() not in PUBLIC_HEADERS


def _list_secret_parts(name: str, value: str) -> Iterator[str]:
    """Yield the secret parts of a header value: the value without scheme, passwords, and values after equal signs."""
    bare = _strip_scheme(name, value)
    yield bare
    if not is_credential(name):
        return
    yield from (part.partition("=")[2].strip('"') for part in re.split(r"[;,\s]+", value))
    if value.lower().startswith("basic "):
        yield _decode_basic(bare)
        yield _decode_basic(bare).partition(":")[2]


def _strip_scheme(name: str, value: str) -> str:
    """Return a header's value; for an Authorization header without the scheme."""
    return _SCHEME.sub("", value, count=1) if "authorization" in name.lower() else value


def _select_hideable(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        sorted({secret for secret in found if not _explain_unmaskable(secret)}, key=lambda each: (-len(each), each))
    )


def _explain_unmaskable(secret: str) -> str:
    """Return why hiding this text could damage correct answers; empty if it can be hidden."""
    if len(secret) < MIN_SECRET_CHARS:
        return f"the value has fewer than {MIN_SECRET_CHARS} characters"
    if len(set(secret)) < MIN_DISTINCT_CHARS:
        return f"the value has fewer than {MIN_DISTINCT_CHARS} different characters"
    if secret.isdecimal() and len(secret) < MIN_SECRET_DIGITS:
        return f"the value is a number of fewer than {MIN_SECRET_DIGITS} digits"
    return "the value is a word of the protocol" if is_word(secret) else ""


def _decode_basic(encoded: str) -> str:
    """Decode a basic credential to `user:password`; empty if it is malformed."""
    try:
        return b64decode(encoded, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return ""


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return the text with secrets masked, including parts of secrets, because messages truncate long values."""
    return make_mask(tuple(secrets)).hide_text(text)


def hide_bytes(data: bytes, secrets: Iterable[str]) -> bytes:
    """Return the bytes with secrets masked, at the same length."""
    return make_mask(tuple(secrets)).hide(data)
