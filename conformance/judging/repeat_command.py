"""Builds the shell command that repeats the request of a failure: curl for HTTP, one line of Python for gRPC.

`grpcurl` is not used, because it needs server reflection, which few servers offer, and cannot send arbitrary bytes.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Collection

from conformance.judging.reproduction import Reproduction
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.http_request import USER_AGENT
from conformance.transport.send_options import PLAIN, PLAIN_CHUNKS
from conformance.transport.settings import GrpcAddress, Settings
from conformance.wire.request import Message

# A body up to this size is part of the command; a longer one is read from a file.
MAX_INLINE_BYTES = 1024
# From this size curl sends `Expect: 100-continue` (RFC 9110 10.1.1), unlike other clients.
EXPECT_CONTINUE_BYTES = 1024 * 1024


def build_repeat_command(
    steps: Reproduction, settings: Settings, body_file: str | None = None, *, names_client: bool = True
) -> str:
    """Return a shell command that sends the same bytes again; empty if one curl or one call cannot send them.

    Without `names_client` curl sends its own `User-Agent`, since that of the row has nothing to do with the failure.
    """
    exchange = steps[-1][0]
    if exchange.as_octets or len(steps[-1]) > 1:
        return ""
    if Reply(exchange).is_over_grpc:
        return _build_call_command(exchange, settings, body_file)
    if len(steps) > 1 or not _is_curl_capable(exchange):
        return ""
    return build_curl_command(exchange, settings, body_file, names_client=names_client)


def _is_curl_capable(exchange: Exchange) -> bool:
    """Return whether curl can send the request as the suite did: in one piece or one chunk, and without a pause."""
    options = exchange.send_options
    if options == PLAIN:
        return not exchange.note  # which names a pause, or options that a recording does not hold
    is_in_pieces = bool(options.segments or options.chunked) or options.chunk_format != PLAIN_CHUNKS
    return not (options.pipelined or is_in_pieces or (exchange.is_chunked and has_long_body(exchange.message)))


def has_long_body(message: Message) -> bool:
    """Return whether the body of a message is too long to be part of a shell command."""
    return len(message.body) > MAX_INLINE_BYTES


def build_curl_command(
    exchange: Exchange, settings: Settings, body_file: str | None = None, *, names_client: bool = True
) -> str:
    """Return a shell command that sends the request again and prints the answer with its headers."""
    message, options = exchange.message, exchange.send_options
    shown = [f"{name}: {value if name.lower() == 'host' else '...'}" for name, value in settings.headers]
    names = [name for name, _ in settings.headers]
    if not names_client:
        message, names = message.with_header("User-Agent", None), [*names, "User-Agent"]
    shown += ["Transfer-Encoding: chunked"] if options.chunked is not None else []
    shown += ["Connection: close"] if options.closing and message.header("Connection") is None else []
    command = ["curl", "-sS", "-i", "-o", "-", *build_curl_options(message, exchange.url)]
    command += [*(["--http1.0"] if options.version == "1.0" else []), *build_curl_headers(message, names)]
    command += [part for header in shown for part in ("-H", header)]
    url = shlex.quote(exchange.url)
    if not message.body:  # an empty POST body makes curl send `Content-Length: 0`
        return f"{shlex.join([*command, *(['--data-binary', ''] if message.method == 'POST' else [])])} {url}"
    if body_file is not None:
        return f"{shlex.join([*command, '--data-binary', '@' + body_file])} {url}"
    if has_long_body(message):
        return f"(a body of {len(message.body)} bytes: --conformance-evidence DIR writes it to a file for curl)"
    if all(0x20 <= byte < 0x7F for byte in message.body):
        return f"{shlex.join([*command, '--data-binary', message.body.decode()])} {url}"
    encoded = b64encode(message.body).decode()
    return f"echo {encoded} | base64 -d | {shlex.join([*command, '--data-binary', '@-'])} {url}"


def build_curl_options(message: Message, url: str) -> list[str]:
    """Return curl's options for a method, and those that keep curl from changing a URL or waiting for a HEAD's body."""
    return [
        *(["--head"] if message.method == "HEAD" else ["-X", message.method]),
        *(["--globoff"] if set("[]{}") & set(url) else []),
        *(["--path-as-is"] if "/." in url else []),
    ]


def build_curl_headers(message: Message, named: Collection[str]) -> list[str]:
    """Return curl's -H options for a message.

    They include the headers that the suite adds to every request, and options that keep curl from adding its own.

    Args:
        message: the request.
        named: names of further headers in the command.
    """
    options = [part for name, value in message.headers for part in ("-H", f"{name}: {value}" if value else f"{name};")]
    given = {name.lower() for name in (*named, *(name for name, _ in message.headers))}
    usual = (("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"))
    options += [part for name, value in usual if name.lower() not in given for part in ("-H", f"{name}: {value}")]
    for name, is_added in (
        ("Content-Type", message.method == "POST" or bool(message.body)),
        ("Expect", len(message.body) >= EXPECT_CONTINUE_BYTES),
    ):
        if is_added and name.lower() not in given:
            options += ["-H", f"{name}:"]
    return options


def _build_call_command(exchange: Exchange, settings: Settings, body_file: str | None) -> str:
    """Return a shell command that makes the gRPC call again and prints the answer or the error status."""
    message = exchange.message
    if any(name.lower() != "user-agent" for name, _ in message.headers):
        return ""  # metadata that the program does not send
    if not has_long_body(message):
        return f"echo {b64encode(message.body).decode()} | base64 -d | {_build_call_program(exchange, settings)}"
    if body_file is None:
        return (
            f"(a message of {len(message.body)} bytes: "
            "--conformance-evidence DIR writes it to a file, with a program that sends it)"
        )
    return f"{_build_call_program(exchange, settings)} < {shlex.quote(body_file)}"


def _build_call_program(exchange: Exchange, settings: Settings) -> str:
    channel = build_channel_expression(settings.grpc_address, settings)
    program = (
        f"import grpc, sys; call = {channel}.unary_unary({exchange.message.path!r}); "
        f"print(call(sys.stdin.buffer.read(), timeout={settings.timeout:g}{_format_metadata_argument(settings)}))"
    )
    return f"python -c {shlex.quote(program)}"


def build_channel_expression(address: GrpcAddress, settings: Settings) -> str:
    """Return a Python expression that creates a gRPC channel."""
    if not address.tls:
        return f"grpc.insecure_channel({json.dumps(address.target)})"
    roots = f"open({settings.ca_file!r}, 'rb').read()" if settings.ca_file else ""
    return f"grpc.secure_channel({json.dumps(address.target)}, grpc.ssl_channel_credentials({roots}))"


def _format_metadata_argument(settings: Settings) -> str:
    names = [name.lower() for name, _ in settings.headers if name.lower() != "host"]
    return f", metadata={[(name, '...') for name in names]}" if names else ""
