"""Measures how many of the faults for which no row was chosen the rows of the profile quick see.

    python -m tests.support.quick_share

The rows are chosen as if nobody knew some of the faults, nor what servers in docs/results do not meet. Printed is the
share of these faults that they see: of each tenth of all faults, and of those over gRPC; of the history of each vendor,
and of what resembles the bugs of each stranger's server; last that of tenths with other budgets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Set
from zlib import crc32

from reference_server import faults
from tests.strangers.bugs import list_bugs, read_caught
from tests.support.history_page import read_bugs
from tests.support.quick_record import Record, list_server_rows, read_record
from tests.support.quick_rows import choose_server_rows, is_usual

PARTS = 10
SHARES_OF_BUDGET = (0.8, 0.9, 1.1, 1.25, 1.5)

Group = Set[str]  # names of faults


def list_tenths(names: Collection[str]) -> dict[str, Group]:
    """Return parts of equal sizes, which are drawn."""
    drawn = sorted(names, key=lambda name: crc32(name.encode()))
    return {f"tenth {part}": set(drawn[part::PARTS]) for part in range(PARTS)}


def list_histories() -> dict[str, Group]:
    """Return the faults that are bugs of a vendor's servers, by vendor."""
    found: dict[str, set[str]] = defaultdict(set)
    for bug in read_bugs():
        if bug.fault and not bug.is_of_client:
            found[bug.repository.partition("/")[0]].add(bug.fault)
    return dict(found)


def list_likenesses(record: Record) -> dict[str, Group]:
    """Return for each stranger's server the faults that break what one of its bugs breaks, and that its row sees."""
    caught = read_caught()
    found: dict[str, set[str]] = defaultdict(set)
    for bug in list_bugs():
        if sighting := caught.get(f"{bug.server}/{bug.name}"):
            found[bug.server] |= {
                name for name, one in record.faults.items() if sighting.first in one.breaks and sighting.row in one.rows
            }
    return dict(found)


def count_seen(record: Record, unknown: Group, share: float = 1.0) -> tuple[int, int]:
    """Return how many of some faults the rows see that are chosen without them, and how many rows these are."""
    seen = {name: one.rows for name, one in record.faults.items() if name not in unknown}
    chosen = set(choose_server_rows(seen, record.costs, share))
    rows = [key for key in chosen if is_usual(list_server_rows()[key])]
    return sum(not chosen.isdisjoint(record.faults[name].rows) for name in unknown), len(rows)


def describe(record: Record, groups: Mapping[str, Group], share: float = 1.0) -> str:
    """Return what share of groups of faults is seen, each of them left out in turn."""
    counts = [count_seen(record, group, share) for group in groups.values()]
    seen, every = sum(count for count, _ in counts), sum(len(group) for group in groups.values())
    return f"{seen} of {every} ({seen / every:.1%}), with {sum(rows for _, rows in counts) // len(counts)} rows"


def main() -> None:
    """Print the shares."""
    record = read_record()
    tenths = list_tenths(record.faults)
    print("tenths:", describe(record, tenths))  # noqa: T201
    over_grpc = {name for name, known in faults.load().items() if known.over_grpc}
    print("tenths over gRPC:", describe(record, list_tenths(over_grpc & record.faults.keys())))  # noqa: T201
    for name, group in {**list_histories(), **list_likenesses(record)}.items():
        print(f"{name}:", describe(record, {name: group}))  # noqa: T201
    for share in SHARES_OF_BUDGET:
        print(f"tenths in {share:.0%} of the time:", describe(record, tenths, share))  # noqa: T201


if __name__ == "__main__":
    main()
