"""The exchange that shows a failure, as a report keeps it: heads as text, bodies as bytes with their parts named.

Whatever the user gave as a secret is hidden in it, bodies included. Headers that the user gave are not in it, nor are
cookies: a recording does not keep their values either, and what is judged from one has to come to the same.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Collection

from conformance.spec.result import Evidence, MessageEvidence
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.body_layout import Field, Layout, list_fields

MAX_BODY_BYTES = 4096  # bytes
MAX_HEADERS = 40
MAX_LINE_CHARS = 400  # characters
COOKIE_HEADERS = ("set-cookie",)


def render_exchange(reply: Reply, secrets: Collection[str]) -> Evidence:
    """Return the exchange of a reply."""
    exchange = reply.exchange
    message = exchange.message
    layout = Layout(message.json_length, message.spans, message.body)
    return {
        "request": _message(_request_head(exchange), message.body, layout, secrets),
        "answer": _message(_answer_head(reply), reply.body, Layout.of(reply.answer), secrets),
    }


def _message(head: list[str], body: bytes, layout: Layout, secrets: Collection[str]) -> MessageEvidence:
    hidden = hide_bytes(body, secrets)
    shown: MessageEvidence = {
        "head": [escape_text(hide(line, secrets), MAX_LINE_CHARS) for line in head],
        "length": len(hidden),
        "sha256": hashlib.sha256(hidden).hexdigest(),
    }
    if 0 < len(hidden) <= MAX_BODY_BYTES:
        shown["body_base64"] = b64encode(hidden).decode()
        shown["fields"] = [_plain(field, secrets) for field in list_fields(layout, len(hidden))]
    return shown


def _plain(field: Field, secrets: Collection[str]) -> list[int | str]:
    label = escape_text(hide(field.label, secrets))
    return [field.start, field.end, label, *([field.size] if field.size else [])]


def _request_head(exchange: Exchange) -> list[str]:
    message = exchange.message
    lines = [f"{message.method} {message.path}", *_headers(message.headers)]
    return [*lines, *([f"({exchange.note})"] if exchange.note else [])]


def _answer_head(reply: Reply) -> list[str]:
    exchange = reply.exchange
    status = reply.status_line if exchange.status else "no answer"
    lines = [f"{status}: {exchange.details}" if exchange.details else status, *_headers(exchange.headers)]
    return [*lines, *([f"({exchange.failure})"] if exchange.failure else [])]


def _headers(headers: Collection[tuple[str, str]]) -> list[str]:
    shown = [f"{name}: {'...' if name.lower() in COOKIE_HEADERS else value}" for name, value in headers]
    more = len(shown) - MAX_HEADERS
    return [*shown[:MAX_HEADERS], *([f"and {more} more"] if more > 0 else [])]
