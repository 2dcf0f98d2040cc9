"""`oip-conformance client watch`: judges every request of any client, and forwards it unchanged."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from conformance.clients.recording.archive import ArchiveWriter
from conformance.clients.recording.forwarding import read_grpc_upstream, read_http_upstream
from conformance.clients.recording.http_tap import HttpTap
from conformance.clients.recording.proxy import PortError, Proxy, Route
from conformance.clients.recording.records import RecordedExchange
from conformance.clients.traffic import FirstViolation, Traffic, get_check_id
from conformance.commands.watch_conclusion import Addresses, WatchResult, finish_watch, format_now
from conformance.commands.watch_options import WatchOptions, add_options, read_options
from conformance.commands.watch_waiting import (
    Interruption,
    WatchEnd,
    catch_interrupts,
    wait_for_command,
    wait_for_interrupt,
    wait_seconds,
    wait_until_idle,
)
from conformance.judging import client_evidence
from conformance.judging.client_failure import describe_violation
from conformance.spec import ledger
from conformance.spec.outcome import Outcome
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport.reference import ReferenceServer
from conformance.transport.settings import Settings, make_settings

DESCRIPTION = """\
Judge every inference request that clients send, and forward it unchanged to the bundled server, or to the one of
--upstream. The watch ends with Ctrl-C, after a time, or with a command:

  oip-conformance client watch -- pytest tests/integration

The command finds the addresses in OIP_TARGET_URL and OIP_TARGET_GRPC. If it fails, its exit status is that of the watch
(after a signal: 128 plus the number of the signal). Otherwise 0: nothing failed; 1: a MUST is not met; 6: the suite
cannot tell, because no inference request came or the watch was interrupted."""


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "watch",
        help="judge the requests that clients send to a server",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [OPTION ...] [-- COMMAND ...]",
    )
    add_options(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Watch until the end; return the text to print and the exit status.

    Raises UserError: an option is invalid, a port is not available, or the command cannot be run.
    """
    return watch(read_options(options, options.after))


def watch(options: WatchOptions) -> tuple[str, int]:
    """Watch until the end; return the text to print and the exit status.

    Raises UserError: a port is not available, or the command cannot be run.
    """
    started = format_now()
    with catch_interrupts() as interrupted, _open_upstream(options) as upstream_settings:
        proxy = Proxy(_build_routes(options, upstream_settings), host=options.host)
        with _open_ports(proxy):
            addresses = _build_addresses(options, upstream_settings, proxy)
            traffic = Traffic(
                partial(describe_violation, find_url=addresses.find_address), options.header, strict=options.strict
            )
            with _open_listener(options, traffic, addresses) as listener:
                proxy.serve(listener)
                _print_line(_format_start(options, upstream_settings, addresses))
                ended = _wait(options, addresses, listener, interrupted)
                proxy.close()  # requests on open connections are judged as well
                stopped = ended.stopped or (f"the watch stopped judging: {proxy.fault}" if proxy.fault else "")
                listener.stopped = stopped
    watched = WatchResult(traffic, addresses, started, stopped, listener.unread_reasons)
    text, status = finish_watch(watched, options)
    return text, ended.status or status


@contextmanager
def _open_upstream(options: WatchOptions) -> Iterator[Settings]:
    """Yield the settings of the upstream server; start the bundled one unless an upstream is given."""
    if options.upstream is not None:
        yield options.upstream
        return
    server = ReferenceServer(grpc=options.grpc_port is not None)
    try:
        yield make_settings(server.url, grpc=server.grpc)
    finally:
        server.stop()


def _build_routes(options: WatchOptions, upstream_settings: Settings) -> list[Route]:
    """Return the routes of the proxy: HTTP first, then gRPC."""
    routes = []
    if options.port is not None:
        routes.append(Route(options.port, read_http_upstream(upstream_settings), HttpTap))
    if options.grpc_port is not None:
        from conformance.clients.recording.grpc_tap import GrpcTap  # its packages come with an extra

        routes.append(Route(options.grpc_port, read_grpc_upstream(upstream_settings), GrpcTap))
    return routes


@contextmanager
def _open_ports(proxy: Proxy) -> Iterator[None]:
    try:
        proxy.listen()
    except PortError as error:
        proxy.close()
        raise UserError(f"{error}; take another port with --port or --grpc-port, 0 for a free one") from error
    try:
        yield
    finally:
        proxy.close()


def _build_addresses(options: WatchOptions, upstream_settings: Settings, proxy: Proxy) -> Addresses:
    ports = iter(proxy.ports)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.host, options.host)  # noqa: S104 - a bind address
    name = f"[{host}]" if ":" in host else host
    http = f"http://{name}:{next(ports)}{upstream_settings.base_path}" if options.port is not None else ""
    return Addresses(http, f"grpc://{name}:{next(ports)}" if options.grpc_port is not None else "")


@contextmanager
def _open_listener(options: WatchOptions, traffic: Traffic, addresses: Addresses) -> Iterator[WatchListener]:
    """Yield the listener of the proxy; complete its recording afterwards."""
    folder = options.evidence
    if folder is None:
        yield WatchListener(traffic, _print_line)
        return
    try:
        writer = ArchiveWriter(folder, addresses.http, addresses.grpc, is_strict=options.strict)
    except OSError as error:
        raise UserError(f"--conformance-evidence {folder}: {error.strerror}") from error
    listener = WatchListener(traffic, _print_line, folder, writer)
    try:
        yield listener
    finally:
        writer.close(listener.stopped)


def _format_start(options: WatchOptions, upstream_settings: Settings, addresses: Addresses) -> str:
    where = " and ".join(address for address in (addresses.http, addresses.grpc) if address)
    servers = [upstream_settings.url, *([upstream_settings.grpc.url] if upstream_settings.grpc else [])]
    server = "the bundled server" if options.upstream is None else " and ".join(dict.fromkeys(servers))
    ends = any((options.command, options.seconds, options.idle))
    return f"watching {where} in front of {server}{'' if ends else '; Ctrl-C ends it'}"


def _wait(options: WatchOptions, addresses: Addresses, listener: WatchListener, interrupted: Interruption) -> WatchEnd:
    if options.command:
        return wait_for_command(options.command, addresses.build_environment(), interrupted)
    if options.seconds is not None:
        return wait_seconds(options.seconds, interrupted)
    if options.idle is not None:
        return wait_until_idle(options.idle, lambda: listener.last, lambda: listener.waiting > 0, interrupted)
    return wait_for_interrupt(interrupted)


def _print_line(line: str) -> None:
    """Print a line and flush."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# --- each request -----------------------------------------------------------------------------------------------------


MAX_REASONS = 100


class WatchListener:
    """Judges and stores the recorded requests; see `records.Listener`.

    Attributes:
        unread_reasons: reason why traffic was not read -> number of times.
        last: time of the last request or answer, by the monotonic clock.
        waiting: number of requests without an answer so far.
        stopped: why the watch was cut short; empty if it was not.

    `evidence`: the folder for evidence of violations, or None; `writer`: writes the recording.
    """

    def __init__(
        self,
        traffic: Traffic,
        show: Callable[[str], None],
        evidence: Path | None = None,
        writer: ArchiveWriter | None = None,
    ) -> None:
        self.traffic = traffic
        self.unread_reasons: Counter[str] = Counter()
        self.last = time.monotonic()
        self.waiting = 0
        self.stopped = ""
        self._show = show
        self._evidence = evidence
        self._writer = writer

    def handle_request(self, recorded: RecordedExchange) -> None:
        """Judge a request; show the first violations of its client."""
        self.last = time.monotonic()
        self.waiting += 1
        for first in self.traffic.add_request(recorded):
            self._show(_format_violation(first))

    def handle_answer(self, recorded: RecordedExchange) -> None:
        """Write a request and its answer to the recording, and evidence of its first violations."""
        self.last = time.monotonic()
        self.waiting -= 1
        described = self.traffic.add_answer(recorded)
        if self._writer is not None:
            self._writer.write(recorded, self.traffic.get_client_name(recorded))
        for first in described:
            if self._evidence is not None and first.failure is not None:
                check = get_check_id(first.violation.requirement)
                client_evidence.write_request(self._evidence, check, first.client, recorded, first.failure)

    def handle_reset(self, recorded: RecordedExchange) -> None:
        """Count a connection that the client reset after an answer."""
        self.traffic.add_reset(recorded)

    def report_unread(self, why: str) -> None:
        """Count a reason why traffic was not read; show each reason once."""
        line = escape_text(why)
        if line not in self.unread_reasons and len(self.unread_reasons) < MAX_REASONS:
            self._show(f"not read: {line}")
            self.unread_reasons[line] = 0
        if line in self.unread_reasons:
            self.unread_reasons[line] += 1


def _format_violation(first: FirstViolation) -> str:
    miss, request = first.violation, f"request {first.recorded.number} of {first.client}"
    named = f"{miss.requirement} ({ledger.get_requirement(miss.requirement).level})"
    said = f"{request} does not meet {named}" if first.outcome is Outcome.FAIL else f"advice on {request}, by {named}"
    return f"{said}: expected {escape_text(miss.expected, 200)}, got {escape_text(miss.actual, 200)}"
