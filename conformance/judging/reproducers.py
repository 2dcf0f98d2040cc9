"""Builds programs that reproduce a failure by sending one request, or a sequence of several requests.

A sequence contains earlier and concurrent requests, each with its send options. Each request is a file in the folder
`course` beside the program, with its head and body as sent, but without headers that the user supplied. The program
adds these headers, and reads the values of secret headers from the environment.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.judging.repeat_command import build_channel_expression, build_curl_headers, build_curl_options
from conformance.judging.reproduction import Reproduction, is_single_request
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.http_request import cut_segments
from conformance.transport.settings import Settings

if TYPE_CHECKING:
    import jinja2

FOLDER = "course"

# --- programs ---------------------------------------------------------------------------------------------------------

_PYTHON_SHELL = """#!/bin/sh
exec "${PYTHON:-python3}" "$(dirname "$0")/repro.py"  # for gRPC, set PYTHON to an interpreter with grpcio
"""


def build_programs(
    about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings
) -> dict[str, str]:
    """Return the programs that send the requests again, in shell and in Python, by file name."""
    exchange, secret = steps[-1][0], map_secret_variables(settings)
    comment = _format_comment(about, failure, exchange)
    is_call = Reply(exchange).is_over_grpc
    if is_single_request(steps) and not is_call:
        return {
            "repro.sh": _build_curl_script(exchange, settings, secret, comment),
            "repro.py": _build_http_script(exchange, settings, secret, comment),
        }
    if is_single_request(steps):
        path, channel = exchange.message.path, _describe_channel(settings)
        program = _render("grpc_call.py", comment=comment, secret=secret, path=path, **channel)
    else:
        program = (build_grpc_program if is_call else build_http_program)(steps, settings, secret, comment)
    return {"repro.sh": _PYTHON_SHELL, "repro.py": program}


def map_secret_variables(settings: Settings) -> dict[str, str]:
    """Map each header whose value is secret to the environment variable that holds the value."""
    names = [name for name, _ in settings.headers if name.lower() != "host"]
    return {name: re.sub(r"\W", "_", name).upper() for name in names}


def _format_comment(about: Mapping[str, Any], failure: Failure, exchange: Exchange) -> str:
    lines = [
        f"# {about['check']} [{about['row']}]: {failure.requirement} ({failure.level})",
        f"# Expected: {escape_text(failure.expected, 300)}",
        f"# Actual:   {escape_text(failure.actual, 300)}",
        *([f"# The suite sent the request with other options: {exchange.note}."] if exchange.note else []),
    ]
    return "\n".join(lines)


def _build_curl_script(exchange: Exchange, settings: Settings, secret: Mapping[str, str], comment: str) -> str:
    message = exchange.message
    command = ["curl", "-sS", "-i", "-o", "-", *build_curl_options(message, exchange.url)]
    command += build_curl_headers(message, secret)
    command += [part for name, value in settings.headers if name not in secret for part in ("-H", f"{name}: {value}")]
    return _render(
        "http_request.sh",
        comment=comment,
        command=shlex.join(command),
        secret=secret,
        has_body=message.method == "POST" or bool(message.body),
        url=exchange.url,
    )


def _build_http_script(exchange: Exchange, settings: Settings, secret: Mapping[str, str], comment: str) -> str:
    message = exchange.message
    shown = [(name, value) for name, value in settings.headers if name not in secret]
    is_plain = message.header("Accept-Encoding") is None
    plain = [("Accept-Encoding", "identity")] if is_plain else []  # by default httpx requests compression
    return _render(
        "http_request.py",
        comment=comment,
        headers=[*message.headers, *shown, *plain],
        secret=secret,
        method=message.method,
        url=exchange.url,
    )


def _describe_channel(settings: Settings) -> dict[str, str]:
    """Return the address of a gRPC server, and a Python expression that connects to the variable `address`."""
    target = settings.grpc_address.target
    channel = build_channel_expression(settings.grpc_address, settings)
    return {"address": target, "channel": channel.replace(json.dumps(target), "address")}


def _render(name: str, **values: Any) -> str:
    return _load_templates().get_template(f"{name}.jinja").render(values).strip()


@cache
def _load_templates() -> jinja2.Environment:
    import jinja2  # only a failed row needs it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("conformance.judging"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the programs are no HTML; `repr` and `quote` escape what they contain
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"repr": repr, "quote": shlex.quote}
    return environment


# --- sequences -------------------------------------------------------------------------------------------------------


def write(folder: Path, steps: Reproduction, settings: Settings) -> None:
    """Write the requests of a sequence into the folder `course` in the evidence folder of a row."""
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, exchange in _iterate_named_exchanges(steps):
        data = exchange.message.body if Reply(exchange).is_over_grpc else _encode_request(exchange, settings)
        (folder / FOLDER / name).write_bytes(data)


def build_http_program(steps: Reproduction, settings: Settings, secret: Mapping[str, str], comment: str = "") -> str:
    """Return a program that sends a sequence of requests; `secret` maps secret headers to environment variables."""
    names = _choose_file_names(steps)
    return _render(
        "http_sequence.py",
        comment=comment,
        url=settings.url,
        headers=[(name, value) for name, value in settings.headers if name not in secret and name.lower() != "host"],
        secret=secret,
        steps=names,
        opens=_find_requests_on_new_connections(steps),
        pipelined=[
            own for own, step in zip(names, steps, strict=True) if len(step) > 1 and step[0].send_options.pipelined
        ],
        timeout=settings.timeout,
        cuts={
            name: list(exchange.send_options.segments)
            for name, exchange in _iterate_named_exchanges(steps)
            if exchange.send_options.segments
        },
    )


def build_grpc_program(steps: Reproduction, settings: Settings, secret: Mapping[str, str], comment: str = "") -> str:
    """Return a program that makes a sequence of gRPC calls; see `build_http_program` for `secret`."""
    paths = {name: exchange.message.path for name, exchange in _iterate_named_exchanges(steps)}
    named_steps = [{name: paths[name] for name in step} for step in _choose_file_names(steps)]
    return _render("grpc_sequence.py", comment=comment, secret=secret, steps=named_steps, **_describe_channel(settings))


def _choose_file_names(steps: Reproduction) -> list[list[str]]:
    """Return a file name for each exchange: the number of its step, and its position in the step in sending order."""
    return [
        [
            f"{place:02}" + (f"-{1 + sum(other.number < one.number for other in step):02}" if len(step) > 1 else "")
            for one in step
        ]
        for place, step in enumerate(steps, start=1)
    ]


def _iterate_named_exchanges(steps: Reproduction) -> Iterator[tuple[str, Exchange]]:
    for names, step in zip(_choose_file_names(steps), steps, strict=True):
        yield from zip(names, step, strict=True)


def _find_requests_on_new_connections(steps: Reproduction) -> list[str]:
    """Return the names of non-concurrent requests that use another connection than the previous such request."""
    alone = [
        (names[0], step[0].connection)
        for names, step in zip(_choose_file_names(steps), steps, strict=True)
        if len(step) == 1
    ]
    before = [0, *(connection for _, connection in alone)]
    return [name for (name, connection), last in zip(alone, before, strict=False) if connection != last or not last]


def _encode_request(exchange: Exchange, settings: Settings) -> bytes:
    """Return the bytes of a request as sent, without the user's headers except Host, which is not secret."""
    host = tuple((name, value) for name, value in settings.headers if name.lower() == "host")
    return b"".join(cut_segments(replace(settings, headers=host), exchange.message, exchange.send_options))
