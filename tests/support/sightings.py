"""Runs rows of the suite against a server that is wrong, or different and right, in the same process.

The server runs in a thread of this process, so that switching it from one fault to the next costs nothing; the suite
talks to it over HTTP as to any other.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.session import Session
from conformance.roles import roles
from conformance.spec.check import Case
from conformance.spec.extensions import EXTENSIONS
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from reference_server import app, models
from reference_server.faults import Fault, switch_on
from reference_server.limits import DEFAULT, Limits
from reference_server.uvicorn_server import make_uvicorn_config
from tests.support.step_tracing import Rows

# Between the segments of a request, in seconds. The server is in the same process and sees two reads after the shortest
# pause; a fault in the reading itself gets one that a busy machine cannot fill.
SHORT_PAUSE, LONG_PAUSE = 0.002, 0.02
# A fault that stalls costs this much at each row that meets it; every honest answer comes in a fraction of it.
TIMEOUT = 3.0
# A target that answers nothing any more is given up after so many rows in error.
MAX_ERRORS = 25
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MET = (Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE)
UNSEEN = (*MET, Outcome.BLOCKED)  # nothing is said against the server


@dataclass(frozen=True, slots=True)
class UnmetRow:
    """A row that was not passed: what it came to, on which requirement, and its message."""

    check: str
    row: str
    outcome: str
    requirement: str
    message: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a run saw of one server.

    Attributes:
        touched: whether the steps that the fault replaces were ever taken.
        seconds: how long the run took.
        doubted: whether a sample of rows raised a doubt, so that more were run.
    """

    name: str
    touched: bool
    misses: list[UnmetRow] = field(default_factory=list)
    seconds: float = 0.0
    doubted: bool = False

    def select(self, *outcomes: str) -> list[UnmetRow]:
        return [miss for miss in self.misses if miss.outcome in outcomes]

    def and_then(self, further: Sighting) -> Sighting:
        """Return what this run and a further one of the same server saw together."""
        touched, seconds = self.touched or further.touched, round(self.seconds + further.seconds, 2)
        return Sighting(self.name, touched, self.misses + further.misses, seconds)


class Server:
    """The reference server in a thread; `replace` puts another application in its place."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits
        self.models = models.load()
        self.replace()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = make_uvicorn_config(
            self._dispatch, log_level="critical", keep_alive_seconds=5, shutdown_seconds=1, limits=limits
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def replace(self) -> None:
        """Make the application anew, from the steps as they are now."""
        self._app = app.create(self.models, self.limits)

    async def _dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


def judge_rows(
    url: str, rows: Iterable[Case], grpc: str | None = None, *, pause: float = SHORT_PAUSE, in_discovery: bool = False
) -> Iterator[CheckResult]:
    """Yield the result of each row, every extension being asked for; stop when nothing is answered any more.

    Args:
        url: of the server.
        rows: to be judged.
        grpc: where gRPC is judged, or None.
        pause: seconds between the segments of a body that is sent in pieces.
        in_discovery: see what the server offers, and judge that alone.
    """
    errors = 0
    with open_session(url, grpc, pause=pause, in_discovery=in_discovery) as session:
        if in_discovery:
            with suppress(TargetLostError):  # each row says so, too
                session.discover()
        for case in rows:
            result = session.judge(case)
            yield result
            errors += result.outcome is Outcome.ERROR
            if errors > MAX_ERRORS:
                break


def open_session(
    url: str, grpc: str | None = None, *, pause: float = SHORT_PAUSE, in_discovery: bool = False
) -> Session:
    """Return a session with a server that offers everything, unless discovery is to tell; see `judge_rows`."""
    reached_by = replace(settings.make_settings(url, timeout=TIMEOUT, grpc=grpc), segment_pause=pause)
    discovery_result = DiscoveryResult(
        offered=dict.fromkeys(EXTENSIONS, ""), roles={role: role for role in roles.load()}
    )
    return Session(Target(reached_by), None if in_discovery else discovery_result)


def see(server: Server, fault: Fault, rows: Rows, *, until: Collection[str] | None = None) -> Sighting:
    """Run rows against the server with a fault switched on.

    Args:
        server: the server.
        fault: the fault, or an honest variation.
        rows: to be run, all of them where there is no `until`.
        until: the requirements that have to be missed; what comes after that is not run. Empty: until any is.
    """
    started, calls = time.monotonic(), []
    body = fault.body

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return body(*arguments, **named)

    counted.__wrapped__ = body  # type: ignore[attr-defined]
    with switch_on(Fault(fault.name, fault.steps, fault.breaks, counted, fault.broad, in_discovery=fault.in_discovery)):
        results = judge_fault(server, fault, rows)
        misses = [make_unmet_row(r) for r in _until(results, until) if r.outcome not in MET]
    server.replace()
    return Sighting(fault.name, bool(calls), misses, round(time.monotonic() - started, 2))


def _until(results: Iterator[CheckResult], wanted: Collection[str] | None) -> Iterator[CheckResult]:
    """Yield results up to the one with which everything wanted has been missed."""
    missed: set[str] = set()
    for result in results:
        yield result
        if result.outcome not in UNSEEN:
            missed.add(make_unmet_row(result).requirement)
        if wanted is not None and missed and missed >= set(wanted):
            return


def judge_fault(server: Server, fault: Fault, rows: Rows) -> Iterator[CheckResult]:
    """Yield the results of rows against the server as its steps are now, over gRPC where the fault is there alone."""
    reads = any(step.startswith("http_") for step in fault.steps)
    if not fault.over_grpc:
        server.replace()
        pause = LONG_PAUSE if reads else SHORT_PAUSE
        yield from judge_rows(server.url, rows, pause=pause, in_discovery=fault.in_discovery)
        return
    with serve_grpc(server) as address:
        yield from judge_rows(server.url, rows, address, in_discovery=fault.in_discovery)


@contextmanager
def serve_grpc(server: Server) -> Iterator[str]:
    """Serve the models over gRPC, too, made of the steps as they are now."""
    from reference_server.grpc_server import GrpcServer

    with GrpcServer(server.models, "127.0.0.1", 0, MAX_MESSAGE_BYTES) as started:
        yield started.address


def make_unmet_row(result: CheckResult) -> UnmetRow:
    requirement = result.failure.requirement if result.failure else result.requirements[0]
    return UnmetRow(result.id, result.row, str(result.outcome), requirement, result.message)


@contextmanager
def run_server(limits: Limits = DEFAULT) -> Iterator[Server]:
    server = Server(limits)
    try:
        yield server
    finally:
        server.stop()
