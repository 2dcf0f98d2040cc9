"""Runs the suite against servers that are wrong, or different and right: many in one process, one after the other.

The server runs in a thread of this process, so that switching it from one fault to the next costs nothing; the suite
talks to it over HTTP as to any other.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from typing import Any
from zlib import crc32

import uvicorn

from conformance.checks.walk.axes import KINDS
from conformance.judging.selection import collected_rows
from conformance.judging.session import Session
from conformance.roles import roles
from conformance.survey.survey import Survey
from conformance.terms.check import Check, Row
from conformance.terms.extensions import EXTENSIONS, GRPC, HTTP, TRANSPORTS
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult
from conformance.transport import settings
from conformance.transport.target import Target
from reference_server import app, faults, models
from reference_server.faults import Fault, switched_on
from reference_server.uvicorn_config import uvicorn_config
from tests.support import variations
from tests.support.reach import Rows, reached, relevant

PROCESSES = 2
# Between the segments of a request, in seconds. The server is in the same process and sees two reads after the shortest
# pause; a fault in the reading itself gets one that a busy machine cannot fill.
SHORT_PAUSE, LONG_PAUSE = 0.002, 0.02
# A fault that stalls costs this much at each row that meets it; every honest answer comes in a fraction of it.
TIMEOUT = 5.0
# A target that answers nothing any more is given up after so many rows in error.
PATIENCE = 25
# For every sixteenth fault the tests run so many rows of each check that should see it, and this part of all others;
# for the rest few of them, other ones for each fault; more where that raises a doubt. `tox -e matrix` runs them all.
MANY, FEW = (60, 40), (3, 400)
LARGEST_MESSAGE = 64 * 1024 * 1024
MET = (Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE)
# Role and part of those rows of the walk that every honest server has to pass.
GLIMPSED = (("multi", "brief"), ("raw_variable", "brief"), ("scores_batching_labelled", "brief"))


@dataclass(frozen=True, slots=True)
class Miss:
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
    """

    name: str
    touched: bool
    misses: list[Miss] = field(default_factory=list)
    seconds: float = 0.0

    def of(self, *outcomes: str) -> list[Miss]:
        """Return the rows with these outcomes."""
        return [miss for miss in self.misses if miss.outcome in outcomes]


class Server:
    """The reference server in a thread; `replace` puts another application in its place."""

    def __init__(self) -> None:
        self.models = models.load()
        self.replace()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn_config(self._dispatch, log_level="critical", keep_alive_seconds=5, shutdown_seconds=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def replace(self) -> None:
        """Make the application anew, from the steps as they are now."""
        self._app = app.create(self.models)

    async def _dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    def stop(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


def judge_rows(
    url: str,
    rows: Iterable[tuple[Check, Row]],
    grpc: str | None = None,
    *,
    pause: float = SHORT_PAUSE,
    surveyed: bool = False,
) -> Iterator[CheckResult]:
    """Yield the result of each row, every extension being asked for; stop when nothing is answered any more.

    Args:
        url: of the server.
        rows: to be judged.
        grpc: where gRPC is judged, or None.
        pause: seconds between the segments of a body that is sent in pieces.
        surveyed: see what the server offers, and judge that alone.
    """
    reached_by = replace(settings.make(url, timeout=TIMEOUT, grpc=grpc), segment_pause=pause)
    survey = Survey(offered=dict.fromkeys(EXTENSIONS, ""), roles={role: role for role in roles.load()})
    errors = 0
    with Session(Target(reached_by), None if surveyed else survey) as session:
        if surveyed:
            session.take_survey()
        for check, row in rows:
            result = session.judge(check, row)
            yield result
            errors += result.outcome is Outcome.ERROR
            if errors > PATIENCE:
                break


def see(server: Server, fault: Fault, rows: Rows, *, first: bool = False) -> Sighting:
    """Run rows against the server with a fault switched on; all of them, or up to the first that is missed."""
    started, calls = time.monotonic(), []
    body = fault.body

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        return body(*arguments, **named)

    counted.__wrapped__ = body  # type: ignore[attr-defined]
    with switched_on(Fault(fault.name, fault.steps, fault.breaks, counted, fault.broad, surveyed=fault.surveyed)):
        results = _up_to_a_miss(_judged(server, fault, rows)) if first else list(_judged(server, fault, rows))
    server.replace()
    misses = [_miss(r) for r in results if r.outcome not in MET]
    return Sighting(fault.name, bool(calls), misses, round(time.monotonic() - started, 2))


def _up_to_a_miss(results: Iterator[CheckResult]) -> list[CheckResult]:
    found: list[CheckResult] = []
    for result in results:
        found.append(result)
        if result.outcome not in MET:
            break
    return found


def _judged(server: Server, fault: Fault, rows: Rows) -> Iterator[CheckResult]:
    """Yield the results of rows against the server as its steps are now, over gRPC where the fault is there alone."""
    reads = any(step.startswith("http_") for step in fault.steps)
    if not fault.over_grpc:
        server.replace()
        pause = LONG_PAUSE if reads else SHORT_PAUSE
        yield from judge_rows(server.url, rows, pause=pause, surveyed=fault.surveyed)
        return
    with serving_grpc(server) as address:
        yield from judge_rows(server.url, rows, address, surveyed=fault.surveyed)


@contextmanager
def serving_grpc(server: Server) -> Iterator[str]:
    """Serve the models over gRPC, too, made of the steps as they are now."""
    from reference_server.grpc_server import GrpcServer

    with GrpcServer(server.models, "127.0.0.1", 0, LARGEST_MESSAGE) as started:
        yield started.address


def _miss(result: CheckResult) -> Miss:
    requirement = result.failure.requirement if result.failure else result.requirements[0]
    return Miss(result.id, result.row, str(result.outcome), requirement, result.message)


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server."""
    server = Server()
    try:
        yield server
    finally:
        server.stop()


@cache
def _server() -> Server:
    """Return the one server of a worker process."""
    return Server()


def _rows(profile: str, *, over_grpc: bool) -> Rows:
    """Return the rows of a profile without the walk, and all golden ones, which ask for much at once."""
    transports = (GRPC,) if over_grpc else (HTTP,)
    chosen = {(check.id, row.id) for check, row in collected_rows(profile, dangerous=True, transports=transports)}
    every = collected_rows("certify", dangerous=True, transports=transports)
    return [
        (check, row)
        for check, row in every
        if not is_walk(check) and ((check.id, row.id) in chosen or check.id.startswith("golden."))
    ]


def is_walk(check: Check) -> bool:
    """Whether a check walks, over HTTP or gRPC."""
    return check.body.__module__.startswith("conformance.checks.walk.")


def walk_rows(kind: str) -> Rows:
    """Return the rows of the walk that send requests of a kind, the brief ones first."""
    every = collected_rows("certify", transports=TRANSPORTS)
    found = [(check, row) for check, row in every if is_walk(check) and row.values[0] == kind]
    return sorted(found, key=lambda case: (case[1].thorough, case[1].values[-1] == "rest"))


def glimpses() -> Rows:
    """Return a few rows of the walk, for servers that are honest in a way of their own."""
    return [case for kind in KINDS for case in walk_rows(kind) if case[1].values[1:] in GLIMPSED]


@cache
def _steps_of_rows(load: Callable[[], dict[str, Fault]], profile: str, over_grpc: bool) -> list[frozenset[str]]:
    """Return the steps of the server that each row of a profile takes, found once in a worker process."""
    faulty = [fault for fault in load().values() if fault.over_grpc == over_grpc]
    honest = Fault("", ("grpc_",) if over_grpc else ("",), (), lambda: None)

    def judge(rows: Rows) -> Iterator[CheckResult]:
        return _judged(_server(), honest, rows)

    steps = {step for fault in faulty for step in fault.steps}
    found = reached(_rows(profile, over_grpc=over_grpc), sorted(steps), judge)
    _server().replace()
    return found


def _see_in_worker(load: Callable[[], dict[str, Fault]], name: str, *, whole: bool = True) -> Sighting:
    fault = load()[name]
    if fault.walks:
        return see(_server(), fault, walk_rows(fault.walks), first=True)
    is_honest, profile = load is variations.load, "certify" if fault.large else "quick"
    rows = _rows(profile, over_grpc=fault.over_grpc)
    found = relevant(fault, rows, _steps_of_rows(load, profile, fault.over_grpc))
    more = glimpses() if is_honest and not fault.over_grpc else []
    for chosen in () if whole else (sampled(fault, found), meant(fault, found)):
        sighting = see(_server(), fault, [*chosen, *more])
        if not (strays if is_honest else complaints)(sighting, fault):
            return sighting
    return see(_server(), fault, [*found, *more])


def sampled(fault: Fault, rows: Rows) -> Rows:
    """Return some rows of each check that answers for what a fault breaks, and a few of the others."""
    of_each, one_in = MANY if crc32(fault.name.encode()) % 16 == 0 else FEW
    found: Rows = []
    taken: Counter[str] = Counter()
    for check, row in sorted(rows, key=lambda case: _chance(fault, case)):
        is_meant = bool(set(check.requirements(row)) & set(fault.breaks)) and taken[check.id] < of_each
        if is_meant or _chance(fault, (check, row)) % one_in == 0:
            taken[check.id] += 1
            found.append((check, row))
    chosen = {(check.id, row.id) for check, row in found}
    return [(check, row) for check, row in rows if (check.id, row.id) in chosen]


def meant(fault: Fault, rows: Rows) -> Rows:
    """Return all rows that answer for what a fault breaks."""
    return [(check, row) for check, row in rows if set(check.requirements(row)) & set(fault.breaks)]


def _chance(fault: Fault, case: tuple[Check, Row]) -> int:
    return crc32(f"{fault.name} {case[0].id} {case[1].id}".encode())


def is_seen_by(check_id: str, load: Callable[[], dict[str, Fault]]) -> bool:
    """Whether a check sees any fault that breaks what it answers for; its own rows alone are run."""
    every = [
        case for case in collected_rows("certify", dangerous=True, transports=TRANSPORTS) if case[0].id == check_id
    ]
    answers = {name for check, row in every for name in check.requirements(row)}
    faults_of_it = [fault for fault in load().values() if answers & set(fault.breaks) and not fault.walks]
    return any(see(_server(), fault, every, first=True).of("fail", "advisory") for fault in faults_of_it)


def run(load: Callable[[], dict[str, Fault]], names: Iterable[str], *, whole: bool = True) -> dict[str, Sighting]:
    """Run the suite against every named fault, several at a time.

    Args:
        load: a module-level function that returns the faults by name.
        names: of the faults to run.
        whole: every row that may see a fault; else a sample, and every row where the sample raises a doubt.
    """
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        futures = {name: pool.submit(_see_in_worker, load, name, whole=whole) for name in names}
        return {name: future.result() for name, future in futures.items()}


def complaints(sighting: Sighting, fault: Fault) -> list[str]:
    """Return what is wrong with a fault or with the suite, one line each; empty when the fault is killed exactly."""
    failed = {miss.requirement for miss in sighting.of("fail", "advisory")}
    wrong = [] if sighting.touched else ["void: no step of the fault was ever taken"]
    if fault.broad:
        return wrong if failed or sighting.of("error") else [*wrong, "silent: no check sees it"]
    if not failed:
        return [*wrong, "silent: no check sees it"]
    if fault.walks:
        first = sighting.of("fail", "advisory")[0]
        named = (
            [] if first.requirement == fault.breaks[0] else [f"{first.requirement}, not {fault.breaks[0]}, is named"]
        )
        return [*wrong, *named]
    wrong += [f"{identity}: broken, and no check fails" for identity in fault.breaks if identity not in failed]
    for identity in sorted(failed - set(fault.breaks)):
        first = next(miss for miss in sighting.of("fail", "advisory") if miss.requirement == identity)
        wrong.append(f"{identity}: not broken, but {first.check} [{first.row}] says: {first.message}")
    return wrong + [f"in error: {miss.check} [{miss.row}]: {miss.message}" for miss in sighting.of("error")]


def strays(sighting: Sighting, variation: Fault) -> list[str]:
    """Return what an honest server was wrongly found, one line each: more than the advice that it is due."""
    wrong = [] if sighting.touched else ["void: no step of the variation was ever taken"]
    stray = [m for m in sighting.misses if m.outcome != "advisory" or m.requirement not in variation.breaks]
    wrong += [f"{miss.outcome}: {miss.requirement}, {miss.check} [{miss.row}]: {miss.message}" for miss in stray]
    advised = {miss.requirement for miss in sighting.misses}
    return wrong + [f"{identity}: no advice" for identity in variation.breaks if identity not in advised]


def main(names: list[str]) -> int:
    """Print what the suite sees of some faults and variations, or of all; return how many are not as they should be."""
    unknown = set(names) - {*faults.load(), *variations.load()}
    if unknown:
        raise SystemExit(f"no fault and no variation: {', '.join(sorted(unknown))}")
    misfits = 0
    for load, judge, praise in (
        (faults.load, complaints, "killed exactly"),
        (variations.load, strays, "fails nothing"),
    ):
        known = load()
        for name, sighting in run(load, [name for name in names or known if name in known]).items():
            print(f"{name} ({sighting.seconds} s): {', '.join(known[name].breaks)}")  # noqa: T201
            wrong = judge(sighting, known[name])
            misfits += bool(wrong)
            _print(sighting, wrong or [praise])
    return misfits


def _print(sighting: Sighting, conclusions: list[str]) -> None:
    seen: dict[tuple[str, str, str], list[Miss]] = {}
    for miss in sighting.misses:
        seen.setdefault((miss.outcome, miss.requirement, miss.check), []).append(miss)
    for (outcome, requirement, check), misses in seen.items():
        rows = f"{len(misses)} x [{misses[0].row}]"
        print(f"    {outcome:9} {requirement:18} {check} {rows}: {misses[0].message[:200]}")  # noqa: T201
    print(*[f"    => {line[:300]}" for line in conclusions], sep="\n")  # noqa: T201


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
