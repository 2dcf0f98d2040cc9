"""Turns what a client did wrong into what a user reads: what was asked, the request, the answer, the wrong bytes.

Credentials were taken out before anything of a watched client was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.clients.adapter import AdapterCall
from conformance.clients.inference import Inference
from conformance.clients.recording.records import RecordedExchange, to_exchange
from conformance.clients.rules.rule import Violation
from conformance.expect.unmet import UnmetError
from conformance.judging.failure import MAX_MESSAGE_ROWS, build_failure, label_row, render_answer_bytes
from conformance.judging.message_rendering import render_answer, shorten_json, summarize_call
from conformance.spec.result import Failure
from conformance.spec.text import format_shape
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import body_layout
from conformance.wire.client_request import ClientRequest
from conformance.wire.parsed_request import ParsedRequest, parse
from conformance.wire.request import INFERENCE_HEADER, Message

SENDING_PREFIX = "CLIENT-SENDS-"  # how the ledger calls what is about requests
MAX_INPUTS = 4  # of an inference, that are shown


def describe_call(unmet: UnmetError, requirement: str, asked: Sequence[AdapterCall]) -> Failure:
    """Return the failure of a client with an adapter that an `UnmetError` stands for.

    Args:
        unmet: what the body raised.
        requirement: the ledger id that it is about; says whether bytes of the request or of the answer are shown.
        asked: what was asked of the adapter in this row.
    """
    words = _summarize(asked[-1]) if asked else ""
    if unmet.reply is None:
        return build_failure(unmet, requirement, None, asked=words)
    exchange = unmet.reply.exchange
    message = exchange.message
    received = ClientRequest(message.method, message.path, message.headers, message.body)
    parsed = None if received.is_over_grpc else parse(received)
    reply = Reply(replace(exchange, message=_build_message(received, parsed)))
    if requirement.startswith(SENDING_PREFIX):
        rows = _render_bytes(received, parsed, unmet.offset)
    else:
        rows = [] if unmet.offset is None else render_answer_bytes(reply, unmet.offset)
    return build_failure(unmet, requirement, reply, sent=_sent(exchange, received), rows=rows, asked=words)


def describe_violation(
    recorded: RecordedExchange, violation: Violation, url_of: Callable[[RecordedExchange], str]
) -> Failure:
    """Return the failure of a watched client that a violation stands for.

    Args:
        recorded: the request, and its answer where one came.
        violation: what it does not meet.
        url_of: says to which address it came.
    """
    received = recorded.received
    parsed = None if received.is_over_grpc else parse(received)
    exchange = to_exchange(recorded, url_of(recorded), _build_message(received, parsed))
    reply = Reply(exchange)
    has_answer = exchange.status is not None and exchange.body
    note = f", {exchange.note}" if exchange.note and parsed else ""
    request = shorten_json(parsed.body[: parsed.json_end]) if parsed else ""
    answer = f"{reply.status_line}, {render_answer(reply)}" if has_answer else reply.outcome()
    return build_failure(
        violation,
        violation.requirement,
        reply,
        sent=f"request {recorded.number}, {_sent(exchange, received)}{note}",
        rows=_render_bytes(received, parsed, violation.offset),
        texts=(request, answer),
    )


# --- what was asked ---------------------------------------------------------------------------------------------------


def _summarize(asked: AdapterCall) -> str:
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


# --- what was sent ----------------------------------------------------------------------------------------------------


def _sent(exchange: Exchange, received: ClientRequest) -> str:
    """Return the request in a few words, as it came."""
    if received.is_over_grpc:
        return summarize_call(exchange)
    header = received.header(INFERENCE_HEADER)
    parts = [f"{received.method} {received.path}", f"{len(received.body)} bytes"]
    return ", ".join([*parts, *([f"inference header {header}"] if header is not None else [])])


def _render_bytes(received: ClientRequest, parsed: ParsedRequest | None, offset: int | None) -> list[str]:
    """Return hexadecimal rows around an offset of the body, the row that begins there with its field named.

    Without an offset a message of gRPC, which nobody can read as it is, is shown from its beginning.
    """
    if parsed is None:
        rows = body_layout.format_hex_window(received.body, offset or 0, rows=MAX_MESSAGE_ROWS).splitlines()
        return rows if offset is None else label_row(rows, offset, f"byte {offset} of the message")
    if offset is None:
        return []
    label = f"byte {offset} of the tensor" if parsed.is_raw else body_layout.find_label(_layout(parsed), offset)
    return label_row(body_layout.format_hex_window(parsed.body, offset).splitlines(), offset, label)


def _layout(parsed: ParsedRequest) -> body_layout.Layout:
    placed = [(one, one.span) for one in parsed.inputs if one.span is not None]
    spans = tuple((one.name, one.datatype, *span) for one, span in placed)
    return body_layout.Layout(parsed.json_end, spans, parsed.body, tuple(one.index for one, _ in placed))


def _build_message(received: ClientRequest, parsed: ParsedRequest | None) -> Message:
    """Return the request with the places of its parts, as far as it says so itself, and its body shows them."""
    message = Message(received.path, received.headers, received.body, received.method)
    if parsed is None or parsed.is_coded or parsed.is_raw:
        return message
    return replace(message, json_length=parsed.json_end, spans=tuple(_layout(parsed).spans))
