"""Describes an unmet requirement for users: claim, source, bytes, and a command that repeats the request.

All text from a peer passes through `escape_text`. Values of headers that the user supplied never appear.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Protocol

from conformance.expect.unmet import UnmetError
from conformance.judging.message_rendering import render_answer, render_exchange, render_request, summarize_call
from conformance.spec import ledger
from conformance.spec.result import CheckResult, Failure
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.settings import Settings
from conformance.wire import body_layout
from conformance.wire.request import INFERENCE_HEADER, Message
from conformance.wire.response import Output
from conformance.wire.tensor import find_first_difference

LINE_WIDTH = 118
MAX_MESSAGE_ROWS = 8  # rows of eight bytes of a gRPC message without a known offset
MAX_EARLIER_REQUESTS = 4  # on the connection of a request
MAX_TEXT_CHARS = 600  # characters of a line
MAX_JSON_CHARS = 500  # characters of a request or an answer
MAX_COMMAND_CHARS = 16 * 1024  # characters; longer than any command with an inline body


class ExpectedAndActual(Protocol):
    """The expected and the actual value of a failure: an `UnmetError`, or a `Violation` of a watched client."""

    @property
    def expected(self) -> str:
        """The expected value or behavior."""

    @property
    def actual(self) -> str:
        """The actual value or behavior."""


def build_failure(
    unmet: ExpectedAndActual,
    requirement: str,
    reply: Reply | None,
    *,
    sent: str = "",
    hex_dump: Sequence[str] = (),
    texts: tuple[str, str] | None = None,
    repeat: str = "",
    adapter_call: str = "",
    ends_server: bool = False,
    wrong_values: bool = False,
    secrets: Collection[str] = (),
) -> Failure:
    """Return the `Failure` of a server or a client, with all texts escaped and without secrets.

    Args:
        unmet: the expected and the actual value or behavior.
        requirement: the ledger id of the unmet requirement.
        reply: the exchange that shows the failure, or None.
        sent: a short description of the request.
        hex_dump: the lines of a hex dump around the first wrong byte.
        texts: the JSON of the request and of the answer; None takes both from the reply.
        repeat: the command that sends the request again.
        adapter_call: a description of the adapter call that made the client send the request; empty for a server.
        ends_server: whether the request ended the server.
        wrong_values: whether the answer is a success and has a readable tensor with wrong values.
        secrets: texts that must not be shown.
    """
    entry = ledger.get_requirement(requirement)
    if texts is None:
        texts = (render_request(reply.exchange), render_answer(reply)) if reply else ("", "")
    request, answer = (escape_text(hide(text, secrets), MAX_JSON_CHARS) for text in texts)
    return Failure(
        requirement=requirement,
        level=str(entry.level),
        statement=entry.statement,
        source=entry.source,
        expected=escape_text(hide(unmet.expected, secrets), MAX_TEXT_CHARS),
        actual=escape_text(hide(unmet.actual, secrets), MAX_TEXT_CHARS),
        sent=escape_text(sent, MAX_TEXT_CHARS),
        bytes=list(hex_dump),
        repeat=escape_text(repeat, MAX_COMMAND_CHARS),
        source_urls=[source.url for source in entry.sources],
        request=request,
        answer=answer,
        evidence=render_exchange(reply, secrets) if reply else None,
        asked=escape_text(adapter_call, MAX_TEXT_CHARS),
        ends_server=ends_server,
        wrong_values=wrong_values,
    )


def describe(
    unmet: UnmetError, requirement: str, settings: Settings, repeat: str = "", exchanges: Sequence[Exchange] = ()
) -> Failure:
    """Return the `Failure` for an `UnmetError` of a server.

    Args:
        unmet: the error raised by the body of the check.
        requirement: the ledger id of the unmet requirement.
        settings: the settings of the target, with the secrets that must not be shown.
        repeat: the command that sends the request again; empty if there is none.
        exchanges: the exchanges of the row, in order.
    """
    reply, secrets = unmet.reply, settings.secrets
    if reply is None:
        return build_failure(unmet, requirement, None, ends_server=unmet.ends_server, secrets=secrets)
    return build_failure(
        unmet,
        requirement,
        reply,
        sent=_describe_request(reply.exchange) + _describe_earlier_requests(reply.exchange, exchanges),
        hex_dump=_render_hex_dump(reply, unmet.offset, secrets),
        repeat=repeat,
        ends_server=unmet.ends_server,
        wrong_values=_has_wrong_values(unmet, reply),
        secrets=secrets,
    )


def _has_wrong_values(unmet: UnmetError, reply: Reply) -> bool:
    output = reply.answer.output(unmet.tensor.name) if unmet.tensor else None
    return output is not None and output.array is not None


def _describe_request(exchange: Exchange) -> str:
    message = exchange.message
    if Reply(exchange).is_over_grpc:
        return summarize_call(exchange)
    parts = [f"{message.method} {message.path}", f"{len(message.body)} bytes", *_describe_tensors(message)]
    header = message.header(INFERENCE_HEADER)
    if header is not None:
        parts.append("raw binary request" if header == "0" else f"inference header {escape_text(header, 40)}")
    return ", ".join([*parts, *([exchange.note] if exchange.note else [])])


def _describe_earlier_requests(exchange: Exchange, exchanges: Sequence[Exchange]) -> str:
    """Return a suffix that names the requests before an exchange on its connection, with their answers."""
    before = [
        f"{one.message.method} {one.message.path} ({Reply(one).status_line})"
        for one in exchanges
        if one.connection == exchange.connection and one.number < exchange.number
    ]
    if not exchange.connection or not before:
        return ""
    shown = before[-MAX_EARLIER_REQUESTS:]
    others = f"{len(before) - len(shown)} more, " if len(before) > len(shown) else ""
    return f", after {others}{', '.join(shown)}"


def _describe_tensors(message: Message) -> list[str]:
    """Return a phrase for the inputs and one for the requested outputs; empty if the JSON cannot be read."""
    try:
        document = json.loads(message.body[: message.json_length])
        inputs = [
            f"{item['name']} {item['datatype']} {item['shape']} {'json' if 'data' in item else 'binary'}"
            for item in document["inputs"]
        ]
        outputs = [f"{item['name']} {json.dumps(item.get('parameters', {}))}" for item in document.get("outputs", [])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [f"inputs {'; '.join(inputs)}", *([f"outputs {'; '.join(outputs)}"] if outputs else [])]


# --- bytes ------------------------------------------------------------------------------------------------------------


def _render_hex_dump(reply: Reply, offset: int | None, secrets: Collection[str]) -> list[str]:
    """Return a hex dump of the answer around an offset; without an offset, dump the beginning of a gRPC message."""
    if offset is not None:
        return render_answer_bytes(reply, offset, secrets)
    body = hide_bytes(reply.body, secrets) if reply.is_over_grpc else b""
    return body_layout.format_hex_window(body, 0, rows=MAX_MESSAGE_ROWS).splitlines()


def render_answer_bytes(reply: Reply, offset: int, secrets: Collection[str] = ()) -> list[str]:
    """Return a hex dump around an offset of the answer's body, with the name of the field that begins at the offset."""
    label = hide(body_layout.find_field_label(reply.answer, offset), secrets)
    rows = body_layout.format_hex_window(hide_bytes(reply.body, secrets), offset).splitlines()
    return label_dump_line(rows, offset, label)


def label_dump_line(lines: Sequence[str], offset: int, label: str) -> list[str]:
    """Append a label to the line of a hex dump that begins at an offset."""
    return [f"{line}   <- {escape_text(label)}" if int(line.split()[0], 16) == offset else line for line in lines]


# --- terminal ---------------------------------------------------------------------------------------------------------


def format_block(result: CheckResult, rerun: str) -> list[str]:
    """Return the lines with which the terminal shows a result that did not pass; `rerun` runs the suite again."""
    failure = result.failure
    head = f"{result.outcome.upper()}  {result.label}"
    if failure is None:
        return [head, f"      {result.claim}", _format_labeled_line("Because", result.message)]
    right = f"{failure.level}  {failure.requirement}"
    lines = [f"{head}{right:>{max(len(right) + 2, LINE_WIDTH - len(head))}}", f"      {result.claim}"]
    lines += [_format_labeled_line("Requires", failure.statement), _format_labeled_line("Source", failure.source)]
    lines += [_format_labeled_line("", url) for url in failure.source_urls]
    lines += [_format_labeled_line("Explain", ledger.get_requirement(failure.requirement).explain)]
    lines += [_format_labeled_line("Asked", failure.asked)] if failure.asked else []
    lines += [_format_labeled_line("Sent", failure.sent)] if failure.sent else []
    lines += [_format_labeled_line("Expected", failure.expected), _format_labeled_line("Actual", failure.actual)]
    lines += [f"      {row}" for row in failure.bytes]
    lines += [_format_labeled_line("Repeat", failure.repeat)] if failure.repeat else []
    return [*lines, _format_labeled_line("Rerun", f"{rerun} -k {result.id}")]


def _format_labeled_line(name: str, text: str) -> str:
    return f"      {name:<9} {text}"


# --- earlier answers --------------------------------------------------------------------------------------------------

MAX_EARLIER_ANSWERS = 8  # earlier answers to compare with


def describe_earlier_answer(unmet: UnmetError, exchanges: Sequence[Exchange]) -> str:
    """Return a message suffix that names an earlier answer with the same wrong tensor; empty if there is none.

    Args:
        unmet: the error; its `tensor` is None if no tensor is wrong.
        exchanges: the exchanges of the row, in order; only those before the failing exchange are compared.
    """
    if unmet.tensor is None or unmet.reply is None:
        return ""
    name, wrong = unmet.tensor.name, unmet.reply.answer.output(unmet.tensor.name)
    number = unmet.reply.exchange.number
    own = unmet.reply.exchange.message.body  # a repeated request may get the same wrong answer
    before = [one for one in exchanges if one.number < number and one.status and one.message.body != own]
    for exchange in reversed(before[-MAX_EARLIER_ANSWERS:]):
        if wrong is not None and _is_same_tensor(wrong, Reply(exchange).answer.output(name)):
            behind = number - exchange.number
            return f"; it is the tensor of the answer {'before' if behind == 1 else f'{behind} requests before'}"
    return ""


def _is_same_tensor(one: Output, other: Output | None) -> bool:
    if other is None or one.array is None or other.array is None or not one.array.size:
        return False
    if (one.datatype, one.shape) != (other.datatype, other.shape):
        return False
    return find_first_difference(one.array, other.array, one.datatype) is None
