"""The rows of the profile `quick`: a small set that detects most faults. Every profile runs these rows first.

`python -m tests.support.quick_rows` chooses the set and orders it, most informative rows first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path

from conformance.spec.check import Check, Row
from conformance.spec.extensions import ROBUSTNESS

FILE = Path(__file__).with_suffix(".json")
MAX_SUBSTITUTES = 2  # rows added for a check if none of its rows in the set applies

Case = tuple[Check, Row]


@cache
def _load_places() -> dict[tuple[str, str], int]:
    return {(check, row): place for place, (check, row) in enumerate(json.loads(FILE.read_text(encoding="utf-8")))}


def find_place(check: Check, row: Row) -> int | None:
    """Return the index of a row in the set of quick rows; None if the row is not in the set."""
    name = row.id if row.model is None else row.id.removesuffix(f"@{row.model}")
    return _load_places().get((check.id, name))


def sort_for_run(cases: Iterable[Case]) -> list[Case]:
    """Sort rows into the order in which they run; rows outside the set of quick rows keep their order."""
    return sorted(cases, key=lambda case: find_turn(*case))


def find_turn(check: Check, row: Row) -> tuple[bool, bool, int]:
    """Return a sort key: rows of the set first, rows that have crashed servers late, and hostile rows last."""
    place = find_place(check, row)
    return check.area == ROBUSTNESS, row.dangerous, len(_load_places()) if place is None else place


def select_quick_rows(cases: Collection[Case], applies: Callable[[Check, Row], bool]) -> list[Case]:
    """Return the rows of the set, and substitutes: the first applicable rows of checks without such a row in the set.

    The roles and each deployed model count separately, because a check has other rows for each of them.
    """
    own = [case for case in cases if find_place(*case) is not None]
    served = {_build_subject_key(*case) for case in own if applies(*case)}
    substitutes: set[tuple[str, str]] = set()
    taken: Counter[tuple[str, str | None]] = Counter()
    for check, row in cases:
        subject = _build_subject_key(check, row)
        if subject not in served and taken[subject] < MAX_SUBSTITUTES and applies(check, row):
            taken[subject] += 1
            substitutes.add((check.id, row.id))
    return [
        (check, row) for check, row in cases if find_place(check, row) is not None or (check.id, row.id) in substitutes
    ]


def _build_subject_key(check: Check, row: Row) -> tuple[str, str | None]:
    return check.id, row.model
