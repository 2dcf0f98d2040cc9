"""Runs the suite against every fault and every honest variation, several at a time."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.judging.selection import list_profile_rows
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.result import CheckResult
from reference_server import faults
from reference_server.faults import Fault
from reference_server.limits import Limits
from tests.support import kept_results, valid_servers
from tests.support.kept_results import KeptResults
from tests.support.samples import (
    collect_hostile_rows,
    collect_plain_walk_rows,
    collect_rows,
    collect_walk_rows,
    collect_walk_samples,
    is_hostile,
    sample_rows,
    select_answering,
    select_hostile_rows,
    shuffle_rows,
    sort_known_first,
)
from tests.support.sightings import Server, Sighting, UnmetRow, judge_fault, see
from tests.support.step_tracing import Rows, select_relevant, trace_steps

PROCESSES = 2
MANY_CONNECTIONS = 10_000  # faults that never answer leave connections open, and a server refuses more than its limit
SHORT_WAIT_S = 1.0  # seconds
Load = Callable[[], dict[str, Fault]]
# Names of check and row -> the steps of the server that the row takes.
Steps = dict[tuple[str, str], frozenset[str]]


@cache
def get_server() -> Server:
    """Return the one server of a worker process."""
    return Server(Limits(connections=MANY_CONNECTIONS))


@cache
def get_impatient_server() -> Server:
    """Return the one of a worker process that waits for nobody for long, so that hostile rows are short."""
    return Server(Limits(wait_seconds=SHORT_WAIT_S, connections=MANY_CONNECTIONS))


def get_server_for(fault: Fault) -> Server:
    """Return the server of this process that a fault is switched on in."""
    return get_impatient_server() if is_hostile(fault) else get_server()


def trace_rows(load: Load, over_grpc: bool) -> Steps:
    """Return the steps of the server that each row takes, of those that any fault replaces."""
    known = [fault for fault in load().values() if fault.over_grpc == over_grpc and not is_hostile(fault)]
    steps = {step for fault in known for step in fault.steps}
    honest = Fault("", ("grpc_",) if over_grpc else ("",), (), lambda: None)

    def judge(rows: Rows) -> Iterator[CheckResult]:
        return judge_fault(get_server(), honest, rows)

    rows = collect_rows(over_grpc=over_grpc)
    found = trace_steps(rows, sorted(steps), judge)
    get_server().replace()
    return {(check.id, row.id): taken for (check, row), taken in zip(rows, found, strict=True)}


def load_all() -> dict[str, Fault]:
    """Return every fault and every honest variation by name."""
    return {**faults.load(), **valid_servers.load()}


@cache
def read_steps(file: Path) -> tuple[Steps, Steps]:
    """Return the steps of rows over HTTP and over gRPC, as `run` has written them."""
    found: tuple[Steps, Steps] = pickle.loads(file.read_bytes())  # noqa: S301 - our own
    return found


def find_wrong(sighting: Sighting, fault: Fault) -> list[str]:
    """Return what is wrong with what was seen of a fault or of a valid server, one line each."""
    is_valid = fault.name in valid_servers.load()
    return (find_false_alarms if is_valid else find_complaints)(sighting, fault)


def _select_rows(fault: Fault, steps: Path) -> Rows:
    """Return the rows outside the walk that may see a fault."""
    return select_relevant(fault, collect_rows(over_grpc=fault.over_grpc), read_steps(steps)[fault.over_grpc])


def _select_walk_rows(fault: Fault, *, whole: bool) -> Rows:
    """Return rows of the walk that a valid server has to pass; of a fault there are none."""
    if fault.over_grpc or fault.name not in valid_servers.load():
        return []
    samples = collect_walk_samples()
    return [*(samples if whole else shuffle_rows(fault, samples)[:1]), *collect_plain_walk_rows()]


def _see_in_worker(name: str, steps: Path, *, whole: bool) -> Sighting:
    fault = load_all()[name]
    if is_hostile(fault):
        return see(get_server_for(fault), fault, select_hostile_rows(fault), until=None if whole else fault.breaks)
    if fault.walks:
        walk = collect_walk_rows(fault.walks)
        return see(get_server(), fault, walk if whole else sort_known_first(fault, walk), until=())
    found = _select_rows(fault, steps)
    for is_doubted in () if whole else (False, True):
        sighting = _see_sampled(fault, found, _select_walk_rows(fault, whole=False), is_doubted=is_doubted)
        if not find_wrong(sighting, fault):
            return replace(sighting, doubted=is_doubted)
    sighting = replace(see(get_server(), fault, [*found, *_select_walk_rows(fault, whole=True)]), doubted=not whole)
    if not whole or fault.name not in valid_servers.load():
        return sighting
    over = [case for case in collect_hostile_rows() if case[0].is_over_grpc == fault.over_grpc]
    return sighting.and_then(see(get_impatient_server(), fault, over))


def _list_deciding_rows(fault: Fault, steps: Path) -> Rows:
    """Return the rows that a sample without doubts is of: where they are as before, so is what is seen."""
    if is_hostile(fault):
        return select_hostile_rows(fault)
    if fault.walks:
        return collect_walk_rows(fault.walks)
    found = _select_rows(fault, steps)
    if fault.broad:
        return found
    answering = select_answering(found, fault.breaks)
    return [*sample_rows(fault, found), *answering, *_select_walk_rows(fault, whole=False)]


def _see_if_changed(name: str, steps: Path, kept: str) -> tuple[str, Sighting | None]:
    """Return the digest of a fault, and what is seen of it unless the digest is the one that was kept."""
    fault = load_all()[name]
    digest = kept_results.digest_fault(fault, _list_deciding_rows(fault, steps))
    return digest, None if digest == kept else _see_in_worker(name, steps, whole=False)


def _see_sampled(fault: Fault, found: Rows, more: Rows, *, is_doubted: bool) -> Sighting:
    """Run a sample of rows; where it misses less than it should, those that answer for the rest, until they do."""
    if fault.broad:
        return see(get_server(), fault, sort_known_first(fault, shuffle_rows(fault, found)), until=())
    sighting = see(get_server(), fault, [*sample_rows(fault, found, is_doubted=is_doubted), *more])
    unseen = set(fault.breaks) - {miss.requirement for miss in sighting.misses}
    if not unseen:
        return sighting
    return sighting.and_then(see(get_server(), fault, select_answering(found, unseen), until=unseen))


def is_seen_by(check_id: str, load: Load, known: Mapping[str, Collection[tuple[str, str]]]) -> bool:
    """Whether a check sees any fault that breaks what it answers for; its own rows alone are run.

    Args:
        check_id: of the check.
        load: the faults.
        known: for faults by name the rows that are known to see them, which are run first.
    """
    rows = [*list_profile_rows("certify", dangerous=True, transports=TRANSPORTS), *collect_hostile_rows()]
    every = [case for case in rows if case[0].id == check_id]
    answers = {name for case in every for name in case.requirements}
    faults_of_it = [fault for fault in load().values() if answers & set(fault.breaks) and not fault.walks]
    own = {one.name: {row for check, row in known.get(one.name, ()) if check == check_id} for one in faults_of_it}
    for fault in sorted(faults_of_it, key=lambda one: not own[one.name]):
        rows = sorted(every, key=lambda case: case[1].id not in own[fault.name])
        if see(get_server_for(fault), fault, rows, until=()).select("fail", "advisory"):
            return True
    return False


def run(names: Iterable[str], *, whole: bool = True) -> dict[str, Sighting]:
    """Run the suite against every named fault and variation, several at a time; see `run_each`."""
    return dict(run_each(names, whole=whole))


def run_each(names: Iterable[str], *, whole: bool = True) -> Iterator[tuple[str, Sighting]]:
    """Run the suite against every named fault and variation, several at a time; yield each name with what was seen.

    Args:
        names: of those to run.
        whole: every row that may see a fault, and of honest servers what they withstand; else a sample, and every row
            where the sample raises a doubt.
    """
    with _open_workers() as (pool, steps):
        futures = {name: pool.submit(_see_in_worker, name, steps, whole=whole) for name in names}
        for name, future in futures.items():
            yield name, future.result()


def run_changed(kept: KeptResults) -> Iterator[tuple[str, Sighting]]:
    """Run samples of rows against every fault and valid server whose kept result holds no more; yield what is seen.

    What is as it should be is kept, with the digest of what decides it.
    """
    known = load_all()
    names = [name for name in known if not kept.holds(name)]
    if not names:
        return
    with _open_workers() as (pool, steps):
        futures = {name: pool.submit(_see_if_changed, name, steps, kept.get_digest(name)) for name in names}
        for name, future in futures.items():
            digest, sighting = future.result()
            if sighting is not None:
                kept.keep(sighting, digest, is_right=not find_wrong(sighting, known[name]))
                yield name, sighting
    kept.renew(known)


@contextmanager
def _open_workers() -> Iterator[tuple[ProcessPoolExecutor, Path]]:
    """Start processes, and write down the steps of rows, which they read from a file."""
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(trace_rows, (load_all, load_all), (False, True)))))
        yield pool, steps


def find_complaints(sighting: Sighting, fault: Fault) -> list[str]:
    """Return what is wrong with a fault or with the suite, one line each; empty when the fault is killed exactly."""
    failed = {miss.requirement for miss in sighting.select("fail", "advisory")}
    wrong = [] if sighting.touched else ["void: no step of the fault was ever taken"]
    if fault.broad:
        return wrong if failed or sighting.select("error") else [*wrong, "silent: no check sees it"]
    if not failed:
        return [*wrong, "silent: no check sees it"]
    if fault.walks:
        first = sighting.select("fail", "advisory")[0]
        named = (
            [] if first.requirement == fault.breaks[0] else [f"{first.requirement}, not {fault.breaks[0]}, is named"]
        )
        return [*wrong, *named]
    wrong += [f"{identity}: broken, and no check fails" for identity in fault.breaks if identity not in failed]
    for identity in sorted(failed - set(fault.breaks)):
        first = next(miss for miss in sighting.select("fail", "advisory") if miss.requirement == identity)
        wrong.append(f"{identity}: not broken, but {first.check} [{first.row}] says: {first.message}")
    return wrong + [f"in error: {miss.check} [{miss.row}]: {miss.message}" for miss in sighting.select("error")]


def find_false_alarms(sighting: Sighting, variation: Fault) -> list[str]:
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
    for name, sighting in run_each([name for name in known if not names or name in names]):
        praise = "fails nothing" if name in valid_servers.load() else "killed exactly"
        print(f"{name} ({sighting.seconds} s): {', '.join(known[name].breaks)}", flush=True)  # noqa: T201
        wrong = find_wrong(sighting, known[name])
        misfits += bool(wrong)
        _print(sighting, wrong or [praise])
    return misfits


def _print(sighting: Sighting, conclusions: list[str]) -> None:
    seen: dict[tuple[str, str, str], list[UnmetRow]] = {}
    for miss in sighting.misses:
        seen.setdefault((miss.outcome, miss.requirement, miss.check), []).append(miss)
    for (outcome, requirement, check), misses in seen.items():
        rows = f"{len(misses)} x [{misses[0].row}]"
        print(f"    {outcome:9} {requirement:18} {check} {rows}: {misses[0].message[:200]}")  # noqa: T201
    print(*[f"    => {line[:300]}" for line in conclusions], sep="\n")  # noqa: T201


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
