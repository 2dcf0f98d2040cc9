"""Turns what a client did wrong into what a user reads: what was asked, the request, the answer, the wrong bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.clients.inference import Inference
from conformance.clients.logging_adapter import AdapterCall
from conformance.expect.unmet import UnmetError
from conformance.judging import grpc_call
from conformance.judging.exchange_rendering import render_exchange
from conformance.judging.message_rendering import render_answer, render_request
from conformance.judging.request_failure import build_message, render_window
from conformance.spec import ledger
from conformance.spec.result import Failure
from conformance.spec.text import escape_text, format_shape
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import body_layout
from conformance.wire.client_request import ClientRequest
from conformance.wire.parsed_request import parse
from conformance.wire.request import INFERENCE_HEADER, Message

MAX_TEXT_CHARS = 600  # characters of a line
MAX_JSON_CHARS = 500  # characters of a request, and of an answer
SENDING_PREFIX = "CLIENT-SENDS-"  # how the ledger calls what is about requests
MAX_INPUTS = 4  # of an inference, that are shown


def describe(unmet: UnmetError, requirement: str, asked: Sequence[AdapterCall]) -> Failure:
    """Return the failure that an `UnmetError` of a client's stands for.

    Args:
        unmet: what the body raised.
        requirement: the ledger id that it is about; says whether request or answer is shown.
        asked: what was asked of the adapter in this row.
    """
    entry = ledger.get_requirement(requirement)
    reply = _shown(unmet.reply.exchange) if unmet.reply else None
    return Failure(
        requirement,
        str(entry.level),
        entry.statement,
        entry.source,
        escape_text(unmet.expected, MAX_TEXT_CHARS),
        escape_text(unmet.actual, MAX_TEXT_CHARS),
        escape_text(_sent(reply.exchange), MAX_TEXT_CHARS) if reply else "",
        _bytes(reply, unmet.offset, is_of_request=requirement.startswith(SENDING_PREFIX)) if reply else [],
        "",
        [source.url for source in entry.sources],
        escape_text(render_request(reply.exchange), MAX_JSON_CHARS) if reply else "",
        escape_text(render_answer(reply), MAX_JSON_CHARS) if reply else "",
        render_exchange(reply, ()) if reply else None,
        escape_text(summarize_call(asked[-1]), MAX_TEXT_CHARS) if asked else "",
    )


def summarize_call(asked: AdapterCall) -> str:
    """Return what was asked of an adapter, on one line."""
    first, count = _inference(asked.inferences[0]), len(asked.inferences)
    if count == 1:
        return f"over {asked.transport}: {first}"
    return f"over {asked.transport}, {count} inferences {'at once' if asked.at_once else 'in turn'}, the first: {first}"


def _inference(inference: Inference) -> str:
    shown = [
        f"{one.name} {one.datatype} {format_shape(one.shape)} {inference.form_of(place)}"
        for place, one in enumerate(inference.inputs[:MAX_INPUTS])
    ]
    more = len(inference.inputs) - MAX_INPUTS
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
    placed = build_message(_received(message), None if Reply(exchange).is_over_grpc else parse(_received(message)))
    return Reply(replace(exchange, message=placed))


def _received(message: Message) -> ClientRequest:
    return ClientRequest(message.method, message.path, message.headers, message.body)


def _sent(exchange: Exchange) -> str:
    """Return the request in a few words, as it came."""
    if Reply(exchange).is_over_grpc:
        return grpc_call.summarize_call(exchange)
    message = exchange.message
    header = message.header(INFERENCE_HEADER)
    parts = [f"{message.method} {message.path}", f"{len(message.body)} bytes"]
    return ", ".join([*parts, *([f"inference header {header}"] if header is not None else [])])


def _bytes(reply: Reply, offset: int | None, *, is_of_request: bool) -> list[str]:
    """Return hexadecimal rows around an offset of the request's body, or of the answer's, with its field named."""
    if is_of_request:
        received = _received(reply.exchange.message)
        return render_window(received, None if reply.is_over_grpc else parse(received), offset)
    if offset is None:
        return []
    label = escape_text(body_layout.find_label(reply.answer, offset))
    rows = body_layout.format_hex_window(reply.body, offset).splitlines()
    return [f"{row}   <- {label}" if int(row.split()[0], 16) == offset else row for row in rows]
