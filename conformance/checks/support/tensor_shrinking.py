"""Shrink a failing tensor to a small tensor with plain elements that still fails, to show the cause.

Dimensions are cut first. Then each element is replaced by a plain element if the tensor still fails. The other elements
are simplified: integers to the smallest that fails, floating-point numbers to few bits, strings to few characters.
This needs no Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import FailureKind
from conformance.wire.datatypes import lookup
from conformance.wire.tensor import Tensor

# Returns the failure of a tensor, or None.
Trial = Callable[[Tensor], UnmetError | None]

MAX_TRIALS = 150
_VARIABLE = -1


def get_plain_element(datatype: str, index: int = 0) -> Any:
    """Return an element that every server should handle: a small number, a letter, true or false."""
    kind = lookup(datatype).kind
    if kind == "text":
        return b"abcdefgh"[index % 8 : index % 8 + 1]
    return index % 2 == 0 if kind == "bool" else index % 100 + 1


def shrink(tensor: Tensor, unmet: UnmetError, trial: Trial, pattern: Sequence[int]) -> UnmetError:
    """Return the failure of the smallest tensor found that still fails.

    Args:
        tensor: a tensor that fails.
        unmet: the failure of this tensor.
        trial: sends a tensor, and returns its failure or None.
        pattern: the shape that the model declares, with -1 for each variable dimension.
    """
    smallest = _SmallestTensor(tensor, unmet, trial)
    for axis, size in enumerate(pattern):
        if size == _VARIABLE:
            _cut_dimension(smallest, axis)
    for index in range(smallest.tensor.elements):
        smallest.replace(index, get_plain_element(tensor.datatype))
    for index in range(smallest.tensor.elements):
        if smallest.get_element(index) != get_plain_element(tensor.datatype):
            _simplify_element(smallest, index)
    return smallest.unmet


class _SmallestTensor:
    """The smallest failing tensor so far, and its failure; limits the number of trials."""

    def __init__(self, tensor: Tensor, unmet: UnmetError, trial: Trial) -> None:
        self.tensor = tensor
        self.unmet = unmet
        self._trial = trial
        self._trials_left = MAX_TRIALS

    def get_element(self, index: int) -> Any:
        """Return the element at an index of the flattened tensor."""
        return self.tensor.array.reshape(-1)[index]

    def replace(self, index: int, element: Any) -> bool:
        """Replace an element if the tensor still fails afterwards; return whether it was replaced."""
        flat = self.tensor.array.reshape(-1).copy()
        before = flat[index : index + 1].tolist()
        flat[index] = element
        return flat[index : index + 1].tolist() != before and self.try_array(flat.reshape(self.tensor.shape))

    def try_array(self, array: np.ndarray[Any, Any]) -> bool:
        """Replace the array if the tensor still fails afterwards; return whether it was replaced."""
        if self._trials_left == 0:
            return False
        self._trials_left -= 1
        candidate = replace(self.tensor, shape=array.shape, array=array)
        unmet = self._trial(candidate)
        if unmet is None:
            return False
        if unmet.reply is not None and unmet.reply.has_failed(FailureKind.TIMEOUT):
            self._trials_left = 0  # each further trial may take as long
        self.tensor, self.unmet = candidate, unmet
        return True


def _cut_dimension(smallest: _SmallestTensor, axis: int) -> None:
    """Remove halves of a dimension, then single indices, as long as the tensor still fails."""
    while (size := smallest.tensor.shape[axis]) > 1:
        halves = np.array_split(smallest.tensor.array, 2, axis)
        if not any(smallest.try_array(np.ascontiguousarray(half)) for half in halves):
            break
    for index in reversed(range(size)):
        if smallest.tensor.shape[axis] > 1:
            smallest.try_array(np.delete(smallest.tensor.array, index, axis))


def _simplify_element(smallest: _SmallestTensor, index: int) -> None:
    datatype = lookup(smallest.tensor.datatype)
    if datatype.kind == "text":
        _shorten_string(smallest, index)
    elif datatype.is_integer:
        _approach_zero(smallest, index)
    elif datatype.is_float:
        _clear_bits(smallest, index)


def _approach_zero(smallest: _SmallestTensor, index: int) -> None:
    """Replace an integer by the integer closest to zero that fails, found by bisection.

    Bisection assumes that all integers farther from zero fail as well.
    """
    if smallest.replace(index, 0):
        return
    value = int(smallest.get_element(index))
    sign = -1 if value < 0 else 1
    passing_value, failing_value = 0, abs(value)
    while failing_value - passing_value > 1:
        middle = (passing_value + failing_value) // 2
        if smallest.replace(index, sign * middle):
            failing_value = middle
        else:
            passing_value = middle


def _clear_bits(smallest: _SmallestTensor, index: int) -> None:
    """Clear as many low bits of a floating-point number as possible while the tensor still fails."""
    size = smallest.tensor.array.dtype.itemsize
    bits = int(smallest.tensor.array.reshape(-1)[index : index + 1].view(f"u{size}")[0])
    kept, lost = 0, 8 * size
    while lost - kept > 1:
        middle = (kept + lost) // 2
        cleared = np.array([bits >> middle << middle], f"u{size}").view(smallest.tensor.array.dtype)
        if cleared.tobytes() == _get_element_bytes(smallest, index) or smallest.replace(index, cleared[0]):
            kept = middle
        else:
            lost = middle


def _get_element_bytes(smallest: _SmallestTensor, index: int) -> bytes:
    return smallest.tensor.array.reshape(-1)[index : index + 1].tobytes()


def _shorten_string(smallest: _SmallestTensor, index: int) -> None:
    """Remove halves of a string, then single characters, or bytes if it is not UTF-8, while the tensor still fails."""
    while len(parts := _split_characters(smallest.get_element(index))) > 0:
        half = len(parts) // 2
        if not any(smallest.replace(index, b"".join(part)) for part in (parts[:half], parts[half:])):
            break
    for place in reversed(range(len(parts))):
        parts = _split_characters(smallest.get_element(index))
        smallest.replace(index, b"".join(parts[:place] + parts[place + 1 :]))


def _split_characters(element: bytes) -> list[bytes]:
    try:
        return [letter.encode() for letter in element.decode()]
    except UnicodeDecodeError:
        return [element[place : place + 1] for place in range(len(element))]
