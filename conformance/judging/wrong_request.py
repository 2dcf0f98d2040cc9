"""Turns what a client's request misses into the block that a user reads: here it is the request that is wrong.

Credentials were taken out before anything was recorded. All else that a client or a server sent passes `text.safe`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.clients.miss import Miss
from conformance.clients.recording.exchanges import exchange_of
from conformance.clients.recording.recorded import Recorded
from conformance.judging import grpc_call
from conformance.judging.shown_exchange import shown_exchange
from conformance.judging.shown_messages import answer_text, shortened
from conformance.terms import ledger
from conformance.terms.result import Failure
from conformance.terms.text import safe
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import annotate
from conformance.wire.received import Received
from conformance.wire.request import INFERENCE_HEADER, Message, Span

LONGEST_JSON: Final = 500  # characters of a request, and of an answer
MESSAGE_ROWS: Final = 8  # of eight bytes, of a gRPC message in which no place is known
LONGEST_PLAIN: Final = 64 * 1024 * 1024  # bytes of a body without its coding


def describe(recorded: Recorded, miss: Miss, url_of: Callable[[Recorded], str]) -> Failure:
    """Return the failure that a miss stands for.

    Args:
        recorded: the request, and its answer where one came.
        miss: what it does not meet.
        url_of: says to which address it came.
    """
    entry = ledger.requirement(miss.requirement)
    received = recorded.received
    plain = _without_coding(received)
    message = _message(received, plain)
    exchange = exchange_of(recorded, url_of(recorded), message)
    shown = shown_exchange(Reply(exchange), ())
    return Failure(
        entry.id,
        str(entry.level),
        entry.statement,
        entry.source,
        safe(miss.expected, 600),
        safe(miss.actual, 600),
        safe(_sent(recorded, exchange), 600),
        _bytes(message, plain, miss.offset),
        "",
        [source.url for source in entry.sources],
        "" if received.is_over_grpc else safe(shortened(plain[: message.json_length]), LONGEST_JSON),
        safe(_answer(exchange), LONGEST_JSON),
        shown,
    )


def _sent(recorded: Recorded, exchange: Exchange) -> str:
    received = recorded.received
    number = f"request {recorded.number}"
    if received.is_over_grpc:
        return f"{number}, {grpc_call.sent(exchange)}"
    header = received.header(INFERENCE_HEADER)
    parts = [f"{number}, {received.method} {received.path}", f"{len(received.body)} bytes"]
    parts += [f"inference header {header}"] if header is not None else []
    return ", ".join([*parts, *([exchange.note] if exchange.note else [])])


def _answer(exchange: Exchange) -> str:
    reply = Reply(exchange)
    if exchange.status is None or not exchange.body:
        return reply.outcome()
    return f"{reply.status_line}, {answer_text(reply)}"


def _bytes(message: Message, body: bytes, offset: int | None) -> list[str]:
    """Return hexadecimal rows around an offset of the body, the row that begins there with its field named."""
    is_call = Reply(Exchange(0, message, "")).is_over_grpc
    if offset is None:
        return annotate.hex_window(body, 0, rows=MESSAGE_ROWS).splitlines() if is_call else []
    layout = annotate.Layout(message.json_length, message.spans, body)
    label = "" if is_call else f"   <- {safe(annotate.label(layout, offset))}"
    rows = annotate.hex_window(body, offset).splitlines()
    return [f"{row}{label}" if int(row.split()[0], 16) == offset else row for row in rows]


# --- where the parts of a request lie, as far as it says so itself ----------------------------------------------------


def _message(received: Received, plain: bytes) -> Message:
    found = Message(received.path, received.headers, received.body, received.method)
    if received.is_over_grpc:
        return found
    header = received.header(INFERENCE_HEADER)
    end = int(header) if header is not None and header.isdecimal() and len(header) < 16 else len(plain)
    return replace(found, json_length=min(end, len(plain)), spans=_spans(plain, end))


def _spans(body: bytes, start: int) -> tuple[Span, ...]:
    """Return where the binary tensors lie; those behind one whose size is none are nowhere."""
    spans: list[Span] = []
    try:
        for item in json.loads(body[:start])["inputs"]:
            size = _size(item)
            if size is not None:
                spans.append((str(item.get("name")), str(item.get("datatype")), start, start + size))
                start += size
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return tuple(spans)


def _size(item: Mapping[str, Any]) -> int | None:
    size = item.get("parameters", {}).get("binary_data_size")
    return size if isinstance(size, int) and size >= 0 else None


def _without_coding(received: Received) -> bytes:
    """Return a body without its content coding; as it is where that cannot be taken off."""
    windows = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
    coding = (received.header("content-encoding") or "").strip().lower()
    if received.is_over_grpc or coding not in windows:
        return received.body
    try:
        return zlib.decompressobj(windows[coding]).decompress(received.body, LONGEST_PLAIN)
    except zlib.error:
        return received.body
