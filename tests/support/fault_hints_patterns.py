"""Writes which rows of the suite each fault fails: conformance/fault_hints/patterns.json.gz, by which runs are likened.

    python -m tests.support.fault_hints_patterns [FAULT...]

A fault meets a few rows of every check that can see it, then all rows of each check that did; a fault of the walk meets
the rows of its kind. All faults take about an hour of one core. Where
some are named, these alone are run anew, and rows keep their places in the file. What is gone, of faults and of checks,
leaves it in any case.
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance.fault_hints.patterns import FILE, unpack
from conformance.judging.selection import collected_rows
from conformance.spec.check import Check, Row
from conformance.spec.extensions import TRANSPORTS
from reference_server import faults
from reference_server.faults import Fault
from tests.support.matrix import PROCESSES, get_server, read_steps, trace_rows
from tests.support.samples import collect_rows, collect_walk_rows, is_hostile, is_known, is_walk, shuffle_rows
from tests.support.sightings import UnmetRow, see
from tests.support.step_tracing import Rows, select_relevant

ROWS_PER_CHECK = 4  # rows of each check that a fault meets first
UNMET = ("fail", "advisory")
Plain = dict[str, Any]
# Kind of rows -> check -> its rows, in the order of their bits.
Table = dict[str, dict[str, list[str]]]


# --- what a fault fails ----------------------------------------------------------------------------------------------


def find_misses(name: str, steps: Path) -> list[UnmetRow]:
    """Return the rows that a fault keeps from being met; run in a worker process."""
    fault = faults.load()[name]
    if fault.walks:
        return see(get_server(), fault, collect_walk_rows(fault.walks)).misses
    taken = read_steps(steps)[fault.over_grpc]
    quick, every = (
        select_relevant(fault, collect_rows(profile, over_grpc=fault.over_grpc), taken)
        for profile in ("certify" if fault.large else "quick", "certify")
    )
    first = select_first_rows(fault, quick)
    found = see(get_server(), fault, first).misses
    done, missed = list_names(first), {miss.check for miss in found}
    more = [case for case in (quick if fault.broad else every) if case[0].id in missed]
    return [*found, *see(get_server(), fault, [case for case in more if not list_names([case]) & done]).misses]


def select_first_rows(fault: Fault, rows: Rows) -> Rows:
    """Return a few rows of each check, and all that answer for what the fault breaks."""
    taken: Counter[str] = Counter()
    found: Rows = []
    for check, row in shuffle_rows(fault, rows):
        is_meant = bool(set(check.requirements(row)) & set(fault.breaks))
        if taken[check.id] < ROWS_PER_CHECK or is_meant or is_known(fault, (check, row)):
            taken[check.id] += 1
            found.append((check, row))
    chosen = list_names(found)
    return [case for case in rows if list_names([case]) & chosen]


def list_names(rows: Iterable[tuple[Check, Row]]) -> set[tuple[str, str]]:
    """Return the names of check and row."""
    return {(check.id, row.id) for check, row in rows}


# --- the file --------------------------------------------------------------------------------------------------------


def find_patterned_faults() -> dict[str, Fault]:
    """Return the faults that a run can look like: all but those of hostile requests, which few runs send."""
    return {name: fault for name, fault in faults.load().items() if not is_hostile(fault)}


def find_kind(check: Check) -> str:
    """Return the kind of a check's rows: which faults are run against them is the same for all of a kind."""
    return "walk" if is_walk(check) else "grpc" if check.is_over_grpc else "http"


def find_met_kinds(fault: Fault) -> list[str]:
    """Return the kinds of rows that a fault meets."""
    return ["walk"] if fault.walks else ["grpc"] if fault.over_grpc else ["http"]


def make_table(before: Table) -> Table:
    """Return every check with its rows; those that the file had before keep their places."""
    cases = [(check, row.id) for check, row in collected_rows("certify", dangerous=True, transports=TRANSPORTS)]
    found: Table = {kind: {} for kind in ("http", "grpc", "walk")}
    for check, row in cases:
        kind = find_kind(check)
        rows = found[kind].setdefault(check.id, list(before.get(kind, {}).get(check.id, ())))
        if row not in rows:
            rows.append(row)
    return found


def make_entry(fault: Fault, misses: Iterable[UnmetRow], places: Mapping[str, Sequence[str]]) -> Plain:
    """Return what the file says of a fault.

    Raises:
        ValueError: nothing sees it.
    """
    unmet: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    stuck: dict[str, int] = defaultdict(int)
    for miss in misses:
        bit = 1 << places[miss.check].index(miss.row)
        if miss.outcome in UNMET:
            unmet[miss.check][miss.requirement] |= bit
        else:
            stuck[miss.check] |= bit
    if not unmet:
        raise ValueError(f"nothing sees {fault.name}")
    return {
        "met": find_met_kinds(fault),
        "unmet": {check: {name: f"{rows:x}" for name, rows in found.items()} for check, found in unmet.items()},
        "stuck": {check: f"{rows:x}" for check, rows in stuck.items() if rows},
    }


def describe_fault(fault: Fault, found: Plain) -> Plain:
    """Return an entry with what the fault says of itself, which may be that it breaks all that the suite finds."""
    missed: Counter[str] = Counter()
    for rows_by_requirement in found["unmet"].values():
        missed.update({name: int(rows, 16).bit_count() for name, rows in rows_by_requirement.items()})
    breaks = list(fault.breaks) or [name for name, _ in missed.most_common()]
    return {**found, "summary": fault.summary, "breaks": breaks}


def read() -> Plain:
    """Return the file as it is, or an empty one."""
    return unpack(FILE.read_bytes()) if FILE.exists() else {"rows": {}, "faults": {}}


def pack(rows: Table, entries: Mapping[str, Plain]) -> bytes:
    """Return what the file is to hold."""
    known, present = find_patterned_faults(), {check for found in rows.values() for check in found}
    kept = {
        name: describe_fault(known[name], _without_gone(entries[name], present)) for name in known if name in entries
    }
    text = json.dumps({"rows": rows, "faults": kept}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _without_gone(found: Plain, present: set[str]) -> Plain:
    """Return an entry without checks that are gone."""
    kept = {
        part: {check: rows for check, rows in found[part].items() if check in present} for part in ("unmet", "stuck")
    }
    return {**found, **kept}


def main(names: Sequence[str]) -> None:
    """Run the suite against every fault, or some, and write what came of it; what is not run stays as it was."""
    before = read()
    rows = make_table(before["rows"] if names else {})
    places = {check: found for checks_of_kind in rows.values() for check, found in checks_of_kind.items()}
    entries = dict(before["faults"]) if names else {}
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(trace_rows, (faults.load,) * 2, (False, True)))))
        futures = {pool.submit(find_misses, name, steps): name for name in names or find_patterned_faults()}
        for future in as_completed(futures):
            name = futures[future]
            entries[name] = make_entry(faults.load()[name], future.result(), places)
            print(f"{name}: {sum(map(len, entries[name]['unmet'].values()))} symptoms", flush=True)  # noqa: T201
    FILE.write_bytes(pack(rows, entries))


if __name__ == "__main__":
    main(sys.argv[1:])
