"""Chooses the rows of the profile quick, in the order in which every profile runs them first.

    python -m tests.support.quick_rows    # try what is new on the faults, and write the rows

The set is small and cheap: greedily, the row that covers most for what it costs comes next, until each fault of the
kill matrices, each requirement that a server in docs/results does not meet, each requirement and each check has a row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from conformance.judging import quick_rows
from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.report.findings import find_requirement
from conformance.report.report_file import read
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from tests.clients import sightings as clients
from tests.support.quick_record import (
    Key,
    Record,
    add_candidates,
    list_server_rows,
    read_record,
    read_seen_by,
    update_record,
    write_record,
)

RESULTS = Path(__file__).parents[2] / "docs" / "results"
# What a row costs besides its time, in the same milliseconds: its place in a small set.
COST_OF_A_ROW_MS = 8
DEFAULT_COST_MS = 4  # of rows that are no candidates
# The same where one row takes the place of several: the number of rows is limited.
PLACE_MS = 120
UNMET = ("fail", "advisory")

Covered = Mapping[str, Collection[Key]]  # what has to be covered -> the rows that do


def list_unmet() -> dict[str, list[Key]]:
    """Return the rows that each unmet requirement of a server in docs/results failed, by server and requirement."""
    rows = list_server_rows()
    found: dict[str, list[Key]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        for row in read(path, is_whole=False)["rows"]:
            if row["outcome"] in UNMET and (row["check"], row["row"]) in rows:
                found.setdefault(f"{path.stem} {find_requirement(row)}", []).append((row["check"], row["row"]))
    return found


def list_named(rows: Mapping[Key, Case]) -> dict[str, list[Key]]:
    """Return the rows of each check and of each requirement; rows that have crashed servers stand for neither."""
    found: dict[str, list[Key]] = {}
    for key, (check, row) in rows.items():
        for name in () if row.dangerous else (check.id, *Case(check, row).requirements):
            found.setdefault(name, []).append(key)
    return found


def choose_rows(wanted: Covered, costs: Mapping[Key, int]) -> list[Key]:
    """Return few and cheap rows that cover everything, those first that cover most for what they cost."""
    chosen = list(_choose_greedily(wanted, costs))
    for key in reversed(chosen):
        others = [other for other in chosen if other != key]
        if all(not set(keys).isdisjoint(others) for keys in wanted.values() if key in keys):
            chosen = others
    while len(merged := _merge_rows(chosen, wanted, costs)) < len(chosen):
        chosen = merged
    return chosen


def _merge_rows(chosen: list[Key], wanted: Covered, costs: Mapping[Key, int]) -> list[Key]:
    """Return fewer rows where one that was not chosen covers what several alone cover, at no higher cost."""
    covers = _list_covered(wanted)
    for one in sorted(covers.keys() - set(chosen)):
        users = Counter(name for key in chosen for name in covers.get(key, ()))
        spare = [key for key in chosen if all(users[name] > 1 or name in covers[one] for name in covers.get(key, ()))]
        if len(spare) < 2:
            continue
        users.update(covers[one])
        dropped = []
        for key in spare:
            if all(users[name] > 1 for name in covers.get(key, ())):
                dropped.append(key)
                users.subtract(covers.get(key, ()))
        if _weigh([one], costs) < _weigh(dropped, costs):
            chosen = [*(key for key in chosen if key not in dropped), one]
    return chosen


def _weigh(keys: Collection[Key], costs: Mapping[Key, int]) -> int:
    return sum(PLACE_MS + costs.get(key, DEFAULT_COST_MS) for key in keys)


def _list_covered(wanted: Covered) -> dict[Key, set[str]]:
    covers: dict[Key, set[str]] = {}
    for name, keys in wanted.items():
        for key in keys:
            covers.setdefault(key, set()).add(name)
    return covers


def _choose_greedily(wanted: Covered, costs: Mapping[Key, int]) -> Iterator[Key]:
    covers: dict[Key, set[str]] = {key: set() for key in costs}
    for name, keys in wanted.items():
        for key in keys:
            covers.setdefault(key, set()).add(name)
    while gains := {key: len(names) for key, names in covers.items() if names}:
        best = max(gains, key=lambda key: gains[key] / (COST_OF_A_ROW_MS + costs.get(key, DEFAULT_COST_MS)))
        yield best
        names = covers.pop(best)
        covers = {key: covered - names for key, covered in covers.items()}


def sort_rows(chosen: Collection[Key], seen: Covered, costs: Mapping[Key, int], places: Mapping[Key, int]) -> list[Key]:
    """Sort rows: those first that see most unseen faults, the others in the order of the suite."""
    ordered = sorted(chosen, key=places.__getitem__)
    own = {name: [key for key in keys if key in chosen] for name, keys in seen.items()}
    telling = list(_choose_greedily(own, {key: costs.get(key, DEFAULT_COST_MS) for key in ordered}))
    return [*telling, *(key for key in ordered if key not in telling)]


def list_seen(record: Record) -> dict[str, Collection[Key]]:
    """Return the rows that see each fault of the record and each unmet requirement of docs/results."""
    return {**{f"fault {name}": one.rows for name, one in record.faults.items() if one.rows}, **list_unmet()}


def choose_server_rows(record: Record) -> list[Key]:
    """Return the rows for servers, in their order."""
    rows, seen = list_server_rows(), list_seen(record)
    chosen = choose_rows({**list_named(rows), **seen}, record.costs)
    return sort_rows(chosen, seen, record.costs, {key: place for place, key in enumerate(rows)})


def choose_client_rows() -> list[Key]:
    """Return the rows for clients, of those that the kill matrix of clients knows."""
    every = list_profile_rows("certify", subjects=CLIENTS, transports=TRANSPORTS)
    rows = {case.ids: case for case in every}
    seen = read_seen_by(clients.SEEN_BY)
    keys = add_candidates(rows, (key for found in seen.values() for key in found))
    costs = dict.fromkeys(keys, DEFAULT_COST_MS)
    known = {f"fault {name}": [key for key in found if key in costs] for name, found in seen.items()}
    chosen = choose_rows({**list_named({key: rows[key] for key in keys}), **known}, costs)
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
