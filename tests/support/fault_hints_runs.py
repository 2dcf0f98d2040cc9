"""Real runs against servers with one fault or two, deployed like other people's: what likeness is tried on.

Rows that no step of a fault is taken by are not run: they come to what they always do.
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
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from reference_server import faults
from reference_server.faults import Fault, switch_on
from tests.support.fault_hints_patterns import list_names
from tests.support.matrix import PROCESSES, get_server, read_steps, trace_rows
from tests.support.samples import collect_rows, collect_walk_rows
from tests.support.sightings import LONG_PAUSE, SHORT_PAUSE, judge_rows, serve_grpc
from tests.support.step_tracing import Rows, select_relevant

Entries = list[dict[str, Any]]
HTTP_WALKS = ("json", "binary", "raw", "classes")
WALK_ROWS = 20  # of whatever kind, beside those of a fault's own kind


def judge_cases(cases: Sequence[Sequence[str]], *, seed: int, part_of_roles: float) -> list[Entries]:
    """Return the `checks` of a run against each of some servers, of half of the rows, others for each.

    Args:
        cases: the faults that a server has.
        seed: of what is drawn.
        part_of_roles: how many of the roles, about, the server has models for.
    """
    run = partial(_run, seed=seed, part_of_roles=part_of_roles)
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(trace_rows, (faults.load,) * 2, (False, True)))))
        return list(pool.map(partial(run, steps=steps), cases))


def _run(names: Sequence[str], steps: Path, *, seed: int, part_of_roles: float) -> Entries:
    present, drawn = [faults.load()[name] for name in names], random.Random(f"{seed} {names}")
    deployed = [role for role in roles.load() if drawn.random() < part_of_roles]
    over = sorted({fault.over_grpc for fault in present})
    rows = [case for over_grpc in over for case in collect_rows("certify", over_grpc=over_grpc) if drawn.random() < 0.5]
    walk = [case for fault in present if fault.walks for case in collect_walk_rows(fault.walks) if drawn.random() < 0.5]
    if False in over:
        walk += drawn.sample([case for kind in HTTP_WALKS for case in collect_walk_rows(kind)], WALK_ROWS)
    taking = list_names(walk) | list_names(case for case in rows if case[0].is_over_grpc)
    for fault in present:
        own = [case for case in rows if case[0].is_over_grpc == fault.over_grpc]
        taking |= set() if fault.walks else list_names(select_relevant(fault, own, read_steps(steps)[fault.over_grpc]))
    return _results(present, rows + walk, taking, deployed)


def _results(present: Sequence[Fault], rows: Rows, taking: set[tuple[str, str]], deployed: Sequence[str]) -> Entries:
    """Return what rows come to; those that take no step of a fault are met."""
    run = [case for case in rows if list_names([case]) <= taking]
    judged = {(result.id, result.row): result for result in _judged(present, run, deployed)}
    passed = [
        CheckResult(check.id, row.id, "", "", "", Outcome.PASS, list(check.requirements(row)))
        for check, row in rows
        if list_names([(check, row)]).isdisjoint(taking) and (check.find_role(row) or deployed[0]) in deployed
    ]
    return [result.to_dict() for result in (*judged.values(), *passed)]


def _judged(present: Sequence[Fault], rows: Rows, deployed: Sequence[str]) -> Iterator[CheckResult]:
    over_grpc = any(fault.over_grpc for fault in present)
    reads = any(step.startswith("http_") for fault in present for step in fault.steps)
    with ExitStack() as on:
        for fault in present:
            on.enter_context(switch_on(fault))
        get_server().replace()
        yield from judge_rows(
            get_server().url,
            rows,
            on.enter_context(serve_grpc(get_server())) if over_grpc else None,
            pause=LONG_PAUSE if reads else SHORT_PAUSE,
            surveyed=any(fault.surveyed for fault in present),
            deployed=deployed,
        )
    get_server().replace()
