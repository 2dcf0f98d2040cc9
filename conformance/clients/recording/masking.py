"""Masks credentials in the requests of clients before a request is judged or stored: no rule needs credentials.

The names of headers and of URL parameters stay. In bodies, asterisks replace each byte of a long secret, so that
lengths and offsets stay correct.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from conformance.clients.recording.records import RecordedAnswer
from conformance.transport import credentials
from conformance.wire.client_request import ClientRequest

HIDDEN: Final = "..."
# Secrets of at least this length are masked everywhere in a request: a shorter one may be part of its JSON.
MIN_SECRET_CHARS: Final = 16
_USER: Final = re.compile(r"\A([a-z]+://)[^/@?#]*@", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile("=|: ")
_PARAMETER: Final = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


def find_secrets(received: ClientRequest) -> tuple[str, ...]:
    """Return the credentials that a request carries, the longest first."""
    in_url = [(match[2], match[3]) for match in _PARAMETER.finditer(received.path)]
    return credentials.find_secrets([*received.headers, *in_url])


def mask_request(received: ClientRequest) -> ClientRequest:
    """Return a request with masked credentials.

    In the body only long credentials are masked, because short ones may be part of JSON.
    """
    long = [secret for secret in find_secrets(received) if len(secret) >= MIN_SECRET_CHARS and not secret.isdecimal()]
    path = _PARAMETER.sub(_mask_parameter, _USER.sub(rf"\1{HIDDEN}@", received.path))
    return replace(
        received,
        path=_hide_secrets(path, long),
        headers=_mask_headers(received.headers, long),
        body=credentials.hide_bytes(received.body, long),
    )


def mask_answer(answer: RecordedAnswer, secrets: tuple[str, ...]) -> RecordedAnswer:
    """Return an answer with masked cookies, and with the request's credentials (`secrets`) masked everywhere."""
    return replace(
        answer,
        headers=_mask_headers(answer.headers, secrets),
        body=credentials.hide_bytes(answer.body, secrets),
        details=_hide_secrets(answer.details, secrets),
    )


def _mask_headers(headers: tuple[tuple[str, str], ...], secrets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, HIDDEN if credentials.is_credential(name) else _hide_secrets(value, secrets)) for name, value in headers
    )


def _hide_secrets(text: str, secrets: Sequence[str]) -> str:
    return credentials.hide_bytes(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def _mask_parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    return f"{before}{name}={HIDDEN if credentials.is_credential(name) else value}"


def find_command_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """Return the credentials in the command of an adapter: `--token=VALUE`, `--token VALUE`, `-H 'Name: VALUE'`."""
    pairs = [_ASSIGNMENT.split(word, maxsplit=1) for word in words]
    named = [(pair[0], pair[1]) for pair in pairs if len(pair) > 1]
    return credentials.find_secrets([*named, *(pair for pair in pairwise(words) if pair[0].startswith("-"))])
