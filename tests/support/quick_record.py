"""Which rows see which fault, and what each row costs, kept in a file so that only new pairs are run.

Every row is run on each fault that breaks one of its requirements, so that the rows of the profile quick are chosen
among all rows. Rows that have crashed servers are not run; those that saw a fault in the kill matrix are known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from time import monotonic

from conformance.judging.selection import Subjects, list_profile_rows
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from reference_server import faults
from reference_server.faults import Fault
from tests.support.matrix import PROCESSES, get_impatient_server, get_server, get_server_for
from tests.support.samples import SEEN_BY, is_walk, read_seen_by
from tests.support.sightings import judge_rows, see, serve_grpc
from tests.support.step_tracing import Rows

RECORD = SEEN_BY.with_name("quick_record.json")
MAX_ROWS_OF_BROAD = 40  # rows that are tried on a fault that breaks nearly everything
TIMES = 3  # a row costs the least time of so many runs

Key = tuple[str, str]  # the ids of check and row


@dataclass(slots=True)
class FaultRecord:
    """What is known of a fault: the requirements that it broke when its rows were tried, and the rows that saw it."""

    breaks: tuple[str, ...]
    rows: set[Key] = field(default_factory=set)


@dataclass(slots=True)
class Record:
    """The rows with their costs in milliseconds, each rounded up to a power of two, and what they see."""

    costs: dict[Key, int] = field(default_factory=dict)
    faults: dict[str, FaultRecord] = field(default_factory=dict)


@cache
def list_server_rows() -> dict[Key, Case]:
    """Return every row for servers, hostile and dangerous ones too, by its ids."""
    every = list_profile_rows("certify", dangerous=True, subjects=Subjects(robustness=True), transports=TRANSPORTS)
    return {case.ids: case for case in every}


# --- the file ---------------------------------------------------------------------------------------------------------


def read_record() -> Record:
    """Return the record of the file; an empty one if there is no file."""
    if not RECORD.exists():
        return Record()
    kept = json.loads(RECORD.read_text(encoding="utf-8"))
    costs = {(check, row): cost for check, rows in kept["costs"].items() for row, cost in rows.items()}
    listed = {check: list(rows) for check, rows in kept["costs"].items()}
    found = {
        name: FaultRecord(tuple(breaks), {(check, listed[check][k]) for check, places in own.items() for k in places})
        for name, (breaks, own) in kept["faults"].items()
    }
    return Record(costs, found)


def write_record(record: Record) -> None:
    """Write a record, a line for each check and each fault; a fault has the places of its rows among the costs."""
    listed = _group_rows(record.costs)
    costs = {check: {row: record.costs[check, row] for row in own} for check, own in listed.items()}
    found = {
        name: [one.breaks, {check: [*map(listed[check].index, own)] for check, own in _group_rows(one.rows).items()}]
        for name, one in sorted(record.faults.items())
    }
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(of_it)}" for name, of_it in own.items())
        + "\n}"
        for part, own in (("costs", costs), ("faults", found))
    ]
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _group_rows(keys: Iterable[Key]) -> dict[str, list[str]]:
    """Return the ids of rows by check, all sorted."""
    found: dict[str, list[str]] = {}
    for check, row in sorted(keys):
        found.setdefault(check, []).append(row)
    return found


# --- what is new ------------------------------------------------------------------------------------------------------


def update_record(record: Record) -> Record:
    """Return a record of the faults and rows of today; what the given one does not know is run."""
    known, seen = faults.load(), read_seen_by()
    have_seen = {key for name in known for key in seen.get(name, ())}
    keys = [key for key, case in list_server_rows().items() if key in have_seen or not case.row.dangerous]
    new = [key for key in keys if key not in record.costs]
    jobs = {name: _list_untried(fault, keys, new, record) for name, fault in known.items()}
    tried = _run({name: rows for name, rows in jobs.items() if rows})
    found = {
        name: FaultRecord(
            fault.breaks, (_known_rows(fault, record) | tried.get(name, set()) | set(seen.get(name, ()))) & set(keys)
        )
        for name, fault in known.items()
    }
    costs = {**record.costs, **(measure_costs(new) if new else {})}
    return Record({key: costs[key] for key in keys}, found)


def _known_rows(fault: Fault, record: Record) -> set[Key]:
    """Return the rows that saw a fault; none if it breaks something else than at that time."""
    one = record.faults.get(fault.name)
    return one.rows if one is not None and one.breaks == fault.breaks else set()


def _list_untried(fault: Fault, keys: list[Key], new: Collection[Key], record: Record) -> list[Key]:
    """Return the rows that may see a fault and were not run on it."""
    one = record.faults.get(fault.name)
    is_new = one is None or one.breaks != fault.breaks
    fitting = [key for key in keys if may_see(fault, list_server_rows()[key])]
    if fault.broad:
        return fitting[:MAX_ROWS_OF_BROAD] if is_new else []
    return [key for key in fitting if is_new or key in new]


def may_see(fault: Fault, case: Case) -> bool:
    """Return whether a row judges what a fault breaks, in the kind of request that shows it."""
    if case.check.is_over_grpc != fault.over_grpc or case.row.dangerous:
        return False
    if fault.walks:
        return is_walk(case.check) and case.row.values[0] == fault.walks
    return fault.broad or bool(set(case.requirements) & set(fault.breaks))


def _run(jobs: Mapping[str, list[Key]]) -> dict[str, set[Key]]:
    """Return for each fault those of its rows that see it."""
    if not jobs:
        return {}
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        return dict(zip(jobs, pool.map(_find_seeing, jobs, jobs.values()), strict=True))


def _find_seeing(name: str, keys: list[Key]) -> set[Key]:
    fault = faults.load()[name]
    sighting = see(get_server_for(fault), fault, [list_server_rows()[key] for key in keys])
    missed = sighting.select("fail", "advisory")
    return {(miss.check, miss.row) for miss in missed if fault.broad or miss.requirement in fault.breaks}


# --- costs ------------------------------------------------------------------------------------------------------------


def measure_costs(keys: Collection[Key]) -> dict[Key, int]:
    """Return what each row costs against the bundled server in milliseconds, rounded up to a power of two."""
    rows = [list_server_rows()[key] for key in keys]
    hostile = [case for case in rows if _is_hostile(case)]
    others = [case for case in rows if not _is_hostile(case)]
    least: dict[Key, float] = {}
    for _ in range(TIMES):
        for key, seconds in (*_time_rows(others, False), *_time_rows(hostile, True)):
            least[key] = min(seconds, least.get(key, seconds))
    return {key: _round_up(seconds * 1000) for key, seconds in least.items()}


def _is_hostile(case: Case) -> bool:
    return case.requirement.is_of_robustness


def _time_rows(rows: Rows, is_hostile: bool) -> Iterator[tuple[Key, float]]:
    server = get_impatient_server() if is_hostile else get_server()
    server.replace()
    with serve_grpc(server) as address:
        before = monotonic()
        for (check, row), _ in zip(rows, judge_rows(server.url, rows, address), strict=True):
            yield (check.id, row.id), monotonic() - before
            before = monotonic()


def _round_up(milliseconds: float) -> int:
    cost = 1
    while cost < milliseconds:
        cost *= 2
    return cost
