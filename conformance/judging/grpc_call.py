"""A gRPC call as failures and evidence show it: its message in protobuf's text form, and Python that makes it again.

There is no curl here: `grpcurl` wants the server's own descriptions of its messages, which few servers give, and a few
lines of Python send any bytes.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode

from conformance.transport.exchange import Exchange
from conformance.transport.settings import GrpcAddress, Settings
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import SERVICE, Pb, parse_request

# Bytes of a message up to which its text form is made; a longer one says how long it is.
MAX_TEXT_BYTES = 16 * 1024
# A message up to this many bytes is part of the command itself; a longer one has to be a file.
MAX_INLINE_BYTES = 1024


def summarize_call(exchange: Exchange) -> str:
    """Return the call on one line."""
    message = exchange.message
    method = message.path.removeprefix(f"/{SERVICE}/")
    form = format_message(parse_request(message), len(message.body))
    return f"{method} over gRPC, {len(message.body)} bytes" + (f": {form}" if form else "")


def summarize_answer(exchange: Exchange) -> str:
    """Return the answer on one line; empty where there is none to show."""
    method = exchange.message.path.removeprefix(f"/{SERVICE}/")
    return format_message(parse_message(exchange.body, method), len(exchange.body)) if exchange.body else ""


def format_message(message: Pb | None, size: int, *, lines: bool = False) -> str:
    """Return protobuf's text form of a message of so many bytes; empty for one that is none, or long."""
    from google.protobuf import text_format

    if message is None or size > MAX_TEXT_BYTES:
        return ""
    return str(text_format.MessageToString(message, as_one_line=not lines, as_utf8=False)).strip()


def build_repeat_command(exchange: Exchange, settings: Settings, body_file: str | None = None) -> str:
    """Return a shell command that makes the call again and prints what comes back, or the status."""
    message = exchange.message
    if body_file is None and len(message.body) > MAX_INLINE_BYTES:
        return (
            f"(a message of {len(message.body)} bytes: --conformance-evidence DIR writes it to a file, and a program)"
        )
    channel = build_channel_expression(settings.grpc_address, settings)
    program = (
        f"import grpc, sys; call = {channel}.unary_unary({message.path!r}); "
        f"print(call(sys.stdin.buffer.read(), timeout={settings.timeout:g}{_metadata(settings)}))"
    )
    python = f"python -c {shlex.quote(program)}"
    if body_file is not None:
        return f"{python} < {shlex.quote(body_file)}"
    return f"echo {b64encode(message.body).decode()} | base64 -d | {python}"


def build_channel_expression(address: GrpcAddress, settings: Settings) -> str:
    """Return the Python expression of a channel."""
    if not address.tls:
        return f"grpc.insecure_channel({json.dumps(address.target)})"
    roots = f"open({settings.ca_file!r}, 'rb').read()" if settings.ca_file else ""
    return f"grpc.secure_channel({json.dumps(address.target)}, grpc.ssl_channel_credentials({roots}))"


def _metadata(settings: Settings) -> str:
    names = [name.lower() for name, _ in settings.headers if name.lower() != "host"]
    return f", metadata={[(name, '...') for name in names]}" if names else ""
