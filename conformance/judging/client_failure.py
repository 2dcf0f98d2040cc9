"""Turns what a client did wrong into what a user reads: what was asked, the request, the answer, the wrong bytes."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.clients.inference import Inference
from conformance.clients.noted import Asked
from conformance.expect.unmet import Unmet
from conformance.judging.shown_exchange import shown_exchange
from conformance.judging.shown_messages import answer_text, request_json
from conformance.terms import ledger
from conformance.terms.result import Failure
from conformance.terms.text import safe, shown_shape
from conformance.transport.exchange import Reply
from conformance.wire import annotate
from conformance.wire.annotate import Layout

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
    entry, reply = ledger.requirement(requirement), unmet.reply
    return Failure(
        requirement,
        str(entry.level),
        entry.statement,
        entry.source,
        safe(unmet.expected, LONGEST),
        safe(unmet.actual, LONGEST),
        safe(in_short(asked[-1]), LONGEST) if asked else "",
        _bytes(reply, unmet.offset, is_of_request=requirement.startswith(SENDING)) if reply else [],
        "",
        [source.url for source in entry.sources],
        safe(_request(reply), LONGEST_JSON) if reply else "",
        safe(answer_text(reply), LONGEST_JSON) if reply else "",
        shown_exchange(reply, ()) if reply else None,
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


def _request(reply: Reply) -> str:
    """Return the request line, the header that tells JSON and binary data apart, and the JSON."""
    message = reply.exchange.message
    return " ".join([f"{message.method} {message.path}", request_json(reply.exchange)])


def _bytes(reply: Reply, offset: int | None, *, is_of_request: bool) -> list[str]:
    """Return hexadecimal rows around an offset of the request's body, or of the answer's, with its field named."""
    if offset is None:
        return []
    message = reply.exchange.message
    body = message.body if is_of_request else reply.body
    layout = Layout(message.json_length, message.spans, message.body) if is_of_request else Layout.of(reply.answer)
    label = f"{'request' if is_of_request else 'answer'}, {safe(annotate.label(layout, offset))}"
    rows = annotate.hex_window(body, offset).splitlines()
    return [f"{row}   <- {label}" if int(row.split()[0], 16) == offset else row for row in rows]
