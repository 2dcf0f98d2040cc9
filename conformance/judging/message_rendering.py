"""The JSON of a request and of its answer, short enough to be read in a failure: long arrays lose their tail.

Nothing here is escaped, nor freed of secrets: that is for the caller.
"""

from __future__ import annotations

import json
from typing import Any

from conformance.judging import grpc_call
from conformance.spec.text import format_elements
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.request import INFERENCE_HEADER

MAX_ARRAY_ITEMS = 6  # elements of an array, members of an object
MAX_DEPTH = 8  # arrays and objects inside each other
MAX_TEXT_CHARS = 60  # characters of a string
MAX_OUTPUTS = 4  # tensors of binary data whose first elements are shown
MAX_PARSED_BYTES = 64 * 1024  # bytes of JSON that are taken apart to be shown


def render_request(exchange: Exchange) -> str:
    """Return the JSON of a request; empty where it has none, and over gRPC, where the call itself is shown."""
    message = exchange.message
    if Reply(exchange).is_over_grpc:
        return ""
    return shorten_json(message.body[: message.json_length])


def render_answer(reply: Reply) -> str:
    """Return the JSON of an answer, and the first elements of what follows it; of no JSON, how it begins."""
    if reply.is_over_grpc:
        return grpc_call.summarize_answer(reply.exchange)
    answer, header = reply.answer, reply.header(INFERENCE_HEADER)
    parts = [f"inference header {header}"] if header is not None else []
    parts.append(shorten_json(reply.body[: answer.json_end]) or "no body")
    binary = [output for output in answer.outputs if output.binary and output.array is not None]
    parts += [f"{o.name} = {format_elements(o.array)}" for o in binary[:MAX_OUTPUTS] if o.array is not None]
    return ", ".join(parts)


def shorten_json(text: bytes) -> str:
    """Return JSON on one line, without the tails of its arrays; what is no JSON, as it begins."""
    start = text[:MAX_PARSED_BYTES].decode("utf-8", "replace").strip()
    if len(text) > MAX_PARSED_BYTES:
        return start
    try:
        return json.dumps(_short(json.loads(text)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return start


def _short(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]}... ({len(value)} characters)"
    if not isinstance(value, list | dict):
        return value
    if depth == MAX_DEPTH:
        return "..."
    more = len(value) - MAX_ARRAY_ITEMS
    if isinstance(value, dict):
        kept = {key: _short(member, depth + 1) for key, member in list(value.items())[:MAX_ARRAY_ITEMS]}
        return kept | ({"...": f"{more} more"} if more > 0 else {})
    kept_items = [_short(item, depth + 1) for item in value[:MAX_ARRAY_ITEMS]]
    return [*kept_items, f"... {more} more"] if more > 0 else kept_items
