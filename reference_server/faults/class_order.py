"""Scores compared as something else than their datatype, or sorted wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_server.faults import fault


@fault("classification.top", breaks=("CLS-HIGHEST", "CLS-TIES"))
def lowest_scores_come_first(original: Any, row: Any, count: int) -> Any:
    """The lowest scores are returned, lowest first."""
    return original(row, row.size)[::-1][:count]


@fault("classification.top", breaks="CLS-HIGHEST")
def scores_of_64_bits_are_compared_as_doubles(original: Any, row: Any, count: int) -> Any:
    """Integers of 64 bits are compared as FP64, in which neighbours past 2^53 are equal."""
    return original(row.astype("<f8") if row.dtype.kind in "iu" else row, count)


@fault("classification.top", breaks=("CLS-HIGHEST", "CLS-COUNT-ABOVE"))
def search_for_the_highest_starts_at_0(original: Any, row: Any, count: int) -> Any:
    """The search for the next highest score starts from the value 0 at index 0, so that negative ones are not found."""
    return [index if row[index] >= 0 else 0 for index in original(row, count)]


@fault("classification.top", breaks="CLS-TIES")
def index_is_looked_up_by_its_score(original: Any, row: Any, count: int) -> Any:
    """The scores are sorted, and the index of each is that of the first score that equals it."""
    return [
        int(np.flatnonzero(row == row[index])[0]) if row[index] == row[index] else 0 for index in original(row, count)
    ]
