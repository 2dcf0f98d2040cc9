"""Describes the failures of a client for users: the adapter call, the request, the answer and the wrong bytes.

Credentials were removed before any traffic of a watched client was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.clients.adapter import AdapterCall
from conformance.clients.inference import Inference
from conformance.clients.recording.records import RecordedExchange, to_exchange
from conformance.clients.rules.rule import Violation
from conformance.expect.unmet import UnmetError
from conformance.judging.failure import MAX_MESSAGE_ROWS, build_failure, label_dump_line, render_answer_bytes
from conformance.judging.message_rendering import render_answer, shorten_json, summarize_call
from conformance.spec.result import Failure
from conformance.spec.text import format_shape
from conformance.transport.exchange import Exchange, Reply
from conformance.wire import body_layout
from conformance.wire.client_request import ClientRequest
from conformance.wire.parsed_request import ParsedRequest, parse
from conformance.wire.request import INFERENCE_HEADER, Message

SENDING_PREFIX = "CLIENT-SENDS-"  # prefix of the ledger ids about requests that a client sends
MAX_INPUTS = 4  # shown inputs of an inference


def describe_call(unmet: UnmetError, requirement: str, calls: Sequence[AdapterCall]) -> Failure:
    """Return the `Failure` for an `UnmetError` of a client with an adapter.

    Args:
        unmet: the error raised by the body of the check.
        requirement: the ledger id; it decides whether bytes of the request or of the answer are shown.
        calls: the calls that the suite made to the adapter in this row.
    """
    words = _summarize_call(calls[-1]) if calls else ""
    if unmet.reply is None:
        return build_failure(unmet, requirement, None, adapter_call=words)
    exchange = unmet.reply.exchange
    message = exchange.message
    received = ClientRequest(message.method, message.path, message.headers, message.body)
    parsed = None if received.is_over_grpc else parse(received)
    reply = Reply(replace(exchange, message=_build_message(received, parsed)))
    if requirement.startswith(SENDING_PREFIX):
        rows = _render_bytes(received, parsed, unmet.offset)
    else:
        rows = [] if unmet.offset is None else render_answer_bytes(reply, unmet.offset)
    sent = _describe_request(exchange, received)
    return build_failure(unmet, requirement, reply, sent=sent, hex_dump=rows, adapter_call=words)


def describe_violation(
    recorded: RecordedExchange, violation: Violation, find_url: Callable[[RecordedExchange], str]
) -> Failure:
    """Return the `Failure` for a violation of a watched client.

    Args:
        recorded: the request, and its answer if there was one.
        violation: the violation.
        find_url: returns the URL to which a request was sent.
    """
    received = recorded.received
    parsed = None if received.is_over_grpc else parse(received)
    exchange = to_exchange(recorded, find_url(recorded), _build_message(received, parsed))
    reply = Reply(exchange)
    has_answer = exchange.status is not None and exchange.body
    note = f", {exchange.note}" if exchange.note and parsed else ""
    request = shorten_json(parsed.body[: parsed.json_end]) if parsed else ""
    answer = f"{reply.status_line}, {render_answer(reply)}" if has_answer else reply.outcome()
    return build_failure(
        violation,
        violation.requirement,
        reply,
        sent=f"request {recorded.number}, {_describe_request(exchange, received)}{note}",
        hex_dump=_render_bytes(received, parsed, violation.offset),
        texts=(request, answer),
    )


# --- adapter calls ----------------------------------------------------------------------------------------------------


def _summarize_call(call: AdapterCall) -> str:
    """Return one line about an adapter call: the transport, the number of inferences, and the first inference."""
    first, count = _format_inference(call.inferences[0]), len(call.inferences)
    if count == 1:
        return f"over {call.transport}: {first}"
    order = "at the same time" if call.at_once else "one after another"
    return f"over {call.transport}, {count} inferences {order}; the first: {first}"


def _format_inference(inference: Inference) -> str:
    shown = [
        f"{one.name} {one.datatype} {format_shape(one.shape)} {inference.get_form(place)}"
        for place, one in enumerate(inference.inputs[:MAX_INPUTS])
    ]
    more = len(inference.inputs) - MAX_INPUTS
    inputs = "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])]) or "no inputs"
    parts = [
        f"model {inference.model}",
        "raw binary request" if inference.is_raw else "",
        inputs,
        _format_requested_outputs(inference),
    ]
    codings = [
        f"{name} {value}" for name, value in (("coding", inference.coding), ("accepts", inference.accepts)) if value
    ]
    return ", ".join([part for part in parts if part] + codings)


def _format_requested_outputs(inference: Inference) -> str:
    if inference.outputs is None:
        return f"all outputs {inference.all_outputs}" if inference.all_outputs else ""
    words = [
        " ".join([one.name, *([f"{one.classes} classes"] if one.classes else []), *([one.form] if one.form else [])])
        for one in inference.outputs
    ]
    return f"outputs {'; '.join(words)}"


# --- requests ---------------------------------------------------------------------------------------------------------


def _describe_request(exchange: Exchange, received: ClientRequest) -> str:
    """Return a short description of the received request."""
    if received.is_over_grpc:
        return summarize_call(exchange)
    header = received.header(INFERENCE_HEADER)
    parts = [f"{received.method} {received.path}", f"{len(received.body)} bytes"]
    return ", ".join([*parts, *([f"inference header {header}"] if header is not None else [])])


def _render_bytes(received: ClientRequest, parsed: ParsedRequest | None, offset: int | None) -> list[str]:
    """Return a hex dump around an offset of the body; the line that begins at the offset has a label.

    Without an offset, a gRPC message is shown from its beginning, because it has no readable text.
    """
    if parsed is None:
        rows = body_layout.format_hex_window(received.body, offset or 0, rows=MAX_MESSAGE_ROWS).splitlines()
        return rows if offset is None else label_dump_line(rows, offset, f"byte {offset} of the message")
    if offset is None:
        return []
    label = (
        f"byte {offset} of the tensor" if parsed.is_raw else body_layout.find_field_label(_build_layout(parsed), offset)
    )
    return label_dump_line(body_layout.format_hex_window(parsed.body, offset).splitlines(), offset, label)


def _build_layout(parsed: ParsedRequest) -> body_layout.Layout:
    placed = [(one, one.span) for one in parsed.inputs if one.span is not None]
    spans = tuple((one.name, one.datatype, *span) for one, span in placed)
    return body_layout.Layout(parsed.json_end, spans, parsed.body, tuple(one.index for one, _ in placed))


def _build_message(received: ClientRequest, parsed: ParsedRequest | None) -> Message:
    """Return the request with the spans of its JSON and tensors, unless its body is compressed, raw or gRPC."""
    message = Message(received.path, received.headers, received.body, received.method)
    if parsed is None or parsed.is_coded or parsed.is_raw:
        return message
    return replace(message, json_length=parsed.json_end, spans=tuple(_build_layout(parsed).spans))
