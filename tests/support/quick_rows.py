"""Chooses the rows of the profile quick, in the order in which every profile runs them first.

    python -m tests.support.quick_rows    # try what is new on the faults, and write the rows

The set is cheap: greedily, the row that covers most for what it costs comes next, until each requirement has a row of
each of its checks, and rows see each fault of the kill matrices and each requirement that a server in docs/results does
not meet. What is left of a budget of time goes to rows of other checks that see the same, and to cheap rows of checks
whose rows each see something else: the faults that count are those that nobody knows yet.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from heapq import heapify, heappop, heappush
from math import fsum
from pathlib import Path

from conformance.judging import quick_rows
from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.report.findings import find_requirement
from conformance.report.report_file import read_folder
from conformance.spec.check import Case
from conformance.spec.extensions import GRPC, HTTP, TRANSPORTS
from tests.clients import sightings as clients
from tests.support.quick_record import Key, Record, list_server_rows, read_record, update_record, write_record
from tests.support.samples import read_seen_by

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COST_OF_A_ROW_MS = 3  # of each row besides its own: in a process of its own it takes longer, and it is reported
DEFAULT_COST_MS = 4  # of rows of clients, and of rows that have crashed servers
# Most of the budget is what known faults and checks need. The rest goes to rows of about a millisecond each, which see
# what nobody knows yet; `python -m tests.support.quick_share` measures how much of it.
# Each transport has a budget of its own, because a server may have one of them alone.
BUDGETS_MS = {HTTP: 7700, GRPC: 4500}
BUDGET_OF_CLIENTS_MS = 1800
# A fault that nobody knows yet resembles known ones: rows of so many checks see each, and each further one weighs less.
CHECKS_OF_A_FAULT = 4
FIRST, AGAIN = 18, 6
UNKNOWN = 3  # of a row of an average check for what nobody knows yet
ROWS_OF_DOUBT = 5  # a check is taken for an average one as if it had so many more rows, which were
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


def choose_rows(
    wanted: Covered,
    costs: Mapping[Key, int],
    seen: Set[str] = frozenset(),
    budget: int = 0,
    more: Set[Key] = frozenset(),
) -> list[Key]:
    """Return cheap rows that cover everything, those first that are worth most for what they cost.

    Args:
        wanted: what has to be covered.
        costs: of rows in milliseconds.
        seen: what is better covered by rows of `CHECKS_OF_A_FAULT` checks.
        budget: milliseconds that rows of `more` may take together; those that nothing else covers are taken anyway.
        more: rows that are taken although what they cover is covered already.
    """
    promises = find_promises([wanted[name] for name in seen], more)
    covers: dict[Key, set[str]] = {key: set() for key in more}
    for name, keys in wanted.items():
        for key in keys:
            covers.setdefault(key, set()).add(name)
    checks: dict[str, set[str]] = {name: set() for name in wanted}

    def weigh(key: Key) -> float:
        gains = sum(_weigh_again(key[0], checks[name], name in seen) if checks[name] else FIRST for name in covers[key])
        return -(gains + UNKNOWN * promises.get(key[0], 0)) / _find_cost(key, costs)

    ordered: dict[Key, bool] = {}  # whether a row covers what no row before it covers
    queue = [(weigh(key), key) for key in covers]
    heapify(queue)
    while queue:  # a row weighs less with each one taken, so that only the heaviest has to be weighed again
        weight, best = heappop(queue)
        if (now := weigh(best)) != weight:
            heappush(queue, (now, best))
            continue
        ordered[best] = not all(checks[name] for name in covers[best])
        for name in covers[best]:
            checks[name].add(best[0])
    return _keep_to_budget(ordered, {key: _find_cost(key, costs) for key in more}, budget)


def find_promises(seen: Iterable[Collection[Key]], rows: Collection[Key]) -> dict[str, float]:
    """Return for each check how much its rows see that no other row sees, on average and beside an average check.

    Where each row of a check sees a fault of its own, the other rows see faults that nobody knows yet.
    """
    alone: dict[str, float] = defaultdict(float)
    for keys in seen:
        for check, _ in keys:
            alone[check] += 1 / len(keys)
    counts = Counter(check for check, _ in rows)
    of_a_row = fsum(alone.values()) / max(1, len(rows)) or 1.0  # fsum: the same in every order of rows
    return {
        check: (alone[check] / of_a_row + ROWS_OF_DOUBT) / (count + ROWS_OF_DOUBT) for check, count in counts.items()
    }


def _weigh_again(check: str, checks: Collection[str], is_seen: bool) -> int:
    """Return the weight of a row of one more check for what is covered already."""
    return AGAIN // len(checks) if is_seen and check not in checks and len(checks) < CHECKS_OF_A_FAULT else 0


def _find_cost(key: Key, costs: Mapping[Key, int]) -> int:
    return COST_OF_A_ROW_MS + costs.get(key, DEFAULT_COST_MS)


def _keep_to_budget(ordered: Mapping[Key, bool], costs: Mapping[Key, int], budget: int) -> list[Key]:
    """Return the rows that are needed, and of those with costs as many others as the budget allows."""
    left = budget - sum(costs.get(key, 0) for key, is_needed in ordered.items() if is_needed)
    chosen = []
    for key, is_needed in ordered.items():
        if is_needed or costs.get(key, left + 1) <= left:
            chosen.append(key)
            left -= 0 if is_needed else costs[key]
    return chosen


def sort_rows(chosen: Collection[Key], seen: Covered, costs: Mapping[Key, int], places: Mapping[Key, int]) -> list[Key]:
    """Sort rows: those first that see most unseen faults, the others in the order of the suite."""
    ordered = sorted(chosen, key=places.__getitem__)
    own = {name: [key for key in keys if key in chosen] for name, keys in seen.items()}
    telling = choose_rows(own, {key: costs.get(key, DEFAULT_COST_MS) for key in ordered})
    return [*telling, *(key for key in ordered if key not in telling)]


def list_seen(record: Record) -> dict[str, Collection[Key]]:
    """Return the rows that see each fault of the record and each unmet requirement of docs/results."""
    return {**{f"fault {name}": one.rows for name, one in record.faults.items() if one.rows}, **list_unmet()}


def choose_server_rows(seen: Covered, costs: Mapping[Key, int], share_of_budget: float = 1.0) -> list[Key]:
    """Return the rows for servers, in their order; the budgets are of those that run unless others are asked for."""
    rows = list_server_rows()
    chosen: list[Key] = []
    for transport, budget in BUDGETS_MS.items():
        own = {key: case for key, case in rows.items() if case.check.is_over_grpc == (transport == GRPC)}
        usual = {key for key, case in own.items() if is_usual(case)}
        seen_over_it = {name: keys for name, every in seen.items() if (keys := [key for key in every if key in own])}
        wanted = {**list_named(own), **seen_over_it}
        chosen += choose_rows(wanted, costs, seen_over_it.keys(), round(share_of_budget * budget), usual)
    return sort_rows(chosen, seen, costs, {key: place for place, key in enumerate(rows)})


def is_usual(case: Case) -> bool:
    """Return whether a row runs unless hostile or dangerous ones are asked for."""
    return not (case.row.dangerous or case.requirement.is_of_robustness)


def choose_client_rows() -> list[Key]:
    """Return the rows for clients."""
    every = list_profile_rows("certify", subjects=CLIENTS, transports=TRANSPORTS)
    rows = {case.ids: case for case in every}
    known = {f"fault {name}": found for name, found in read_seen_by(clients.SEEN_BY).items()}
    chosen = choose_rows({**list_named(rows), **known}, {}, known.keys(), BUDGET_OF_CLIENTS_MS, rows.keys())
    return sort_rows(chosen, known, {}, {key: place for place, key in enumerate(rows)})


def main() -> None:
    """Bring the record up to date, and write the rows."""
    record = update_record(read_record())
    write_record(record)
    chosen = [*choose_server_rows(list_seen(record), record.costs), *choose_client_rows()]
    lines = ",\n".join(json.dumps(key) for key in chosen)
    quick_rows.FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(chosen)} rows")  # noqa: T201


if __name__ == "__main__":
    main()
