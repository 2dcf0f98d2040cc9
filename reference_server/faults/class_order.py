"""Scores compared as something else than their datatype, or sorted wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_server.faults import fault


@fault("classification.top", breaks=("CLS-HIGHEST", "CLS-TIES"))
def lowest_scores_come_first(original: Any, row: Any, count: int) -> Any:
    """The lowest scores are returned, lowest first."""
    return original(row, row.size)[::-1][:count]


@fault("classification.top", breaks=("CLS-HIGHEST", "CLS-TIES"))
def highest_scores_stay_in_index_order(original: Any, row: Any, count: int) -> Any:
    """The highest scores are found, and returned in the order of their indices."""
    return sorted(original(row, count))


@fault("classification.top", breaks="CLS-HIGHEST")
def scores_are_compared_without_sign(_original: Any, row: Any, count: int) -> Any:
    """The scores with the greatest magnitude are taken for the highest."""
    return sorted(range(row.size), key=lambda index: -abs(row[index].item()))[:count]


@fault("classification.top", breaks="CLS-HIGHEST")
def scores_are_compared_as_texts(_original: Any, row: Any, count: int) -> Any:
    """The scores are sorted as the texts that they are written as."""
    return sorted(range(row.size), key=lambda index: str(row[index]), reverse=True)[:count]


@fault("classification.top", breaks="CLS-HIGHEST")
def unsigned_scores_are_compared_as_signed(original: Any, row: Any, count: int) -> Any:
    """The upper half of an unsigned datatype ranks below 0."""
    return original(row.view(row.dtype.str.replace("u", "i")) if row.dtype.kind == "u" else row, count)


@fault("classification.top", breaks="CLS-HIGHEST")
def scores_of_64_bits_are_compared_as_doubles(original: Any, row: Any, count: int) -> Any:
    """Integers of 64 bits are compared as FP64, in which neighbours past 2^53 are equal."""
    return original(row.astype("<f8") if row.dtype.kind in "iu" else row, count)


@fault("classification.top", breaks="CLS-HIGHEST")
def fp64_scores_are_compared_as_fp32(original: Any, row: Any, count: int) -> Any:
    """Scores of FP64 are compared in single precision."""
    with np.errstate(over="ignore"):
        return original(row.astype("<f4") if row.dtype.str == "<f8" else row, count)


@fault("classification.top", breaks="CLS-HIGHEST")
def fp32_scores_are_compared_by_their_bits(original: Any, row: Any, count: int) -> Any:
    """Scores of FP32 are compared as integers of the same bits, which turns the order of negative ones round."""
    return original(row.view("<i4") if row.dtype.str == "<f4" else row, count)


@fault("classification.top", breaks="CLS-HIGHEST")
def infinite_scores_come_last(original: Any, row: Any, count: int) -> Any:
    """Scores that are not finite come last, as if they were NaN."""
    return original(np.where(np.isfinite(row), row, np.nan) if row.dtype.kind == "f" else row, count)


@fault("classification.top", breaks="CLS-HIGHEST")
def scores_past_the_64th_are_not_sorted(original: Any, row: Any, count: int) -> Any:
    """The first 64 scores are sorted, and the others follow as they are."""
    return [*original(row[:64], 64), *range(64, row.size)][:count]


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
