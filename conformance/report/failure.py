"""Turns an unmet requirement into the block that a user reads: claim, source, bytes, and how to send it again.

Everything that a server sent passes `text.safe`; the values of headers that the user gave never appear.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Collection

from conformance import ledger
from conformance.outcome import Unmet
from conformance.report.result import CheckResult, Failure
from conformance.target.exchange import Exchange, Reply
from conformance.text import safe
from conformance.wire import annotate
from conformance.wire.request import INFERENCE_HEADER, Message

# A body up to this many bytes is part of the command itself; a longer one has to be a file.
INLINE_LIMIT = 4096
RULER = 118


def describe(unmet: Unmet, requirement: str, secrets: Collection[str], body_file: str | None = None) -> Failure:
    """Return the failure that an `Unmet` stands for.

    Args:
        unmet: what the body raised.
        requirement: the ledger id that it is about.
        secrets: names of headers whose values are not shown, in lower case.
        body_file: where the request's body was written, for the command that repeats it.
    """
    entry = ledger.requirement(requirement)
    reply = unmet.reply
    return Failure(
        requirement,
        str(entry.level),
        entry.statement,
        "; ".join(map(str, entry.sources)),
        safe(unmet.expected, 600),
        safe(unmet.actual, 600),
        _sent(reply.exchange) if reply else "",
        _bytes(reply, unmet.offset) if reply and unmet.offset is not None else [],
        curl(reply.exchange, secrets, body_file) if reply else "",
    )


def block(result: CheckResult, rerun: str) -> list[str]:
    """Return the lines that the terminal shows for a result with a failure."""
    failure = result.failure
    head = f"{result.outcome.upper()}  {result.label}"
    if failure is None:
        return [head, f"      {result.claim}", _line("Because", result.message)]
    right = f"{failure.level}  {failure.requirement}"
    lines = [f"{head}{right:>{max(len(right) + 2, RULER - len(head))}}", f"      {result.claim}"]
    lines += [_line("Requires", failure.statement), _line("Source", failure.source)]
    lines += [_line("Sent", failure.sent)] if failure.sent else []
    lines += [_line("Expected", failure.expected), _line("Actual", failure.actual)]
    lines += [f"      {row}" for row in failure.bytes]
    lines += [_line("Repeat", failure.repeat)] if failure.repeat else []
    return [*lines, _line("Rerun", f"{rerun} -k {result.name}")]


def _line(name: str, text: str) -> str:
    return f"      {name:<9} {text}"


def _bytes(reply: Reply, offset: int) -> list[str]:
    """Return hexadecimal rows around an offset of the answer's body, the row that begins there with its field named."""
    label = safe(annotate.label(reply.answer, offset))
    rows = annotate.hex_window(reply.body, offset).splitlines()
    return [f"{row}   <- {label}" if int(row.split()[0], 16) == offset else row for row in rows]


def _sent(exchange: Exchange) -> str:
    message = exchange.message
    parts = [f"{message.method} {message.path}", f"{len(message.body)} bytes", *_tensors(message)]
    header = message.header(INFERENCE_HEADER)
    if header is not None:
        parts.append("raw binary request" if header == "0" else f"inference header {safe(header, 40)}")
    return safe(", ".join([*parts, *([exchange.note] if exchange.note else [])]), 600)


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


def curl(exchange: Exchange, secrets: Collection[str], body_file: str | None = None) -> str:
    """Return a shell command that sends the request again and prints the answer with its headers."""
    message = exchange.message
    command = ["curl", "-sS", "-i", "-o", "-", "-X", message.method]
    for name, value in message.headers:
        command += ["-H", f"{name}: {'...' if name.lower() in secrets else value}"]
    command += [part for name in sorted(secrets) for part in ("-H", f"{name}: ...")]
    url = shlex.quote(exchange.url)
    if not message.body:
        return f"{shlex.join(command)} {url}"
    if body_file is not None:
        return f"{shlex.join([*command, '--data-binary', '@' + body_file])} {url}"
    if len(message.body) > INLINE_LIMIT:
        return f"(a body of {len(message.body)} bytes: --conformance-evidence DIR writes it to a file for curl)"
    if all(0x20 <= byte < 0x7F for byte in message.body):
        return f"{shlex.join([*command, '--data-binary', message.body.decode()])} {url}"
    encoded = b64encode(message.body).decode()
    return f"echo {encoded} | base64 -d | {shlex.join([*command, '--data-binary', '@-'])} {url}"
