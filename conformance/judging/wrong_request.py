"""Turns what a client's request misses into the block that a user reads: here it is the request that is wrong.

Credentials were taken out before anything was recorded. All else that a client or a server sent passes `text.safe`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

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
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.taken_apart_request import TakenApart, take_apart

LONGEST_JSON: Final = 500  # characters of a request, and of an answer
MESSAGE_ROWS: Final = 8  # of eight bytes, of a gRPC message in which no place is known


def describe(recorded: Recorded, miss: Miss, url_of: Callable[[Recorded], str]) -> Failure:
    """Return the failure that a miss stands for.

    Args:
        recorded: the request, and its answer where one came.
        miss: what it does not meet.
        url_of: says to which address it came.
    """
    entry = ledger.requirement(miss.requirement)
    received = recorded.received
    apart = None if received.is_over_grpc else take_apart(received)
    exchange = exchange_of(recorded, url_of(recorded), message_of(received, apart))
    return Failure(
        entry.id,
        str(entry.level),
        entry.statement,
        entry.source,
        safe(miss.expected, 600),
        safe(miss.actual, 600),
        safe(_sent(recorded, exchange), 600),
        window(received, apart, miss.offset),
        "",
        [source.url for source in entry.sources],
        safe(shortened(apart.body[: apart.json_end]), LONGEST_JSON) if apart else "",
        safe(_answer(exchange), LONGEST_JSON),
        shown_exchange(Reply(exchange), ()),
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


def window(received: Received, apart: TakenApart | None, offset: int | None) -> list[str]:
    """Return hexadecimal rows around an offset of the body, the row that begins there with its field named.

    Without an offset a message of gRPC, which nobody can read as it is, is shown from its beginning.
    """
    if apart is None:
        rows = annotate.hex_window(received.body, offset or 0, rows=MESSAGE_ROWS).splitlines()
        return rows if offset is None else _marked(rows, offset, f"byte {offset} of the message")
    if offset is None:
        return []
    label = f"byte {offset} of the tensor" if apart.is_raw else annotate.label(_layout(apart), offset)
    return _marked(annotate.hex_window(apart.body, offset).splitlines(), offset, label)


def _marked(rows: list[str], offset: int, label: str) -> list[str]:
    """Return rows with a label behind the one that begins at an offset."""
    return [f"{row}   <- {safe(label)}" if int(row.split()[0], 16) == offset else row for row in rows]


def _layout(apart: TakenApart) -> annotate.Layout:
    placed = [(one, one.span) for one in apart.inputs if one.span is not None]
    spans = tuple((one.name, one.datatype, *span) for one, span in placed)
    return annotate.Layout(apart.json_end, spans, apart.body, tuple(one.index for one, _ in placed))


def message_of(received: Received, apart: TakenApart | None) -> Message:
    """Return the request with the places of its parts, as far as it says so itself, and its body shows them."""
    message = Message(received.path, received.headers, received.body, received.method)
    if apart is None or apart.is_coded or apart.is_raw:
        return message
    return replace(message, json_length=apart.json_end, spans=tuple(_layout(apart).spans))
