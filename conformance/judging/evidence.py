"""The evidence of one failed row, as files: what was sent, what came, and two programs that send it again.

CHECK-ROW/
  request.bin response.bin     the bodies; of a very long answer head and tail, and its length and digest
  request.txt response.txt     request line or status, and headers
  bytes.txt                    where the first wrong byte is, annotated
  repro.sh repro.py            curl, and httpx; a header that is secret is taken from the environment. Over gRPC grpcio
  course/                      where one request does not show it: what was sent before it on its connection, and what
                               was in flight with it; the programs send all of it, in its manner
  check.json                   which check and row, for `oip-conformance replay`
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.judging import grpc_call, reproducers
from conformance.judging.body_files import write_body
from conformance.judging.failure import build_curl_headers
from conformance.judging.reproduction import Reproduction, is_single_request
from conformance.spec.result import Failure
from conformance.spec.text import escape_text
from conformance.transport import credentials as hidden
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.settings import Settings
from conformance.wire.grpc_request import parse_request


def build_folder_name(check: str, row: str) -> str:
    """Return the name of a row's folder."""
    return re.sub(r"[^\w.\-]+", "_", f"{check}-{row}" if row else check)


def write(folder: Path, about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings) -> None:
    """Write the evidence of one row.

    Args:
        folder: of the row; made if need be.
        about: what `replay` has to know.
        failure: what is not met.
        steps: that lead to the exchange which shows it, the first of the last step.
        settings: of the target, for what must not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    exchange = steps[-1][0]
    message, secrets = exchange.message, settings.secrets
    (folder / "request.bin").write_bytes(message.body)
    write_body(folder, "response", hidden.hide_bytes(exchange.body, secrets))
    texts = {
        "request.txt": _request_head(exchange, settings),
        "response.txt": hidden.hide(_response_head(exchange), secrets),
        "bytes.txt": "\n".join(failure.bytes),
        **_programs(about, failure, steps, settings),
        "check.json": hidden.hide(json.dumps(about, indent=1), secrets),
    }
    if not is_single_request(steps):
        reproducers.write(folder, steps, settings)
    for name, text in texts.items():
        (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    (folder / "repro.sh").chmod(0o755)


def _programs(about: Mapping[str, Any], failure: Failure, steps: Reproduction, settings: Settings) -> dict[str, str]:
    """Return what sends the course again, in shell and in Python."""
    exchange = steps[-1][0]
    is_call = Reply(exchange).is_over_grpc
    if is_single_request(steps):
        given = about, failure, exchange, settings
        if is_call:
            return {"repro.sh": _PYTHON_SHELL, "repro.py": _grpc_python(*given)}
        return {"repro.sh": _shell(*given), "repro.py": _python(*given)}
    make = reproducers.build_grpc_program if is_call else reproducers.build_http_program
    lines = [*_comment(about, failure, exchange), make(steps, settings, map_secret_variables(settings))]
    return {"repro.sh": _PYTHON_SHELL, "repro.py": "\n".join(lines)}


def map_secret_variables(settings: Settings) -> dict[str, str]:
    """Return the headers whose values are not shown, each with the environment variable that holds it."""
    names = [name for name, _ in settings.headers if name.lower() != "host"]
    return {name: re.sub(r"\W", "_", name).upper() for name in names}


def _request_head(exchange: Exchange, settings: Settings) -> str:
    message = exchange.message
    shown = [
        *message.headers,
        *[(name, "..." if name in map_secret_variables(settings) else v) for name, v in settings.headers],
    ]
    lines = [f"{message.method} {exchange.url}", *[f"{name}: {value}" for name, value in shown]]
    if Reply(exchange).is_over_grpc:
        lines.append(grpc_call.format_message(parse_request(message), len(message.body), lines=True))
    return "\n".join([*lines, *([f"({exchange.note})"] if exchange.note else [])])


def _response_head(exchange: Exchange) -> str:
    status = Reply(exchange).status_line if exchange.status else "no answer"
    if exchange.details:
        status += f": {escape_text(exchange.details, 1000)}"
    if exchange.code and exchange.body:
        status += f"\n{grpc_call.summarize_answer(exchange)}"
    lines = [status, *[f"{escape_text(name)}: {escape_text(value)}" for name, value in exchange.headers]]
    return "\n".join([*lines, *([f"({escape_text(str(exchange.failure))})"] if exchange.failure else [])])


def _comment(about: Mapping[str, Any], failure: Failure, exchange: Exchange) -> list[str]:
    return [
        f"# {about['check']} [{about['row']}]: {failure.requirement} ({failure.level})",
        f"# Expected: {escape_text(failure.expected, 300)}",
        f"# Actual:   {escape_text(failure.actual, 300)}",
        *([f"# The suite sent it otherwise: {exchange.note}."] if exchange.note else []),
    ]


def _shell(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    message, secret = exchange.message, map_secret_variables(settings)
    command = ["curl", "-sS", "-i", "-o", "-", "-X", message.method, *build_curl_headers(message, secret)]
    command += [part for name, value in settings.headers if name not in secret for part in ("-H", f"{name}: {value}")]
    words = [shlex.join(command), *[f'-H "{name}: ${{{variable}:?}}"' for name, variable in secret.items()]]
    words += ["--data-binary @request.bin"] if message.method == "POST" else []
    words.append('"$URL"')
    lines = [
        "#!/bin/sh",
        *_comment(about, failure, exchange),
        f'[ -n "$URL" ] || URL={shlex.quote(exchange.url)}',
        'cd "$(dirname "$0")" || exit 2',
        f"exec {' '.join(words)}",
    ]
    return "\n".join(lines)


_PYTHON = """
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


def _python(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    message, secret = exchange.message, map_secret_variables(settings)
    shown = [(name, value) for name, value in settings.headers if name not in secret]
    is_plain = message.header("Accept-Encoding") is None
    plain = [("Accept-Encoding", "identity")] if is_plain else []  # httpx would ask for compression
    program = _PYTHON.format(
        headers=repr([*message.headers, *shown, *plain]),
        secret="".join(f"headers.append(({name!r}, os.environ[{v!r}]))\n" for name, v in secret.items()).rstrip("\n"),
        method=message.method,
        url=exchange.url,
    )
    return "\n".join([*_comment(about, failure, exchange), program.strip()])


_PYTHON_SHELL = """#!/bin/sh
exec "${PYTHON:-python3}" "$(dirname "$0")/repro.py"  # PYTHON: one that has grpcio, where it is over gRPC
"""

_GRPC_PYTHON = """
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


def _grpc_python(about: Mapping[str, Any], failure: Failure, exchange: Exchange, settings: Settings) -> str:
    secret, address = map_secret_variables(settings), settings.grpc_address
    program = _GRPC_PYTHON.format(
        secret="".join(f"metadata.append(({n.lower()!r}, os.environ[{v!r}]))\n" for n, v in secret.items()).rstrip(
            "\n"
        ),
        address=address.target,
        channel=grpc_call.build_channel_expression(address, settings).replace(json.dumps(address.target), "address"),
        path=exchange.message.path,
    )
    return "\n".join([*_comment(about, failure, exchange), program.strip()])
