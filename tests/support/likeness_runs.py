"""Real runs against servers with one fault or two, deployed like other people's: what likeness is tried on.

A run with one fault has about half of the roles, and half of the rows, slow ones and some of the walk among them.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.roles import roles
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult
from reference_server import faults
from reference_server.faults import Fault, switched_on
from tests.support.likeness_patterns import names_of
from tests.support.matrix import PROCESSES, read_steps, server, steps_of_rows
from tests.support.reach import Rows, relevant
from tests.support.samples import rows_of, walk_rows
from tests.support.seeing import LONG_PAUSE, SHORT_PAUSE, judge_rows, serving_grpc

Entries = list[dict[str, Any]]
WALK_ROWS = 30  # of a run with one fault


def runs_of_one(names: Sequence[str], seed: int) -> list[Entries]:
    """Return for each fault the `checks` of a run against a server that has it, deployed in a way of its own."""
    return _each(partial(_run_of_one, seed=seed), names)


def runs_of_two(pairs: Sequence[tuple[str, str]]) -> list[Entries]:
    """Return for each pair of faults the `checks` of a quick run against a server that has both."""
    return _each(_run_of_two, pairs)


def _each(run: Any, cases: Sequence[Any]) -> list[Entries]:
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(steps_of_rows, (faults.load,) * 2, (False, True)))))
        return list(pool.map(partial(run, steps=steps), cases))


def _run_of_one(name: str, steps: Path, seed: int) -> Entries:
    fault, drawn = faults.load()[name], random.Random(f"{seed} {name}")
    every = roles.load()
    deployed = [role for role in every if drawn.random() < 0.5]
    rows = rows_of("certify", over_grpc=fault.over_grpc)
    taking = names_of(relevant(fault, rows, read_steps(steps)[fault.over_grpc]))
    half = [case for case in rows if drawn.random() < 0.5]
    walk = [case for kind in ("json", "binary", "raw", "classes") for case in walk_rows(kind)]
    own = [case for case in walk_rows(fault.walks) if drawn.random() < 0.5] if fault.walks else []
    strange = [] if fault.over_grpc else drawn.sample(walk, WALK_ROWS)
    return _results([fault], half, taking, deployed) + _results([fault], own or strange, names_of(walk + own), deployed)


def _run_of_two(pair: tuple[str, str], steps: Path) -> Entries:
    both = [faults.load()[name] for name in pair]
    walk = [case for fault in both if fault.walks for case in walk_rows(fault.walks)]
    rows: Rows = [case for over_grpc in (False, True) for case in rows_of("quick", over_grpc=over_grpc)]
    is_one_over_grpc = any(fault.over_grpc for fault in both)
    if not is_one_over_grpc:
        rows = rows_of("quick", over_grpc=False)
    taking: set[tuple[str, str]] = set()
    for fault in both:
        own = rows_of("quick", over_grpc=fault.over_grpc)
        taking |= set() if fault.walks else names_of(relevant(fault, own, read_steps(steps)[fault.over_grpc]))
    return _results(both, rows + walk, taking | names_of(walk), list(roles.load()))


def _results(present: Sequence[Fault], rows: Rows, taking: set[tuple[str, str]], deployed: Sequence[str]) -> Entries:
    """Return what rows come to; those that take no step of a fault come to what they always do and are not run."""
    run = [case for case in rows if names_of([case]) <= taking]
    judged = {(result.id, result.row): result for result in _judged(present, run, deployed)}
    passed = [
        CheckResult(check.id, row.id, "", "", "", Outcome.PASS, list(check.requirements(row)))
        for check, row in rows
        if names_of([(check, row)]).isdisjoint(taking) and (check.role_of(row) or deployed[0]) in deployed
    ]
    return [result.to_dict() for result in (*judged.values(), *passed)]


def _judged(present: Sequence[Fault], rows: Rows, deployed: Sequence[str]) -> Iterator[CheckResult]:
    over_grpc = any(fault.over_grpc for fault in present)
    reads = any(step.startswith("http_") for fault in present for step in fault.steps)
    with ExitStack() as on:
        for fault in present:
            on.enter_context(switched_on(fault))
        server().replace()
        yield from judge_rows(
            server().url,
            rows,
            on.enter_context(serving_grpc(server())) if over_grpc else None,
            pause=LONG_PAUSE if reads else SHORT_PAUSE,
            surveyed=any(fault.surveyed for fault in present),
            deployed=deployed,
        )
    server().replace()
