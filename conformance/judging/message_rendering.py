"""Renders a request and its answer for failures and reports.

A failure shows each on one line: JSON with long arrays shortened, or a gRPC message in protobuf's text form. The caller
escapes the line and removes secrets. A report contains the whole exchange: heads as text, and bodies as bytes with
labeled fields. The report omits secrets, headers that the user supplied, and values of cookies. A recording omits these
values as well, so that a report made from a recording is the same.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Collection
from typing import Any

from conformance.spec.result import Evidence, MessageEvidence
from conformance.spec.text import escape_text, format_elements, shorten_middle
from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.body_layout import Field, Layout, list_fields
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import SERVICE, Pb, parse_request
from conformance.wire.request import INFERENCE_HEADER

MAX_ARRAY_ITEMS = 6  # elements of an array, members of an object
MAX_DEPTH = 8  # nested arrays and objects
MAX_TEXT_CHARS = 120  # characters of a string, of which the last third is its end
MAX_OUTPUTS = 4  # binary tensors whose first elements are shown
MAX_PARSED_BYTES = 64 * 1024  # longer JSON is not parsed for display
MAX_TEXT_BYTES = 16 * 1024  # a longer gRPC message is shown by its size alone
MAX_BODY_BYTES = 4096  # bytes of a body in a report
MAX_HEADERS = 40
MAX_LINE_CHARS = 400  # characters per line of a head
COOKIE_HEADERS = ("set-cookie",)

# --- lines ------------------------------------------------------------------------------------------------------------


def render_request(exchange: Exchange) -> str:
    """Return the JSON of an HTTP request; empty for a gRPC call, which `summarize_call` shows."""
    message = exchange.message
    if Reply(exchange).is_over_grpc:
        return ""
    return shorten_json(message.body[: message.json_length])


def render_answer(reply: Reply) -> str:
    """Return the JSON of an answer with the first elements of its tensors; if it is not JSON, the start of its body."""
    if reply.is_over_grpc:
        return summarize_answer(reply.exchange)
    answer, header = reply.answer, reply.header(INFERENCE_HEADER)
    parts = [f"inference header {header}"] if header is not None else []
    parts.append(shorten_json(reply.body[: answer.json_end]) or "no body")
    binary = [output for output in answer.outputs if output.binary and output.array is not None]
    parts += [f"{o.name} = {format_elements(o.array)}" for o in binary[:MAX_OUTPUTS] if o.array is not None]
    return ", ".join(parts)


def shorten_json(text: bytes) -> str:
    """Return JSON on one line with long arrays shortened; if the text is not JSON or very long, return its start."""
    start = text[:MAX_PARSED_BYTES].decode("utf-8", "replace").strip()
    if len(text) > MAX_PARSED_BYTES:
        return start
    try:
        return json.dumps(_shorten_arrays(json.loads(text)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return start


def _shorten_arrays(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        shown = shorten_middle(value, MAX_TEXT_CHARS)
        return value if len(value) <= MAX_TEXT_CHARS else f"{shown} ({len(value)} characters)"
    if not isinstance(value, list | dict):
        return value
    if depth == MAX_DEPTH:
        return "..."
    more = len(value) - MAX_ARRAY_ITEMS
    if isinstance(value, dict):
        kept = {key: _shorten_arrays(member, depth + 1) for key, member in list(value.items())[:MAX_ARRAY_ITEMS]}
        return kept | ({"...": f"{more} more"} if more > 0 else {})
    kept_items = [_shorten_arrays(item, depth + 1) for item in value[:MAX_ARRAY_ITEMS]]
    return [*kept_items, f"... {more} more"] if more > 0 else kept_items


def summarize_call(exchange: Exchange) -> str:
    """Return one line about a gRPC call: its method, its size and its message."""
    message = exchange.message
    method = message.path.removeprefix(f"/{SERVICE}/")
    form = format_message(parse_request(message), len(message.body))
    return f"{method} over gRPC, {len(message.body)} bytes" + (f": {form}" if form else "")


def summarize_answer(exchange: Exchange) -> str:
    """Return the answer to a gRPC call on one line; empty if the answer has no body."""
    method = exchange.message.path.removeprefix(f"/{SERVICE}/")
    return format_message(parse_message(exchange.body, method), len(exchange.body)) if exchange.body else ""


def format_message(message: Pb | None, size: int, *, lines: bool = False) -> str:
    """Return protobuf's text form of a message of `size` bytes; empty if the message is None or too long."""
    from google.protobuf import text_format

    if message is None or size > MAX_TEXT_BYTES:
        return ""
    return str(text_format.MessageToString(message, as_one_line=not lines, as_utf8=False)).strip()


# --- reports ----------------------------------------------------------------------------------------------------------


def render_exchange(reply: Reply, secrets: Collection[str]) -> Evidence:
    """Return the exchange of a reply for a report, without secrets."""
    exchange = reply.exchange
    message = exchange.message
    layout = Layout(message.json_length, message.spans, message.body)
    return {
        "request": _build_message_evidence(_format_request_head(exchange), message.body, layout, secrets),
        "answer": _build_message_evidence(
            _format_answer_head(reply), reply.body, Layout.from_answer(reply.answer), secrets
        ),
    }


def _build_message_evidence(head: list[str], body: bytes, layout: Layout, secrets: Collection[str]) -> MessageEvidence:
    hidden = hide_bytes(body, secrets)
    shown: MessageEvidence = {
        "head": [escape_text(hide(line, secrets), MAX_LINE_CHARS) for line in head],
        "length": len(hidden),
        "sha256": hashlib.sha256(hidden).hexdigest(),
    }
    if 0 < len(hidden) <= MAX_BODY_BYTES:
        shown["body_base64"] = b64encode(hidden).decode()
        shown["fields"] = [_convert_layout_field(field, secrets) for field in list_fields(layout, len(hidden))]
    return shown


def _convert_layout_field(field: Field, secrets: Collection[str]) -> list[int | str]:
    label = escape_text(hide(field.label, secrets))
    return [field.start, field.end, label, *([field.size] if field.size else [])]


def _format_request_head(exchange: Exchange) -> list[str]:
    message = exchange.message
    lines = [f"{message.method} {message.path}", *_format_headers(message.headers)]
    return [*lines, *([f"({exchange.note})"] if exchange.note else [])]


def _format_answer_head(reply: Reply) -> list[str]:
    exchange = reply.exchange
    status = reply.status_line if exchange.status else "no answer"
    lines = [f"{status}: {exchange.details}" if exchange.details else status, *_format_headers(exchange.headers)]
    return [*lines, *([f"({exchange.failure})"] if exchange.failure else [])]


def _format_headers(headers: Collection[tuple[str, str]]) -> list[str]:
    shown = [f"{name}: {'...' if name.lower() in COOKIE_HEADERS else value}" for name, value in headers]
    more = len(shown) - MAX_HEADERS
    return [*shown[:MAX_HEADERS], *([f"and {more} more"] if more > 0 else [])]
