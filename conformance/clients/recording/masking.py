"""Takes the credentials out of what a client sends before anybody keeps it: they are of no interest to any rule.

Headers keep their names, and URLs the names of their parameters. Where a long secret is repeated elsewhere, as many
asterisks stand in its place, so that lengths and offsets stay true.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from conformance.clients.recording.records import RecordedAnswer
from conformance.transport import credentials
from conformance.wire.client_request import ClientRequest

HIDDEN: Final = "..."
# From this length on a secret is taken out of the rest of a request, too: what is shorter may be part of its JSON.
MIN_SECRET_CHARS: Final = 16
_USER: Final = re.compile(r"\A([a-z]+://)[^/@?#]*@", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


def find_secrets(received: ClientRequest) -> tuple[str, ...]:
    """Return the credentials that a request carries, the longest first."""
    in_url = [(match[2], match[3]) for match in _PARAMETER.finditer(received.path)]
    return credentials.find_secrets([*received.headers, *in_url])


def mask_request(received: ClientRequest) -> ClientRequest:
    """Return a request without its credentials."""
    long = [secret for secret in find_secrets(received) if len(secret) >= MIN_SECRET_CHARS and not secret.isdecimal()]
    path = _PARAMETER.sub(_hidden_parameter, _USER.sub(rf"\1{HIDDEN}@", received.path))
    return replace(
        received,
        path=_without(path, long),
        headers=_headers(received.headers, long),
        body=credentials.hide_bytes(received.body, long),
    )


def mask_answer(answer: RecordedAnswer, secrets: tuple[str, ...]) -> RecordedAnswer:
    """Return an answer without its cookies, and without credentials of the request that it repeats."""
    return replace(
        answer,
        headers=_headers(answer.headers, secrets),
        body=credentials.hide_bytes(answer.body, secrets),
        details=_without(answer.details, secrets),
    )


def _headers(headers: tuple[tuple[str, str], ...], secrets: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, HIDDEN if credentials.is_credential(name) else _without(value, secrets)) for name, value in headers
    )


def _without(text: str, secrets: Sequence[str]) -> str:
    return credentials.hide_bytes(text.encode("utf-8", "surrogatepass"), secrets).decode("utf-8", "surrogatepass")


def _hidden_parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    return f"{before}{name}={HIDDEN if credentials.is_credential(name) else value}"
