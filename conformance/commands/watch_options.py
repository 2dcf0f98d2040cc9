"""The options of `client watch`: their parser and their validated values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.commands.run_files import RunFiles, add_files, read_files
from conformance.spec.outcome import GATES
from conformance.spec.user_error import UserError
from conformance.transport import settings
from conformance.transport.credentials import is_credential
from conformance.transport.grpc_packages import expect_grpc, has_grpc
from conformance.transport.settings import Settings, SettingsError

PORT, GRPC_PORT = 8000, 8001


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The validated options.

    Attributes:
        port: the HTTP port, 0 for a free one; None if HTTP is not watched. `grpc_port` likewise.
        upstream: the server behind the proxy; None for the bundled one.
        seconds: duration of the watch; `idle`: the watch ends after this many seconds without a request.
        command: the command to run during the watch; empty for none.
        header: the header that names a client, instead of its user agent.
        shows_all: whether to show every violated requirement in full.
        gate: the verdict required for exit status 0, one of `GATES`; None for the default of a run.
    """

    host: str
    port: int | None
    grpc_port: int | None
    upstream: Settings | None
    seconds: float | None
    idle: float | None
    command: tuple[str, ...]
    header: str | None
    is_strict: bool
    shows_all: bool
    files: RunFiles
    gate: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    add("--port", type=int, metavar="N", help=f"the port for HTTP; 0 is a free one (default: {PORT})")
    add("--grpc-port", type=int, metavar="N", help=f"the port for gRPC; 0 is a free one (default: {GRPC_PORT})")
    add("--upstream", metavar="URL", help="the server that answers over HTTP (default: the bundled one)")
    add("--upstream-grpc", metavar="HOST:PORT", help="the server that answers over gRPC; grpcs://HOST:PORT for TLS")
    add("--upstream-ca", metavar="FILE", help="verify the server's TLS with these certificates")
    add("--upstream-insecure", action="store_true", help="do not verify the server's TLS certificates")
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument("--for", dest="seconds", type=float, metavar="S", help="end after this many seconds")
    ends.add_argument("--until-idle", type=float, metavar="S", help="end after this many seconds without a request")
    add("--client-header", metavar="NAME", help="the header that tells clients apart (default: User-Agent)")
    add("--conformance-strict", action="store_true", help="an unmet SHOULD fails the watch")
    add_gate(parser)
    add(
        "--conformance-show", choices=("first", "all"), default="first",
        help="first: details of the ten requirements to fix first, others by name and count (default); all: details of "
        "every one",
    )  # fmt: skip
    add_files(parser)


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add the option for the gate, which decides the exit status."""
    parser.add_argument(
        "--conformance-gate", choices=GATES,
        help="what exit status 0 requires: conformant: every MUST is met (default); interoperable: every MUST about "
        "exchanges and the transport is met",
    )  # fmt: skip


def read_options(options: argparse.Namespace, command: Sequence[str] | None) -> WatchOptions:
    """Validate the options, and the command after `--` if there is one.

    Raises:
        UserError: an option is invalid.
    """
    for name in ("seconds", "until_idle"):
        if (given := getattr(options, name)) is not None and not (0 < given < math.inf):
            raise UserError(f"--{'for' if name == 'seconds' else 'until-idle'} {given:g}: give a number of seconds")
    if command is not None and not command:
        raise UserError("give a command after --")
    if command and (options.seconds or options.until_idle):
        raise UserError("--for and --until-idle cannot be combined with a command, whose end ends the watch")
    if options.client_header and is_credential(options.client_header):
        raise UserError(f"--client-header {options.client_header} carries a credential: use another header")
    upstream = _read_upstream(options)
    port, grpc_port = _read_ports(options, upstream)
    return WatchOptions(
        options.host,
        port,
        grpc_port,
        upstream,
        options.seconds,
        options.until_idle,
        tuple(command or ()),
        options.client_header,
        options.conformance_strict,
        options.conformance_show == "all",
        read_files(options),
        options.conformance_gate,
    )


def _read_upstream(options: argparse.Namespace) -> Settings | None:
    """Return the settings of the upstream server, or None for the bundled one."""
    if not (options.upstream or options.upstream_grpc):
        return None
    try:
        made = settings.make_settings(
            options.upstream or "",
            ca_file=options.upstream_ca,
            insecure=options.upstream_insecure,
            grpc=options.upstream_grpc,
        )
        if made.headers:
            raise UserError("--upstream must contain no user and password; clients send their own")
        made.build_ssl_context()
    except SettingsError as error:
        raise UserError(str(error).replace("--target-url", "--upstream").replace("--target-", "--upstream-")) from error
    return made


def _read_ports(options: argparse.Namespace, upstream: Settings | None) -> tuple[int | None, int | None]:
    """Return the ports for HTTP and gRPC; None for a transport that is not watched."""
    over_http = upstream is None or bool(options.upstream)
    over_grpc = has_grpc() if upstream is None else upstream.grpc is not None
    if options.grpc_port is not None and not over_grpc:
        if upstream is not None:
            raise UserError("--grpc-port needs --upstream-grpc HOST:PORT")
        expect_grpc("--grpc-port")
    if options.port is not None and not over_http:
        raise UserError("--port needs --upstream URL")
    if over_grpc and upstream is not None:
        expect_grpc("--upstream-grpc")
    port = _read_port("--port", options.port, PORT) if over_http else None
    return port, _read_port("--grpc-port", options.grpc_port, GRPC_PORT) if over_grpc else None


def _read_port(name: str, given: int | None, default: int) -> int:
    port = default if given is None else given
    if not 0 <= port <= 65535:
        raise UserError(f"{name} {port}: give a number from 0 to 65535")
    return port
