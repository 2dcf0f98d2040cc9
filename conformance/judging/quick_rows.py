"""The rows of the profile `quick`: a small set that detects most faults. Every profile runs these rows first.

`python -m tests.support.quick_rows` chooses the set and orders it, most informative rows first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path

from conformance.judging import packs
from conformance.spec.check import Case
from conformance.spec.extensions import ROBUSTNESS

FILE = Path(__file__).with_suffix(".json")
MAX_SUBSTITUTES = 2  # rows added for a check if none of its rows in the set applies


@cache
def _load_quick_positions() -> dict[tuple[str, str], int]:
    """Return the position of each quick row, by check and row id."""
    return {(check, row): place for place, (check, row) in enumerate(json.loads(FILE.read_text(encoding="utf-8")))}


def find_quick_position(case: Case) -> int | None:
    """Return the position of a row in the set of quick rows; None if the row is not in the set."""
    name = case.row.id if case.row.model is None else case.row.id.removesuffix(f"@{case.row.model}")
    return _load_quick_positions().get((case.check.id, name))


def sort_for_run(cases: Iterable[Case]) -> list[Case]:
    """Sort rows into the order in which they run; rows outside the set of quick rows keep their order."""
    return sorted(cases, key=build_order_key)


def build_order_key(case: Case) -> tuple[int, bool, int]:
    """Return a key that sorts quick rows first, rows that have crashed servers late, then packs, and hostile rows last.

    A pack cannot disturb the rows of the suite, because these have run before.
    """
    place = find_quick_position(case)
    kind = 2 if case.check.area == ROBUSTNESS else int(case.check.area in packs.list_loaded())
    return kind, case.row.dangerous, len(_load_quick_positions()) if place is None else place


def select_quick_rows(
    cases: Collection[Case], applies: Callable[[Case], bool], like_another: Collection[str] = ()
) -> list[Case]:
    """Return the quick rows, and substitutes for checks without a quick row that applies to the target.

    The substitutes are the first rows of such a check that apply. The model roles and each deployed model have
    substitutes of their own, because a check has separate rows for each of them. A deployed model `like_another` has
    only one row for each area, the most informative row that applies.
    """
    few: dict[tuple[str, str | None], tuple[str, str]] = {}
    for case in sort_for_run(case for case in cases if case.row.model in like_another):
        place = case.check.area, case.row.model
        if place not in few and applies(case):
            few[place] = case.ids
    cases = [
        case
        for case in cases
        if case.row.model not in like_another or few.get((case.check.area, case.row.model)) == case.ids
    ]
    own = [case for case in cases if find_quick_position(case) is not None]
    served = {_build_subject_key(case) for case in own if applies(case)}
    chosen = {case.ids for case in own}
    taken: Counter[tuple[str, str | None]] = Counter()
    for case in cases:
        subject = _build_subject_key(case)
        if subject not in served and taken[subject] < MAX_SUBSTITUTES and applies(case):
            taken[subject] += 1
            chosen.add(case.ids)
    return [case for case in cases if case.ids in chosen or case.requirement.is_of_pack]


def _build_subject_key(case: Case) -> tuple[str, str | None]:
    return case.check.id, case.row.model
