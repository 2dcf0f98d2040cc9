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
from pathlib import Path
from typing import Any

from conformance.judging.repeat_command import build_channel_expression, build_curl_headers, build_curl_options
from conformance.judging.reproduction import Reproduction, is_single_request
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.http_request import cut_segments
from conformance.transport.settings import Settings

FOLDER = "course"

# --- programs ---------------------------------------------------------------------------------------------------------


def build_programs(
    about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings
) -> dict[str, str]:
    """Return the programs that send the requests again, in shell and in Python, by file name."""
    exchange = steps[-1][0]
    is_call = Reply(exchange).is_over_grpc
    if is_single_request(steps):
        given = about, failure, exchange, settings
        if is_call:
            return {"repro.sh": _PYTHON_SHELL, "repro.py": _build_grpc_script(*given)}
        return {"repro.sh": _build_curl_script(*given), "repro.py": _build_http_script(*given)}
    make = build_grpc_program if is_call else build_http_program
    lines = [*_format_comment(about, failure, exchange), make(steps, settings, map_secret_variables(settings))]
    return {"repro.sh": _PYTHON_SHELL, "repro.py": "\n".join(lines)}


def map_secret_variables(settings: Settings) -> dict[str, str]:
    """Map each header whose value is secret to the environment variable that holds the value."""
    names = [name for name, _ in settings.headers if name.lower() != "host"]
    return {name: re.sub(r"\W", "_", name).upper() for name in names}


def _format_comment(about: Mapping[str, Any], failure: Failure, exchange: Exchange) -> list[str]:
    return [
        f"# {about['check']} [{about['row']}]: {failure.requirement} ({failure.level})",
        f"# Expected: {escape_text(failure.expected, 300)}",
        f"# Actual:   {escape_text(failure.actual, 300)}",
        *([f"# The suite sent the request with other options: {exchange.note}."] if exchange.note else []),
    ]


def _build_curl_script(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    message, secret = exchange.message, map_secret_variables(settings)
    command = ["curl", "-sS", "-i", "-o", "-", *build_curl_options(message, exchange.url)]
    command += build_curl_headers(message, secret)
    command += [part for name, value in settings.headers if name not in secret for part in ("-H", f"{name}: {value}")]
    words = [shlex.join(command), *[f'-H "{name}: ${{{variable}:?}}"' for name, variable in secret.items()]]
    words += ["--data-binary @request.bin"] if message.method == "POST" or message.body else []
    words.append('"$URL"')
    lines = [
        "#!/bin/sh",
        *_format_comment(about, failure, exchange),
        f'[ -n "$URL" ] || URL={shlex.quote(exchange.url)}',
        'cd "$(dirname "$0")" || exit 2',
        f"exec {' '.join(words)}",
    ]
    return "\n".join(lines)


_HTTP_PROGRAM = """
import os
import sys
from pathlib import Path

import httpx

body = Path(__file__).with_name("request.bin").read_bytes()
headers = {headers}
{secret}
answer = httpx.request({method!r}, os.environ.get("URL", {url!r}), headers=headers, content=body, timeout=60)
print(f"HTTP {{answer.status_code}}")
for name, value in answer.headers.multi_items():
    print(f"{{name}}: {{value}}")
sys.stdout.flush()
sys.stdout.buffer.write(b"\\n" + answer.content)
"""


def _build_http_script(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    message, secret = exchange.message, map_secret_variables(settings)
    shown = [(name, value) for name, value in settings.headers if name not in secret]
    is_plain = message.header("Accept-Encoding") is None
    plain = [("Accept-Encoding", "identity")] if is_plain else []  # by default httpx requests compression
    program = _HTTP_PROGRAM.format(
        headers=repr([*message.headers, *shown, *plain]),
        secret="".join(f"headers.append(({name!r}, os.environ[{v!r}]))\n" for name, v in secret.items()).rstrip("\n"),
        method=message.method,
        url=exchange.url,
    )
    return "\n".join([*_format_comment(about, failure, exchange), program.strip()])


_PYTHON_SHELL = """#!/bin/sh
exec "${PYTHON:-python3}" "$(dirname "$0")/repro.py"  # for gRPC, set PYTHON to an interpreter with grpcio
"""

_GRPC_PROGRAM = """
import os
from pathlib import Path

import grpc

body = Path(__file__).with_name("request.bin").read_bytes()
metadata = []
{secret}
address = os.environ.get("ADDRESS", {address!r})
channel = {channel}
try:
    print(channel.unary_unary({path!r})(body, timeout=60, metadata=metadata))
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


def _build_grpc_script(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    secret, address = map_secret_variables(settings), settings.grpc_address
    program = _GRPC_PROGRAM.format(
        secret="".join(f"metadata.append(({n.lower()!r}, os.environ[{v!r}]))\n" for n, v in secret.items()).rstrip(
            "\n"
        ),
        address=address.target,
        channel=build_channel_expression(address, settings).replace(json.dumps(address.target), "address"),
        path=exchange.message.path,
    )
    return "\n".join([*_format_comment(about, failure, exchange), program.strip()])


# --- sequences -------------------------------------------------------------------------------------------------------

_HTTP_REPRODUCTION = """
import contextlib
import http.client
import io
import os
import socket
import ssl
import time
from pathlib import Path
from threading import Barrier, Thread
from urllib.parse import urlsplit

COURSE = Path(__file__).with_name("course")
URL = urlsplit(os.environ.get("URL", {url!r}))
HEADERS = {headers!r}
{secret}
# The requests of one step are sent at the same time, each on its own connection. Steps with one request share a
# connection until the server closes it. The last step begins with the request whose answer is wrong.
STEPS = {steps!r}
# Requests before which a new connection is opened.
OPENS = {opens!r}
# Steps whose requests are sent on one connection in one write, before an answer is read.
PIPELINED = {pipelined!r}
# Offsets in a body at which a new TCP segment begins; negative ones count from the end of the head.
CUTS = {cuts!r}
TIMEOUT_S = {timeout!r}


class Stream(io.BufferedReader):
    # The bytes received on a connection. http.client drops bytes after an answer; here they begin the next answer.
    def makefile(self, *_):
        return self

    def close(self):
        pass


def connect():
    raw = socket.create_connection((URL.hostname, URL.port or (443 if URL.scheme == "https" else 80)), TIMEOUT_S)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = ssl._create_unverified_context().wrap_socket(raw) if URL.scheme == "https" else raw
    return connection, Stream(connection.makefile("rb", buffering=0))


def read(name):
    head, _, body = (COURSE / name).read_bytes().partition(b"\\r\\n\\r\\n")
    more = "".join(f"\\r\\n{{key}}: {{value}}" for key, value in HEADERS).encode()
    return head + more + b"\\r\\n\\r\\n", body


def send(connection, pieces):
    with contextlib.suppress(OSError):  # a server may answer before it has read everything
        for place, piece in enumerate(pieces):
            time.sleep(0.02 if place else 0)
            connection.sendall(piece)


def cut(name):
    head, body = read(name)
    edges = [0, *(len(head) + offset for offset in CUTS.get(name, [])), len(head + body)]
    return [(head + body)[start:end] for start, end in zip(edges, edges[1:])]


def receive(stream, name):
    answer = http.client.HTTPResponse(stream, method=read(name)[0].split(b" ")[0].decode())
    try:
        answer.begin()
        return answer, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return None, repr(error).encode()


def pipeline(names):
    connection, stream = connect()
    send(connection, [b"".join(b"".join(read(name)) for name in names)])
    return {{name: receive(stream, name) for name in names}}


def send_together(names):
    answers, start = {{}}, Barrier(len(names))

    def one(name):
        connection, stream = connect()
        start.wait()
        send(connection, cut(name))
        answers[name] = receive(stream, name)

    threads = [Thread(target=one, args=(name,)) for name in names]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return answers


kept = None
for names in STEPS:
    if len(names) > 1:
        answers = pipeline(sorted(names)) if names in PIPELINED else send_together(names)
    else:
        kept = connect() if kept is None or names[0] in OPENS else kept
        send(kept[0], cut(names[0]))
        answers = {{names[0]: receive(kept[1], names[0])}}
        answer = answers[names[0]][0]
        kept = None if answer is None or answer.will_close else kept
    for name in sorted(names):
        answer, body = answers[name]
        line = read(name)[0].splitlines()[0].decode()
        outcome = f"HTTP {{answer.status}}, {{len(body)}} bytes" if answer else "no whole answer: " + body.decode()
        print(f"{{name}}: {{line}}: {{outcome}}")

answer, body = answers[STEPS[-1][0]]
print(*[f"{{key}}: {{value}}" for key, value in (answer.getheaders() if answer else ())], "", sep="\\n", flush=True)
os.write(1, body + b"\\n")
"""

_GRPC_REPRODUCTION = """
import os
from pathlib import Path

import grpc

COURSE = Path(__file__).with_name("course")
metadata = []
{secret}
address = os.environ.get("ADDRESS", {address!r})
channel = {channel}
# The calls of one step are made at the same time. Each step maps names of message files to methods.
STEPS = {steps!r}

for step in STEPS:
    calls = {{
        name: channel.unary_unary(path).future((COURSE / name).read_bytes(), timeout=60, metadata=metadata)
        for name, path in step.items()
    }}
    for name, call in calls.items():
        try:
            answer = call.result()
            print(f"{{name}}: OK, {{len(answer)}} bytes")
        except grpc.RpcError as error:
            answer = f"{{error.code().name}} {{error.details()}}"
            print(f"{{name}}: {{answer}}")
        if call is next(iter(calls.values())):
            first = answer
print(first)
"""


def write(folder: Path, steps: Reproduction, settings: Settings) -> None:
    """Write the requests of a sequence into the folder `course` in the evidence folder of a row."""
    (folder / FOLDER).mkdir(exist_ok=True)
    for name, exchange in _iterate_named_exchanges(steps):
        data = exchange.message.body if Reply(exchange).is_over_grpc else _encode_request(exchange, settings)
        (folder / FOLDER / name).write_bytes(data)


def build_http_program(steps: Reproduction, settings: Settings, secret: Mapping[str, str]) -> str:
    """Return a program that sends a sequence of requests; `secret` maps secret headers to environment variables."""
    names = _choose_file_names(steps)
    return _HTTP_REPRODUCTION.format(
        url=settings.url,
        headers=[(name, value) for name, value in settings.headers if name not in secret and name.lower() != "host"],
        secret="\n".join(f"HEADERS.append(({name!r}, os.environ[{v!r}]))" for name, v in secret.items()),
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
    ).strip()


def build_grpc_program(steps: Reproduction, settings: Settings, secret: Mapping[str, str]) -> str:
    """Return a program that makes a sequence of gRPC calls; see `build_http_program` for `secret`."""
    names, address = _choose_file_names(steps), settings.grpc_address
    paths = {name: exchange.message.path for name, exchange in _iterate_named_exchanges(steps)}
    return _GRPC_REPRODUCTION.format(
        secret="\n".join(f"metadata.append(({name.lower()!r}, os.environ[{v!r}]))" for name, v in secret.items()),
        address=address.target,
        channel=build_channel_expression(address, settings).replace(f'"{address.target}"', "address"),
        steps=[{name: paths[name] for name in step} for step in names],
    ).strip()


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
