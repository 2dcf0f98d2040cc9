"""`python -m tests.clients.matrix [NAME...]`: every fault and every honest variation of the client against its rows.

Its rows are all that take a step of the client which it alters: no other row can tell it from the honest client.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from conformance.spec.extensions import TRANSPORTS
from tests.clients import alterations
from tests.clients.alterations import Alteration
from tests.clients.sightings import SharedPeer, Sighting, collect_rows
from tests.clients.step_tracing import Steps, select_relevant, trace_steps
from tests.support.sightings import UnmetRow

PROCESSES = 2
KINDS = ("faults", "variations")


def find_complaints(sighting: Sighting, fault: Alteration) -> list[str]:
    """Return what is wrong with a fault or with the suite, one line each; empty where it is seen and named.

    A row may be blocked by a fault that other rows name.
    """
    named = sighting.named
    wrong = [] if sighting.touched else ["void: no altered step was ever taken"]
    wrong += [f"{identity}: missed, and no row says so" for identity in fault.misses[:1] if identity not in named]
    for identity in () if fault.broad else sorted(named - set(fault.misses)):
        first = next(miss for miss in sighting.select("fail", "advisory") if miss.requirement == identity)
        wrong.append(f"{identity}: not missed, but {first.check} [{first.row}] says: {first.message}")
    return wrong if fault.broad else wrong + _stopped(sighting, "error")


def find_false_alarms(sighting: Sighting, variation: Alteration) -> list[str]:
    """Return of what an honest client was wrongly accused, one line each: by a row, or by its requests alone."""
    wrong = [] if sighting.touched else ["void: no altered step was ever taken"]
    found = [miss for miss in sighting.select("fail", "advisory") if miss.requirement not in variation.misses]
    wrong += [f"{miss.outcome}: {miss.requirement}, {miss.check} [{miss.row}]: {miss.message}" for miss in found]
    wrong += [f"{identity}: seen by watching" for identity in sighting.watched if identity not in variation.misses]
    return wrong + _stopped(sighting, "error", "blocked")


def _stopped(sighting: Sighting, *outcomes: str) -> list[str]:
    stopped = sighting.select(*outcomes)
    return [f"{miss.outcome}: {miss.check} [{miss.row}]: {miss.message}" for miss in stopped]


@cache
def _trace_rows() -> Steps:
    """Return the steps of all rows, of those that any alteration replaces, once in each process."""
    altered = [one for kind in KINDS for one in alterations.load(kind).values()]
    return trace_steps(collect_rows(TRANSPORTS), {step for one in altered for step in one.steps})


def _see_in_worker(kind: str, name: str) -> Sighting:
    altered = alterations.load(kind)[name]
    with SharedPeer() as stage:
        return stage.see(altered, select_relevant(altered, collect_rows(altered.transports), _trace_rows()))


def run(kind: str, names: Iterable[str]) -> Iterator[Sighting]:
    """Run the named alterations of a kind against all rows that can see them, and yield what comes of each."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_see_in_worker, kind, name) for name in names]
        yield from (future.result() for future in futures)


def main(names: Sequence[str]) -> int:
    """Print what the suite sees of some alterations, or of all; return how many are not as they should be."""
    unknown = set(names) - {*alterations.load("faults"), *alterations.load("variations")}
    if unknown:
        raise SystemExit(f"no fault and no variation: {', '.join(sorted(unknown))}")
    misfits = 0
    for kind, judge, praise in (
        ("faults", find_complaints, "killed, and rightly named"),
        ("variations", find_false_alarms, "accused of nothing"),
    ):
        known = alterations.load(kind)
        for sighting in run(kind, [name for name in names or known if name in known]):
            wrong = judge(sighting, known[sighting.name])
            misfits += bool(wrong)
            _print(sighting, known[sighting.name], wrong or [praise])
    return misfits


def _print(sighting: Sighting, altered: Alteration, conclusions: Sequence[str]) -> None:
    watched = ", ".join(sighting.watched) or "nothing"
    print(f"{altered.name} ({sighting.rows} rows, {sighting.seconds} s): {', '.join(altered.misses)}")  # noqa: T201
    print(f"    watched: {watched}")  # noqa: T201
    rows: dict[tuple[str, str, str], list[UnmetRow]] = {}
    for miss in sighting.misses:
        rows.setdefault((miss.outcome, miss.requirement, miss.check), []).append(miss)
    for (outcome, requirement, check), found in rows.items():
        first = found[0]
        print(f"    {outcome:9} {requirement:24} {check} {len(found)} x [{first.row}]: {first.message[:180]}")  # noqa: T201
    print(*[f"    => {line[:300]}" for line in conclusions[:6]], sep="\n")  # noqa: T201


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
