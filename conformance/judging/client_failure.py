"""Turns what a client did wrong into what a user reads: what was asked, the request, the answer, the wrong bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.clients.inference import Inference
from conformance.clients.noted import Asked
from conformance.expect.unmet import Unmet
from conformance.judging import grpc_call
from conformance.judging.shown_exchange import shown_exchange
from conformance.judging.shown_messages import answer_text, request_json
from conformance.judging.wrong_request import message_of, window
from conformance.terms import ledger
from conformance.terms.result import Failure
from conformance.terms.text import safe, shown_shape
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import annotate
from conformance.wire.received import Received
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.taken_apart_request import take_apart

LONGEST = 600  # characters of a line
LONGEST_JSON = 500  # characters of a request, and of an answer
SENDING = "CLIENT-SENDS-"  # how the ledger calls what is about requests
MOST_INPUTS = 4  # of an inference, that are shown


def describe(unmet: Unmet, requirement: str, asked: Sequence[Asked]) -> Failure:
    """Return the failure that an `Unmet` of a client's stands for.

    Args:
        unmet: what the body raised.
        requirement: the ledger id that it is about; says whether request or answer is shown.
        asked: what was asked of the adapter in this row.
    """
    entry = ledger.requirement(requirement)
    reply = _shown(unmet.reply.exchange) if unmet.reply else None
    return Failure(
        requirement,
        str(entry.level),
        entry.statement,
        entry.source,
        safe(unmet.expected, LONGEST),
        safe(unmet.actual, LONGEST),
        safe(_sent(reply.exchange), LONGEST) if reply else "",
        _bytes(reply, unmet.offset, is_of_request=requirement.startswith(SENDING)) if reply else [],
        "",
        [source.url for source in entry.sources],
        safe(request_json(reply.exchange), LONGEST_JSON) if reply else "",
        safe(answer_text(reply), LONGEST_JSON) if reply else "",
        shown_exchange(reply, ()) if reply else None,
        safe(in_short(asked[-1]), LONGEST) if asked else "",
    )


def in_short(asked: Asked) -> str:
    """Return what was asked of an adapter, on one line."""
    first, count = _inference(asked.inferences[0]), len(asked.inferences)
    if count == 1:
        return f"over {asked.transport}: {first}"
    return f"over {asked.transport}, {count} inferences {'at once' if asked.at_once else 'in turn'}, the first: {first}"


def _inference(inference: Inference) -> str:
    shown = [
        f"{one.name} {one.datatype} {shown_shape(one.shape)} {inference.form_of(place)}"
        for place, one in enumerate(inference.inputs[:MOST_INPUTS])
    ]
    more = len(inference.inputs) - MOST_INPUTS
    inputs = "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])]) or "no inputs"
    parts = [f"model {inference.model}", "raw binary request" if inference.is_raw else "", inputs, _outputs(inference)]
    ways = [
        f"{name} {value}" for name, value in (("coding", inference.coding), ("accepts", inference.accepts)) if value
    ]
    return ", ".join([part for part in parts if part] + ways)


def _outputs(inference: Inference) -> str:
    if inference.outputs is None:
        return f"all outputs {inference.all_outputs}" if inference.all_outputs else ""
    words = [
        " ".join([one.name, *([f"{one.classes} classes"] if one.classes else []), *([one.form] if one.form else [])])
        for one in inference.outputs
    ]
    return f"outputs {'; '.join(words)}"


def _shown(exchange: Exchange) -> Reply:
    """Return the exchange with the places of the parts of its request, so that these are named."""
    message = exchange.message
    placed = message_of(_received(message), None if Reply(exchange).is_over_grpc else take_apart(_received(message)))
    return Reply(replace(exchange, message=placed))


def _received(message: Message) -> Received:
    return Received(message.method, message.path, message.headers, message.body)


def _sent(exchange: Exchange) -> str:
    """Return the request in a few words, as it came."""
    if Reply(exchange).is_over_grpc:
        return grpc_call.sent(exchange)
    message = exchange.message
    header = message.header(INFERENCE_HEADER)
    parts = [f"{message.method} {message.path}", f"{len(message.body)} bytes"]
    return ", ".join([*parts, *([f"inference header {header}"] if header is not None else [])])


def _bytes(reply: Reply, offset: int | None, *, is_of_request: bool) -> list[str]:
    """Return hexadecimal rows around an offset of the request's body, or of the answer's, with its field named."""
    if is_of_request:
        received = _received(reply.exchange.message)
        return window(received, None if reply.is_over_grpc else take_apart(received), offset)
    if offset is None:
        return []
    label = safe(annotate.label(reply.answer, offset))
    rows = annotate.hex_window(reply.body, offset).splitlines()
    return [f"{row}   <- {label}" if int(row.split()[0], 16) == offset else row for row in rows]
