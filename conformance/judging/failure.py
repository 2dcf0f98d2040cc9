"""Turns an unmet requirement into the block that a user reads: claim, source, bytes, and how to send it again.

Everything that a server sent passes `text.safe`; the values of headers that the user gave never appear.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Collection

from conformance.expect.unmet import UnmetError
from conformance.judging import grpc_call
from conformance.judging.exchange_rendering import render_exchange
from conformance.judging.message_rendering import render_answer, render_request
from conformance.spec import ledger
from conformance.spec.result import CheckResult, Failure
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide, hide_bytes
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.http_client import USER_AGENT
from conformance.transport.settings import Settings
from conformance.wire import body_layout
from conformance.wire.request import INFERENCE_HEADER, Message

# A body up to this many bytes is part of the command itself; a longer one has to be a file.
MAX_INLINE_BYTES = 1024
# From this size on curl asks for leave to send (RFC 9110 10.1.1), which no other client does.
EXPECT_CONTINUE_BYTES = 1024 * 1024
LINE_WIDTH = 118
MAX_MESSAGE_ROWS = 8  # of eight bytes, of a gRPC message in which no place is known
MAX_JSON_CHARS = 500  # characters of a request, and of an answer
MAX_COMMAND_CHARS = 16 * 1024  # characters; more than any body that is part of it makes


def describe(unmet: UnmetError, requirement: str, settings: Settings, body_file: str | None = None) -> Failure:
    """Return the failure that an `UnmetError` stands for.

    Args:
        unmet: what the body raised.
        requirement: the ledger id that it is about.
        settings: of the target, for what must not be shown.
        body_file: where the request's body was written, for the command that repeats it.
    """
    values = settings.secrets
    entry = ledger.get_requirement(requirement)
    reply = unmet.reply
    return Failure(
        requirement,
        str(entry.level),
        entry.statement,
        entry.source,
        escape_text(hide(unmet.expected, values), 600),
        escape_text(hide(unmet.actual, values), 600),
        _sent(reply.exchange) if reply else "",
        _bytes(reply, unmet.offset, values) if reply else [],
        escape_text(build_repeat_command(reply.exchange, settings, body_file), MAX_COMMAND_CHARS) if reply else "",
        [source.url for source in entry.sources],
        escape_text(hide(render_request(reply.exchange), values), MAX_JSON_CHARS) if reply else "",
        escape_text(hide(render_answer(reply), values), MAX_JSON_CHARS) if reply else "",
        render_exchange(reply, values) if reply else None,
    )


def format_block(result: CheckResult, rerun: str, *, links: bool = True) -> list[str]:
    """Return the lines that the terminal shows for a result with a failure.

    Args:
        result: what came of a row.
        rerun: the command that runs the suite again.
        links: whether it is said where the requirement stands and what explains it.
    """
    failure = result.failure
    head = f"{result.outcome.upper()}  {result.label}"
    if failure is None:
        return [head, f"      {result.claim}", _line("Because", result.message)]
    right = f"{failure.level}  {failure.requirement}"
    lines = [f"{head}{right:>{max(len(right) + 2, LINE_WIDTH - len(head))}}", f"      {result.claim}"]
    lines += [_line("Requires", failure.statement), _line("Source", failure.source)]
    if links:
        lines += [*(_line("", url) for url in failure.source_urls), _explain_line(failure.requirement)]
    lines += [_line("Asked", failure.asked)] if failure.asked else []
    lines += [_line("Sent", failure.sent)] if failure.sent else []
    lines += [_line("Expected", failure.expected), _line("Actual", failure.actual)]
    lines += [f"      {row}" for row in failure.bytes]
    lines += [_line("Repeat", failure.repeat)] if failure.repeat else []
    return [*lines, _line("Rerun", f"{rerun} -k {result.id}")]


def _explain_line(requirement: str) -> str:
    return _line("Explain", ledger.get_requirement(requirement).explain)


def _line(name: str, text: str) -> str:
    return f"      {name:<9} {text}"


def _bytes(reply: Reply, offset: int | None, values: Collection[str]) -> list[str]:
    """Return hexadecimal rows around an offset of the answer's body, the row that begins there with its field named.

    Without an offset an answer over gRPC, which nobody can read as it is, is shown from its beginning.
    """
    if offset is None:
        body = hide_bytes(reply.body, values) if reply.is_over_grpc else b""
        return body_layout.format_hex_window(body, 0, rows=MAX_MESSAGE_ROWS).splitlines()
    label = escape_text(hide(body_layout.find_label(reply.answer, offset), values))
    rows = body_layout.format_hex_window(hide_bytes(reply.body, values), offset).splitlines()
    return [f"{row}   <- {label}" if int(row.split()[0], 16) == offset else row for row in rows]


def is_long(message: Message) -> bool:
    """Say whether a body is too long to be part of a command."""
    return len(message.body) > MAX_INLINE_BYTES


def build_repeat_command(exchange: Exchange, settings: Settings, body_file: str | None = None) -> str:
    """Return a shell command that sends the request again; empty for what no program sends."""
    if exchange.as_octets:
        return ""
    if Reply(exchange).is_over_grpc:
        return grpc_call.build_repeat_command(exchange, settings, body_file)
    return build_curl_command(exchange, settings, body_file)


def _sent(exchange: Exchange) -> str:
    message = exchange.message
    if Reply(exchange).is_over_grpc:
        return escape_text(grpc_call.summarize_call(exchange), 600)
    parts = [f"{message.method} {message.path}", f"{len(message.body)} bytes", *_tensors(message)]
    header = message.header(INFERENCE_HEADER)
    if header is not None:
        parts.append("raw binary request" if header == "0" else f"inference header {escape_text(header, 40)}")
    return escape_text(", ".join([*parts, *([exchange.note] if exchange.note else [])]), 600)


def _tensors(message: Message) -> list[str]:
    """Return one phrase for inputs and one for requested outputs, as far as the JSON says it."""
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


def build_curl_command(exchange: Exchange, settings: Settings, body_file: str | None = None) -> str:
    """Return a shell command that sends the request again and prints the answer with its headers."""
    message = exchange.message
    shown = [f"{name}: {value if name.lower() == 'host' else '...'}" for name, value in settings.headers]
    names = [name for name, _ in settings.headers]
    command = ["curl", "-sS", "-i", "-o", "-", "-X", message.method, *build_curl_headers(message, names)]
    command += [part for header in shown for part in ("-H", header)]
    url = shlex.quote(exchange.url)
    if not message.body:  # with a Content-Length of 0, where a request can have a body
        return f"{shlex.join([*command, *(['--data-binary', ''] if message.method == 'POST' else [])])} {url}"
    if body_file is not None:
        return f"{shlex.join([*command, '--data-binary', '@' + body_file])} {url}"
    if is_long(message):
        return f"(a body of {len(message.body)} bytes: --conformance-evidence DIR writes it to a file for curl)"
    if all(0x20 <= byte < 0x7F for byte in message.body):
        return f"{shlex.join([*command, '--data-binary', message.body.decode()])} {url}"
    encoded = b64encode(message.body).decode()
    return f"echo {encoded} | base64 -d | {shlex.join([*command, '--data-binary', '@-'])} {url}"


def build_curl_headers(message: Message, named: Collection[str]) -> list[str]:
    """Return curl's -H options for a message.

    Those are among them that the suite sends with each, and those that keep curl from adding headers of its own.

    Args:
        message: what is sent.
        named: names of further headers that the command gives.
    """
    options = [part for name, value in message.headers for part in ("-H", f"{name}: {value}" if value else f"{name};")]
    given = {name.lower() for name in (*named, *(name for name, _ in message.headers))}
    usual = (("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"))
    options += [part for name, value in usual if name.lower() not in given for part in ("-H", f"{name}: {value}")]
    for name, is_added in (
        ("Content-Type", message.method == "POST"),
        ("Expect", len(message.body) >= EXPECT_CONTINUE_BYTES),
    ):
        if is_added and name.lower() not in given:
            options += ["-H", f"{name}:"]
    return options
