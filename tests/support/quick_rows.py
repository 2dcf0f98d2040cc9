"""Chooses the rows of the profile quick, in the order in which every profile runs them first.

    python -m tests.support.quick_rows    # try what is new on the faults, and write the rows

The set is cheap: greedily, the row that covers most for what it costs comes next, until each requirement has a row of
each of its checks, and rows of several checks see each fault of the kill matrices and each requirement that a server in
docs/results does not meet: the faults that count are those that nobody knows yet, and they resemble the known ones.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Set
from heapq import heapify, heappop, heappush
from pathlib import Path

from conformance.judging import quick_rows
from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.report.findings import find_requirement
from conformance.report.report_file import read_folder
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from tests.clients import sightings as clients
from tests.support.quick_record import (
    Key,
    Record,
    add_candidates,
    list_server_rows,
    read_record,
    update_record,
    write_record,
)
from tests.support.samples import read_seen_by

RESULTS = Path(__file__).parents[2] / "docs" / "results"
# What a row costs besides its time, in the same milliseconds: its place in a small set.
COST_OF_A_ROW_MS = 8
DEFAULT_COST_MS = 4  # of rows that are no candidates
# A fault that nobody knows yet resembles known ones: rows of so many checks see each, and each further one weighs less.
CHECKS_OF_A_FAULT = 4
FIRST, AGAIN = 18, 6
UNMET = ("fail", "advisory")

Covered = Mapping[str, Collection[Key]]  # what has to be covered -> the rows that do


def list_unmet() -> dict[str, list[Key]]:
    """Return the rows that each unmet requirement of a server in docs/results failed, by server and requirement."""
    rows = list_server_rows()
    found: dict[str, list[Key]] = {}
    for name, report in read_folder(RESULTS):
        for row in report["rows"]:
            if row["outcome"] in UNMET and (row["check"], row["row"]) in rows:
                found.setdefault(f"{name} {find_requirement(row)}", []).append((row["check"], row["row"]))
    return found


def list_named(rows: Mapping[Key, Case]) -> dict[str, list[Key]]:
    """Return the rows of each check for each of its requirements, without rows that have crashed servers."""
    found: dict[str, list[Key]] = {}
    for key, (check, row) in rows.items():
        for name in () if row.dangerous else Case(check, row).requirements:
            found.setdefault(f"{check.id} {name}", []).append(key)
    return found


def choose_rows(wanted: Covered, costs: Mapping[Key, int], seen: Set[str] = frozenset()) -> list[Key]:
    """Return cheap rows that cover everything, those first that cover most for what they cost.

    What is `seen` is covered by rows of up to `CHECKS_OF_A_FAULT` checks, where so many see it.
    """
    covers: dict[Key, set[str]] = {key: set() for key in costs}
    for name, keys in wanted.items():
        for key in keys:
            covers.setdefault(key, set()).add(name)
    checks: dict[str, set[str]] = {name: set() for name in wanted}

    def weigh(key: Key) -> float:
        gains = (_weigh_again(key[0], checks[name], name in seen) if checks[name] else FIRST for name in covers[key])
        return -sum(gains) / (COST_OF_A_ROW_MS + costs.get(key, DEFAULT_COST_MS))

    chosen: list[Key] = []
    queue = [(weigh(key), key) for key in covers if covers[key]]
    heapify(queue)
    while queue:  # a row weighs less with each one chosen, so that only the heaviest has to be weighed again
        weight, best = heappop(queue)
        if (now := weigh(best)) == weight:
            chosen.append(best)
            for name in covers[best]:
                checks[name].add(best[0])
        elif now:
            heappush(queue, (now, best))
    return chosen


def _weigh_again(check: str, checks: Collection[str], is_seen: bool) -> int:
    """Return the weight of a row of one more check for what is covered already."""
    return AGAIN // len(checks) if is_seen and check not in checks and len(checks) < CHECKS_OF_A_FAULT else 0


def sort_rows(chosen: Collection[Key], seen: Covered, costs: Mapping[Key, int], places: Mapping[Key, int]) -> list[Key]:
    """Sort rows: those first that see most unseen faults, the others in the order of the suite."""
    ordered = sorted(chosen, key=places.__getitem__)
    own = {name: [key for key in keys if key in chosen] for name, keys in seen.items()}
    telling = choose_rows(own, {key: costs.get(key, DEFAULT_COST_MS) for key in ordered})
    return [*telling, *(key for key in ordered if key not in telling)]


def list_seen(record: Record) -> dict[str, Collection[Key]]:
    """Return the rows that see each fault of the record and each unmet requirement of docs/results."""
    return {**{f"fault {name}": one.rows for name, one in record.faults.items() if one.rows}, **list_unmet()}


def choose_server_rows(record: Record) -> list[Key]:
    """Return the rows for servers, in their order."""
    rows, seen = list_server_rows(), list_seen(record)
    chosen = choose_rows({**list_named(rows), **seen}, record.costs, seen.keys())
    return sort_rows(chosen, seen, record.costs, {key: place for place, key in enumerate(rows)})


def choose_client_rows() -> list[Key]:
    """Return the rows for clients, of those that the kill matrix of clients knows."""
    every = list_profile_rows("certify", subjects=CLIENTS, transports=TRANSPORTS)
    rows = {case.ids: case for case in every}
    seen = read_seen_by(clients.SEEN_BY)
    keys = add_candidates(rows, (key for found in seen.values() for key in found))
    costs = dict.fromkeys(keys, DEFAULT_COST_MS)
    known = {f"fault {name}": [key for key in found if key in costs] for name, found in seen.items()}
    chosen = choose_rows({**list_named({key: rows[key] for key in keys}), **known}, costs, known.keys())
    return sort_rows(chosen, known, costs, {key: place for place, key in enumerate(rows)})


def main() -> None:
    """Bring the record up to date, and write the rows."""
    record = update_record(read_record())
    write_record(record)
    chosen = [*choose_server_rows(record), *choose_client_rows()]
    lines = ",\n".join(json.dumps(key) for key in chosen)
    quick_rows.FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(chosen)} rows")  # noqa: T201


if __name__ == "__main__":
    main()
