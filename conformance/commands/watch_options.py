"""The options that only `client watch` has, and the validated values of all its options."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.judging.run_options import RunOptions, read_run_fields
from conformance.report.output_files import claim_folder
from conformance.spec.options import add_command_options
from conformance.spec.user_error import UserError
from conformance.transport import journal
from conformance.transport.config import TargetConfig
from conformance.transport.credentials import is_credential
from conformance.transport.grpc_packages import expect_grpc, has_grpc
from conformance.transport.settings import Settings, SettingsError

PORT, GRPC_PORT = 8000, 8001


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions(RunOptions):
    """The validated options.

    Attributes:
        port: the HTTP port, 0 for a free one; None if HTTP is not watched. `grpc_port` likewise.
        upstream: the server behind the proxy; None for the bundled one.
        seconds: duration of the watch; `idle`: the watch ends after this many seconds without a request.
        command: the command to run during the watch; empty for none.
        header: the header that names a client, instead of its user agent.
    """

    host: str
    port: int | None
    grpc_port: int | None
    upstream: Settings | None
    seconds: float | None
    idle: float | None
    command: tuple[str, ...]
    header: str | None


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
    add_command_options(parser, "watch")


def read_options(options: argparse.Namespace, command: Sequence[str] | None) -> WatchOptions:
    """Validate the options, and the command after `--` if there is one. Raises UserError: an option is invalid."""
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
    found = WatchOptions(
        host=options.host,
        port=port,
        grpc_port=grpc_port,
        upstream=upstream,
        seconds=options.seconds,
        idle=options.until_idle,
        command=tuple(command or ()),
        header=options.client_header,
        **read_run_fields(options),
    )
    if found.evidence is not None and (fault := claim_folder(found.evidence, journal.STALE_PATTERNS)):
        raise UserError(f"--conformance-evidence {found.evidence}: {fault}")
    return found


def _read_upstream(options: argparse.Namespace) -> Settings | None:
    """Return the settings of the upstream server, or None for the bundled one."""
    if not (options.upstream or options.upstream_grpc):
        return None
    try:
        target = TargetConfig(tls_ca=options.upstream_ca, tls_insecure=options.upstream_insecure)
        made = target.build_settings(options.upstream or "", options.upstream_grpc)
    except SettingsError as error:
        raise UserError(str(error).replace("--target-url", "--upstream").replace("--target-", "--upstream-")) from error
    if made.headers:
        raise UserError("--upstream must contain no user and password; clients send their own")
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
