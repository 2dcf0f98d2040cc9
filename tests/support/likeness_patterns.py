"""Writes which rows of the suite each fault fails: conformance/likeness/patterns.json.gz, by which runs are likened.

    python -m tests.support.likeness_patterns [FAULT...]

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

from conformance.judging.selection import collected_rows
from conformance.likeness.patterns import FILE, unpacked
from conformance.terms.check import Check, Row
from conformance.terms.extensions import TRANSPORTS
from reference_server import faults
from reference_server.faults import Fault
from tests.support.matrix import PROCESSES, read_steps, server, steps_of_rows
from tests.support.reach import Rows, relevant
from tests.support.samples import is_hostile, is_known, is_walk, rows_of, shuffled, walk_rows
from tests.support.seeing import Miss, see

OF_EACH = 4  # rows of each check that a fault meets first
UNMET = ("fail", "advisory")
Plain = dict[str, Any]
# Kind of rows -> check -> its rows, in the order of their bits.
Table = dict[str, dict[str, list[str]]]


# --- what a fault fails ----------------------------------------------------------------------------------------------


def misses_of(name: str, steps: Path) -> list[Miss]:
    """Return the rows that a fault keeps from being met; run in a worker process."""
    fault = faults.load()[name]
    if fault.walks:
        return see(server(), fault, walk_rows(fault.walks)).misses
    taken = read_steps(steps)[fault.over_grpc]
    quick, every = (
        relevant(fault, rows_of(profile, over_grpc=fault.over_grpc), taken)
        for profile in ("certify" if fault.large else "quick", "certify")
    )
    first = first_rows(fault, quick)
    found = see(server(), fault, first).misses
    done, missed = names_of(first), {miss.check for miss in found}
    more = [case for case in (quick if fault.broad else every) if case[0].id in missed]
    return [*found, *see(server(), fault, [case for case in more if not names_of([case]) & done]).misses]


def first_rows(fault: Fault, rows: Rows) -> Rows:
    """Return a few rows of each check, and all that answer for what the fault breaks."""
    taken: Counter[str] = Counter()
    found: Rows = []
    for check, row in shuffled(fault, rows):
        is_meant = bool(set(check.requirements(row)) & set(fault.breaks))
        if taken[check.id] < OF_EACH or is_meant or is_known(fault, (check, row)):
            taken[check.id] += 1
            found.append((check, row))
    chosen = names_of(found)
    return [case for case in rows if names_of([case]) & chosen]


def names_of(rows: Iterable[tuple[Check, Row]]) -> set[tuple[str, str]]:
    """Return the names of check and row."""
    return {(check.id, row.id) for check, row in rows}


# --- the file --------------------------------------------------------------------------------------------------------


def with_a_pattern() -> dict[str, Fault]:
    """Return the faults that a run can look like: all but those of hostile requests, which few runs send."""
    return {name: fault for name, fault in faults.load().items() if not is_hostile(fault)}


def kind_of(check: Check) -> str:
    """Return the kind of a check's rows: which faults are run against them is the same for all of a kind."""
    return "walk" if is_walk(check) else "grpc" if check.is_over_grpc else "http"


def met_by(fault: Fault) -> list[str]:
    """Return the kinds of rows that a fault meets."""
    return ["walk"] if fault.walks else ["grpc"] if fault.over_grpc else ["http"]


def table(before: Table) -> Table:
    """Return every check with its rows; those that the file had before keep their places."""
    cases = [(check, row.id) for check, row in collected_rows("certify", dangerous=True, transports=TRANSPORTS)]
    found: Table = {kind: {} for kind in ("http", "grpc", "walk")}
    for check, row in cases:
        kind = kind_of(check)
        rows = found[kind].setdefault(check.id, list(before.get(kind, {}).get(check.id, ())))
        if row not in rows:
            rows.append(row)
    return found


def entry(fault: Fault, misses: Iterable[Miss], places: Mapping[str, Sequence[str]]) -> Plain:
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
        "met": met_by(fault),
        "unmet": {check: {name: f"{rows:x}" for name, rows in found.items()} for check, found in unmet.items()},
        "stuck": {check: f"{rows:x}" for check, rows in stuck.items() if rows},
    }


def described(fault: Fault, found: Plain) -> Plain:
    """Return an entry with what the fault says of itself, which may be that it breaks all that the suite finds."""
    missed: Counter[str] = Counter()
    for rows_by_requirement in found["unmet"].values():
        missed.update({name: int(rows, 16).bit_count() for name, rows in rows_by_requirement.items()})
    breaks = list(fault.breaks) or [name for name, _ in missed.most_common()]
    return {**found, "summary": fault.summary, "breaks": breaks}


def read() -> Plain:
    """Return the file as it is, or an empty one."""
    return unpacked(FILE.read_bytes()) if FILE.exists() else {"rows": {}, "faults": {}}


def packed(rows: Table, entries: Mapping[str, Plain]) -> bytes:
    """Return what the file is to hold."""
    known, present = with_a_pattern(), {check for found in rows.values() for check in found}
    kept = {name: described(known[name], _without_gone(entries[name], present)) for name in known if name in entries}
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
    rows = table(before["rows"] if names else {})
    places = {check: found for checks_of_kind in rows.values() for check, found in checks_of_kind.items()}
    entries = dict(before["faults"]) if names else {}
    pool = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    with pool, TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        steps.write_bytes(pickle.dumps(tuple(pool.map(steps_of_rows, (faults.load,) * 2, (False, True)))))
        futures = {pool.submit(misses_of, name, steps): name for name in names or with_a_pattern()}
        for future in as_completed(futures):
            name = futures[future]
            entries[name] = entry(faults.load()[name], future.result(), places)
            print(f"{name}: {sum(map(len, entries[name]['unmet'].values()))} symptoms", flush=True)  # noqa: T201
    FILE.write_bytes(packed(rows, entries))


if __name__ == "__main__":
    main(sys.argv[1:])
