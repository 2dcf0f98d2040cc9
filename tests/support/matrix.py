"""Runs the suite against every fault and every honest variation, several at a time."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.judging.selection import collected_rows
from conformance.terms.extensions import TRANSPORTS
from conformance.terms.result import CheckResult
from reference_server import faults
from reference_server.faults import Fault
from reference_server.limits import Limits
from tests.support import variations
from tests.support.reach import Rows, reached, relevant
from tests.support.samples import (
    every_hostile_row,
    glimpses,
    hostile_rows,
    is_hostile,
    known_first,
    meant,
    rows_of,
    sampled,
    shuffled,
    walk_rows,
)
from tests.support.seeing import Miss, Server, Sighting, judged, see

PROCESSES = 2
IMPATIENCE = 1.0  # seconds
Load = Callable[[], dict[str, Fault]]
# Names of check and row -> the steps of the server that the row takes.
Steps = dict[tuple[str, str], frozenset[str]]


@cache
def server() -> Server:
    """Return the one server of a worker process."""
    return Server()


@cache
def impatient_server() -> Server:
    """Return the one of a worker process that waits for nobody for long, so that hostile rows are short."""
    return Server(Limits(patience=IMPATIENCE))


def server_for(fault: Fault) -> Server:
    """Return the server of this process that a fault is switched on in."""
    return impatient_server() if is_hostile(fault) else server()


def steps_of_rows(load: Load, over_grpc: bool) -> Steps:
    """Return the steps of the server that each row takes, of those that any fault replaces."""
    known = [fault for fault in load().values() if fault.over_grpc == over_grpc and not is_hostile(fault)]
    steps = {step for fault in known for step in fault.steps}
    honest = Fault("", ("grpc_",) if over_grpc else ("",), (), lambda: None)

    def judge(rows: Rows) -> Iterator[CheckResult]:
        return judged(server(), honest, rows)

    rows = rows_of("certify", over_grpc=over_grpc)
    found = reached(rows, sorted(steps), judge)
    server().replace()
    return {(check.id, row.id): taken for (check, row), taken in zip(rows, found, strict=True)}


def load_all() -> dict[str, Fault]:
    """Return every fault and every honest variation by name."""
    return {**faults.load(), **variations.load()}


@cache
def read_steps(file: Path) -> tuple[Steps, Steps]:
    """Return the steps of rows over HTTP and over gRPC, as `run` has written them."""
    found: tuple[Steps, Steps] = pickle.loads(file.read_bytes())  # noqa: S301 - our own
    return found


def _see_in_worker(name: str, steps: Path, *, whole: bool) -> Sighting:
    fault = load_all()[name]
    if is_hostile(fault):
        return see(server_for(fault), fault, hostile_rows(fault), until=None if whole else fault.breaks)
    if fault.walks:
        walk = walk_rows(fault.walks)
        return see(server(), fault, walk if whole else known_first(fault, walk), until=())
    is_honest = name in variations.load()
    rows = rows_of("certify" if fault.large else "quick", over_grpc=fault.over_grpc)
    found = relevant(fault, rows, read_steps(steps)[fault.over_grpc])
    more = glimpses() if is_honest and not fault.over_grpc else []
    if not whole:
        sighting = _see_sampled(fault, found, shuffled(fault, more)[:1])
        if not (strays if is_honest else complaints)(sighting, fault):
            return sighting
    sighting = see(server(), fault, [*found, *more])
    if not (whole and is_honest):
        return sighting
    over = [case for case in every_hostile_row() if case[0].is_over_grpc == fault.over_grpc]
    return sighting.and_then(see(impatient_server(), fault, over))


def _see_sampled(fault: Fault, found: Rows, more: Rows) -> Sighting:
    """Run a sample of rows; where it misses less than it should, those that answer for the rest, until they do."""
    if fault.broad:
        return see(server(), fault, shuffled(fault, found), until=())
    sighting = see(server(), fault, [*sampled(fault, found), *more])
    unseen = set(fault.breaks) - {miss.requirement for miss in sighting.misses}
    if not unseen:
        return sighting
    return sighting.and_then(see(server(), fault, meant(found, unseen), until=unseen))


def is_seen_by(check_id: str, load: Load) -> bool:
    """Whether a check sees any fault that breaks what it answers for; its own rows alone are run."""
    rows = [*collected_rows("certify", dangerous=True, transports=TRANSPORTS), *every_hostile_row()]
    every = [case for case in rows if case[0].id == check_id]
    answers = {name for check, row in every for name in check.requirements(row)}
    faults_of_it = [fault for fault in load().values() if answers & set(fault.breaks) and not fault.walks]
    return any(see(server_for(fault), fault, every, until=()).of("fail", "advisory") for fault in faults_of_it)


def run(names: Iterable[str], *, whole: bool = True) -> dict[str, Sighting]:
    """Run the suite against every named fault and variation, several at a time.

    Args:
        names: of those to run.
        whole: every row that may see a fault, and of honest servers what they withstand; else a sample, and every row
            where the sample raises a doubt.
    """
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(steps_of_rows, (load_all, load_all), (False, True)))))
        futures = {name: pool.submit(_see_in_worker, name, steps, whole=whole) for name in names}
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
    known = load_all()
    if unknown := set(names) - set(known):
        raise SystemExit(f"no fault and no variation: {', '.join(sorted(unknown))}")
    misfits = 0
    for name, sighting in run([name for name in known if not names or name in names]).items():
        judge, praise = (strays, "fails nothing") if name in variations.load() else (complaints, "killed exactly")
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
