"""Parses the texts of a classification, `value:index[:label]`, and compares them with the model's scores. Sans-I/O.

`parse` is strict. `parse_leniently` also accepts malformed texts, so that checks of values or order can judge a server
whose only fault is the format. A list of classes can have wrong values, wrong indices, or a wrong order.
`find_scores_by_index` uses only the indices and `find_scores_by_value` only the values, which tells these faults apart.
Scores are one-dimensional arrays; comparisons are exact in their datatype.

Sources: triton-classification.top-n, triton-classification.format.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from conformance.wire.finding import format_value

Scores = np.ndarray[Any, Any]
Number = int | float
# CLS-TYPE demands BYTES; the documents' examples say STRING, so its own check alone judges which of the two it is.
CLASS_DATATYPES = ("BYTES", "STRING")
# The requirements on the texts of classes, whatever their form.
TEXT_REQUIREMENTS = ("CLS-COUNT", "CLS-HIGHEST", "CLS-BATCH", "CLS-VALUE", "CLS-INDEX", "CLS-LABEL", "CLS-FORMAT")

# The maximum distance of a decimal text from the value: half of the sixth decimal, or half of the sixth significant
# digit, the default precision of C++ streams. The slack covers values exactly between two texts, whose difference is
# not a binary fraction.
_ABSOLUTE, _RELATIVE, _SLACK = 5e-7, 5e-6, 1 + 1e-9

_MAX_ROUNDED_UP = Decimal(sys.float_info.max) * Decimal(1 + _RELATIVE)

# Units in the last place by which the value in a class may differ from a float score that is not known exactly.
MAX_ULPS = 16
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE)
_INDEX = re.compile(r"[0-9]{1,19}")
_DECIMAL_COMMA = re.compile(r"^([+-]?[0-9]+),(?=[0-9]+(?:e[+-]?[0-9]+)?:[0-9]{1,19}(?::|$))", re.IGNORECASE)
_MALFORMED_CLASS = re.compile(r"\s*([^\s:;,|=]+)[\s:;,|=]+([^\s:;,|=]+)(?:[\s:;,|=]+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClassText:
    """One parsed class of a classification.

    Attributes:
        value: the score, as written.
        index: the index of the score in the model's output.
        label: None if nothing follows the index, "" if only a colon follows.
    """

    value: str
    index: int
    label: str | None = None


# The classes and scores of one batch item, or of a whole output.
Item = tuple[Sequence[ClassText], Scores]


class ClassTextError(ValueError):
    """A text does not have the format of a class; the message is one line of printable ASCII."""


def parse(text: str) -> ClassText:
    """Parse a class. Only the first two colons are separators: a label may contain colons.

    Raises ClassTextError: the index is missing, or value or index is not a number.
    """
    value, *rest = text.split(":", 2)
    if not rest:
        raise ClassTextError(f"no colon in {format_value(text)}")
    if not _NUMBER.fullmatch(value):
        comma = ": the decimal separator is a point, not a comma" if _NUMBER.fullmatch(value.replace(",", ".")) else ""
        raise ClassTextError(f"value {format_value(value)} is not a number{comma}")
    if not _INDEX.fullmatch(rest[0]):
        raise ClassTextError(f"index {format_value(rest[0])} is not a decimal integer")
    return ClassText(value, int(rest[0]), rest[1] if len(rest) == 2 else None)


def parse_leniently(text: str) -> ClassText | None:
    """Parse a class from a possibly malformed text; None if the text contains no class.

    The function also accepts other separators, the index before the value, and a decimal comma.
    """
    text = _DECIMAL_COMMA.sub(r"\1.", text)
    try:
        return parse(text)
    except ClassTextError:
        match = _MALFORMED_CLASS.fullmatch(text)
    if match is None:
        return None
    first, second, label = match.groups()
    for value, index in ((first, second), (second, first)):
        if _NUMBER.fullmatch(value) and _INDEX.fullmatch(index):
            return ClassText(value, int(index), label)
    return None


def to_python_numbers(scores: Scores) -> list[Number]:
    """Convert scores to Python numbers; comparing these numbers gives the same results as comparing the scores."""
    flat = scores.reshape(-1)
    return list((flat if flat.dtype.kind in "iufb" else flat.astype(np.float64)).tolist())


def to_float(text: str) -> float:
    """Return the number of a text; the largest double for a text that rounds it up, to fewer digits than it needs."""
    number = float(text)
    rounds_up = math.isinf(number) and Decimal(text).copy_abs() <= _MAX_ROUNDED_UP
    return math.copysign(sys.float_info.max, number) if rounds_up else number


def is_same_value(text: str, score: Number) -> bool:
    """Whether a text has the value of a score: integers exactly, floats within a tolerance; NaN equals NaN."""
    if not _NUMBER.fullmatch(text):
        return False
    if isinstance(score, int):
        return Decimal(text) == int(score)
    number = to_float(text)
    if math.isfinite(number) and math.isfinite(score):
        return abs(number - score) <= max(_ABSOLUTE, _RELATIVE * abs(score)) * _SLACK
    return number == score or (math.isnan(number) and math.isnan(score))


def is_same_class(one: ClassText, other: ClassText, tolerance: float = 0.0) -> bool:
    """Whether two classes have the same index and label, and values that may belong to the same score."""
    is_near = (
        one.value == other.value
        or is_same_value(other.value, to_float(one.value))
        or abs(to_float(one.value) - to_float(other.value)) <= 2 * tolerance
    )
    return is_near and (one.index, one.label) == (other.index, other.label)


def is_exact_value(text: str, score: Number, dtype: np.dtype[Any]) -> bool:
    """Whether a text is the exact value of a score: the digits of an integer, or text that parses to the same float."""
    if isinstance(score, int):
        return text == str(int(score))
    read = float(dtype.type(text)) if dtype.kind == "f" else float(dtype.type(float(text)))
    return read == score or (math.isnan(read) and math.isnan(score))


def remove_noise(classes: Sequence[ClassText], scores: Scores, tolerance: float) -> Item:
    """Return classes and scores without the noise of a model, so that the rules need not know about it.

    Scores that noise may bring into another order become equal. A value within the tolerance of a score becomes that
    score: the one at the index, if it is near, else the nearest.
    """
    if not tolerance:
        return classes, scores
    flat = scores.reshape(-1)
    order = np.argsort(flat, kind="stable")
    is_apart = np.diff(flat[order].astype("<f8"), prepend=-np.inf) > 2 * tolerance
    settled = flat.copy()
    settled[order] = flat[order][np.maximum.accumulate(np.where(is_apart, np.arange(flat.size), 0))]
    found = []
    for entry in classes:
        near = [entry.index] if entry.index < flat.size else []
        near = [
            place
            for place in (*near, find_index_of_nearest_score(entry, flat))
            if _is_near(entry, flat[place], tolerance)
        ]
        found.append(replace(entry, value=str(to_python_numbers(settled)[near[0]])) if near else entry)
    return found, settled.reshape(scores.shape)


def _is_near(entry: ClassText, score: Any, tolerance: float) -> bool:
    return bool(abs(to_float(entry.value) - float(score)) <= tolerance)


def find_highest(scores: Scores, count: int) -> list[int]:
    """Return the indices of the `count` highest scores, highest first; equal scores are ordered by index."""
    values = to_python_numbers(scores)
    return sorted(range(len(values)), key=values.__getitem__, reverse=True)[:count]


def find_scores_by_index(classes: Sequence[ClassText], scores: Scores, *, first: int = 0) -> list[Number] | None:
    """Return the score at each class's index, if indices count from `first`; None if an index is out of range."""
    values = to_python_numbers(scores)
    places = [entry.index - first for entry in classes]
    return [values[place] for place in places] if all(0 <= place < len(values) for place in places) else None


def find_index_of_nearest_score(entry: ClassText, scores: Scores) -> int:
    """Return the index of the score nearest to a class's value; the lowest index if several are equally near."""
    number: Number = int(entry.value) if re.fullmatch("[+-]?[0-9]{1,40}", entry.value) else to_float(entry.value)
    values = to_python_numbers(scores)
    return min(range(len(values)), key=lambda place: abs(values[place] - number) if values[place] != number else -1)


def find_scores_by_value(classes: Sequence[ClassText], scores: Scores) -> list[Number]:
    """Return the score nearest to each class's value, ignoring the index."""
    values = to_python_numbers(scores)
    return [values[find_index_of_nearest_score(entry, scores)] for entry in classes]


def are_highest(values: Sequence[Number] | None, scores: Scores) -> bool:
    """Whether `values` are the highest scores, sorted in descending order; equal scores in any order."""
    return values is not None and list(values) == sorted(to_python_numbers(scores), reverse=True)[: len(values)]


def has_highest_values(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether the classes' values, as written, are the highest scores in descending order."""
    places = find_highest(scores, len(classes))
    values = to_python_numbers(scores)
    return len(places) == len(classes) and all(
        is_same_value(entry.value, values[place]) for entry, place in zip(classes, places, strict=True)
    )


def has_matching_indices(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether each class's value, as written, is the score at its index."""
    values = find_scores_by_index(classes, scores)
    return values is not None and all(map(is_same_value, [entry.value for entry in classes], values))


# --- rules: each detects one fault, and tolerates the faults that other rules detect ---------------------------------


def is_in_order(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether the indices of the classes, or else their values, are the highest scores in descending order.

    If the classes cover all scores, the indices may also start at 1.
    """
    return (
        are_highest(find_scores_by_index(classes, scores), scores)
        or are_highest(find_scores_by_value(classes, scores), scores)
        or (len(classes) == scores.size and are_highest(find_scores_by_index(classes, scores, first=1), scores))
    )


def is_ordered_without_repeats(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether the classes are in order and no index is repeated."""
    return len({entry.index for entry in classes}) == len(classes) and is_in_order(classes, scores)


def has_right_values(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether each value is the score at the class's index, or all values are the highest scores in descending order.

    In the second case the indices may be wrong; `has_right_indices` detects these.
    """
    return has_matching_indices(classes, scores) or has_highest_values(classes, scores)


def has_exact_values(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether each value is exactly the nearest score; true as well if `has_right_values` detects wrong values."""
    if not (has_matching_indices(classes, scores) or has_highest_values(classes, scores)):
        return True
    values = to_python_numbers(scores)
    return all(
        is_exact_value(entry.value, values[find_index_of_nearest_score(entry, scores)], scores.dtype)
        for entry in classes
    )


def has_close_values(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether each value equals the nearest float score, except for the last bits."""
    values = to_python_numbers(scores)
    room = MAX_ULPS * np.spacing(np.abs(scores)).astype("<f8")
    places = [(entry, find_index_of_nearest_score(entry, scores)) for entry in classes]
    return all(abs(to_float(entry.value) - values[place]) <= room[place] for entry, place in places)


def has_right_indices(classes: Sequence[ClassText], scores: Scores) -> bool:
    """Whether each value is the score at the class's index, or all indices are those of the highest scores.

    In the second case the values may be wrong; `has_right_values` detects these.
    """
    return has_matching_indices(classes, scores) or are_highest(find_scores_by_index(classes, scores), scores)


def is_ranked_per_item(items: Sequence[Item]) -> bool:
    """Whether the server ranks every batch item separately, with the scores of the item and indices within the item.

    This rule tolerates indices that other rules detect even without a batch: indices that differ from the correct ones
    by the same offset in all items, and ranks (0, 1, 2, ...). The scores of all items must be at least 1
    apart, so that an imprecise value still identifies its score.
    """
    if any(_is_of_another_item(entry, place, items) for place, (classes, _) in enumerate(items) for entry in classes):
        return False
    if all(are_highest(find_scores_by_index(*item), item[1]) for item in items):
        return True
    if all([entry.index for entry in classes] == list(range(len(classes))) for classes, _ in items):
        return True
    shifts = {_find_index_offset(entry, scores) for classes, scores in items for entry in classes}
    return len(shifts) == 1 and None not in shifts


def _is_of_another_item(entry: ClassText, position: int, items: Sequence[Item]) -> bool:
    """Whether the value of a class is a score of a batch item other than `items[position]`, and not of this item."""
    if _find_index_offset(entry, items[position][1]) is not None:
        return False
    others = [scores for other, (_, scores) in enumerate(items) if other != position]
    return any(is_same_value(entry.value, score) for scores in others for score in to_python_numbers(scores))


def _find_index_offset(entry: ClassText, scores: Scores) -> int | None:
    """Return the index of a class minus the index of the score with its value; None if no score has this value."""
    place = find_index_of_nearest_score(entry, scores)
    return entry.index - place if abs(to_float(entry.value) - float(scores[place])) < 0.45 else None
