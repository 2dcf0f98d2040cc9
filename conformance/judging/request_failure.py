"""Turns what a client's request misses into the block that a user reads: here it is the request that is wrong.

Credentials were taken out before anything was recorded. All else that a client or a server sent passes `text.safe`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from conformance.clients.recording.exchanges import to_exchange
from conformance.clients.recording.records import RecordedExchange
from conformance.clients.violation import Violation
from conformance.judging import grpc_call
from conformance.judging.exchange_rendering import render_exchange
from conformance.judging.message_rendering import render_answer, shorten_json
from conformance.spec import ledger
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import body_layout
from conformance.wire.client_request import ClientRequest
from conformance.wire.parsed_request import ParsedRequest, parse
from conformance.wire.request import INFERENCE_HEADER, Message

MAX_JSON_CHARS: Final = 500  # characters of a request, and of an answer
MAX_MESSAGE_ROWS: Final = 8  # of eight bytes, of a gRPC message in which no place is known


def describe(recorded: RecordedExchange, miss: Violation, url_of: Callable[[RecordedExchange], str]) -> Failure:
    """Return the failure that a miss stands for.

    Args:
        recorded: the request, and its answer where one came.
        miss: what it does not meet.
        url_of: says to which address it came.
    """
    entry = ledger.get_requirement(miss.requirement)
    received = recorded.received
    apart = None if received.is_over_grpc else parse(received)
    exchange = to_exchange(recorded, url_of(recorded), build_message(received, apart))
    return Failure(
        entry.id,
        str(entry.level),
        entry.statement,
        entry.source,
        escape_text(miss.expected, 600),
        escape_text(miss.actual, 600),
        escape_text(_sent(recorded, exchange), 600),
        render_window(received, apart, miss.offset),
        "",
        [source.url for source in entry.sources],
        escape_text(shorten_json(apart.body[: apart.json_end]), MAX_JSON_CHARS) if apart else "",
        escape_text(_answer(exchange), MAX_JSON_CHARS),
        render_exchange(Reply(exchange), ()),
    )


def _sent(recorded: RecordedExchange, exchange: Exchange) -> str:
    received = recorded.received
    number = f"request {recorded.number}"
    if received.is_over_grpc:
        return f"{number}, {grpc_call.summarize_call(exchange)}"
    header = received.header(INFERENCE_HEADER)
    parts = [f"{number}, {received.method} {received.path}", f"{len(received.body)} bytes"]
    parts += [f"inference header {header}"] if header is not None else []
    return ", ".join([*parts, *([exchange.note] if exchange.note else [])])


def _answer(exchange: Exchange) -> str:
    reply = Reply(exchange)
    if exchange.status is None or not exchange.body:
        return reply.outcome()
    return f"{reply.status_line}, {render_answer(reply)}"


def render_window(received: ClientRequest, apart: ParsedRequest | None, offset: int | None) -> list[str]:
    """Return hexadecimal rows around an offset of the body, the row that begins there with its field named.

    Without an offset a message of gRPC, which nobody can read as it is, is shown from its beginning.
    """
    if apart is None:
        rows = body_layout.format_hex_window(received.body, offset or 0, rows=MAX_MESSAGE_ROWS).splitlines()
        return rows if offset is None else _marked(rows, offset, f"byte {offset} of the message")
    if offset is None:
        return []
    label = f"byte {offset} of the tensor" if apart.is_raw else body_layout.find_label(_layout(apart), offset)
    return _marked(body_layout.format_hex_window(apart.body, offset).splitlines(), offset, label)


def _marked(rows: list[str], offset: int, label: str) -> list[str]:
    """Return rows with a label behind the one that begins at an offset."""
    return [f"{row}   <- {escape_text(label)}" if int(row.split()[0], 16) == offset else row for row in rows]


def _layout(apart: ParsedRequest) -> body_layout.Layout:
    placed = [(one, one.span) for one in apart.inputs if one.span is not None]
    spans = tuple((one.name, one.datatype, *span) for one, span in placed)
    return body_layout.Layout(apart.json_end, spans, apart.body, tuple(one.index for one, _ in placed))


def build_message(received: ClientRequest, apart: ParsedRequest | None) -> Message:
    """Return the request with the places of its parts, as far as it says so itself, and its body shows them."""
    message = Message(received.path, received.headers, received.body, received.method)
    if apart is None or apart.is_coded or apart.is_raw:
        return message
    return replace(message, json_length=apart.json_end, spans=tuple(_layout(apart).spans))
