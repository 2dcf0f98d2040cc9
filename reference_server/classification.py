"""Classification: the highest elements of a tensor as strings `value:index[:label]`.

Source: Triton, Classification Extension. The datatype is BYTES, as the prose says; STRING in the examples is an
erratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_server.errors import InferenceError
from reference_server.tensors import BINARY_ONLY, NOT_SCORES, Tensor, make_objects

MAX_CLASSES = 256 * 1024  # classes in an output
# A longer row is partitioned before it is sorted if few classes are requested.
MAX_SORTED_ELEMENTS = 64 * 1024


def classify(tensor: Tensor, count: int, batching: bool, labels: Sequence[str]) -> Tensor:
    """Return the `count` highest classes, or all classes if there are fewer.

    The classes are BYTES. For a batching model, each batch entry is flattened and classified separately, and the shape
    is [batch, count]. Otherwise the whole tensor is flattened, and the shape is [count]. Raises InferenceError for a
    non-numeric datatype.
    """
    if tensor.datatype in NOT_SCORES:
        raise InferenceError(f"{tensor.datatype} cannot be classified, only numbers can")
    scores = widen_floats(tensor)
    batch = tensor.shape[0] if batching else 1
    rows = scores.reshape(batch, scores.size // batch)
    shown = min(count, rows.shape[1])
    if shown * batch > MAX_CLASSES:
        raise InferenceError(f"{shown * batch} classes are over the limit of {MAX_CLASSES}")
    texts = [format_class(row, int(index), labels) for row in rows for index in find_top_indices(row, shown)]
    return Tensor("BYTES", (batch, shown) if batching else (shown,), make_objects(texts))


def widen_floats(tensor: Tensor) -> NDArray[Any]:
    """Return the elements; FP16 and BF16 become FP32, which keeps their values and prints enough digits."""
    with np.errstate(invalid="ignore"):  # a signaling NaN
        return tensor.elements.astype(np.float32) if tensor.datatype in BINARY_ONLY else tensor.elements


def find_top_indices(row: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the indices of the highest elements, highest first, compared in their own type.

    Equal elements keep their order, and NaN comes last. The Classification Extension does not define these two cases.
    """
    if row.size > MAX_SORTED_ELEMENTS and count < row.size // 8:
        chosen = find_not_lower(row, count)
        return chosen[find_top_indices(row[chosen], count)] if chosen.size < row.size else rank_elements(row)[:count]
    return rank_elements(row)[:count]


def find_not_lower(row: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the indices of all elements that are not lower than the `count`-th highest, in ascending order.

    If the `count`-th highest element is NaN, all indices are returned.
    """
    numbers = np.flatnonzero(row == row)  # NaN is not equal to itself
    if numbers.size < count:
        return np.arange(row.size)
    values = row[numbers]
    least = np.partition(values, values.size - count)[values.size - count]
    high: NDArray[Any] = numbers[values >= least]
    return high


def rank_elements(row: NDArray[Any]) -> NDArray[Any]:
    """Return all indices, sorted by descending element."""
    # A stable ascending sort of the reversed row, read backwards, is a stable descending sort. Sorting the negated row
    # would be simpler and wrong: unsigned integers and the lowest signed one have no negative.
    order = row.size - 1 - np.argsort(row[::-1], kind="stable")[::-1]
    if row.dtype.kind == "f":
        order = order[np.argsort(np.isnan(row[order]), kind="stable")]
    return order


def format_class(row: NDArray[Any], index: int, labels: Sequence[str]) -> bytes:
    """Return `value:index`, or `value:index:label` if the class has a label.

    A floating-point value is written as the shortest decimal that reads back as the same value.
    """
    label = f":{labels[index]}" if index < len(labels) else ""
    return f"{row[index]!s}:{index}{label}".encode()
