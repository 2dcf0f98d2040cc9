"""Other spellings of classes, and limits of classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.tensors import Tensor

Answer = dict[str, Any]


def _class(row: Any, index: int, labels: Sequence[str], spelling: str) -> bytes:
    value = format(float(row[index]), spelling) if row.dtype.kind == "f" else str(row[index])
    label = f":{labels[index]}" if index < len(labels) else ""
    return f"{value}:{index}{label}".encode()


@variation("classification.format_class", breaks="CLS-VALUE-EXACT")
def class_values_have_six_decimals(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server writes float values of classes with six decimals."""
    return _class(row, index, labels, "f")


@variation("classification.format_class", breaks="CLS-VALUE-EXACT")
def class_values_are_printed_by_a_stream(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server writes float values of classes with six significant digits, the default of C++ streams."""
    return _class(row, index, labels, "g")


@variation("classification.format_class", breaks="CLS-VALUE-EXACT")
def integer_class_values_have_a_point(original: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server writes integer values of classes with a decimal point, such as 10.0."""
    text: bytes = original(row, index, labels)
    return text.replace(b":", b".0:", 1) if row.dtype.kind in "iu" else text


@variation("classification.classify", breaks="CLS-SHAPE-SHOWN")
def classes_always_have_a_batch(original: Any, tensor: Tensor, count: int, batching: bool, *rest: Any) -> Tensor:
    """The server gives classes of a model that does not batch the shape [1, count], as the prose says."""
    found: Tensor = original(tensor, count, batching, *rest)
    return found if batching else replace(found, shape=(1, *found.shape))


@variation("classification.classify")
def each_row_of_a_matrix_is_ranked(original: Any, tensor: Tensor, count: int, batching: bool, *rest: Any) -> Tensor:
    """The server classifies each row of an output of several dimensions, even if the model does not batch."""
    found: Tensor = original(tensor, count, batching or len(tensor.shape) > 1, *rest)
    return found


@variation("classification.classify")
def more_classes_than_a_row_has_is_refused(
    original: Any, tensor: Tensor, count: int, batching: bool, *rest: Any
) -> Tensor:
    """The server ranks each row of an output of several dimensions, and refuses a count above the length of a row."""
    is_ranked_by_row = batching or len(tensor.shape) > 1
    rows = tensor.shape[0] if is_ranked_by_row else 1
    if count > tensor.elements.size // max(rows, 1):
        raise InferenceError(f"there are no {count} classes")
    found: Tensor = original(tensor, count, is_ranked_by_row, *rest)
    return found


@variation("classification.format_class", breaks="CLS-VALUE-EXACT")
def class_values_have_an_exponent(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server writes float values of classes with an exponent."""
    return _class(row, index, labels, ".9e")


@variation("classification.find_top_indices")
def ties_from_the_end(_: Any, row: Any, count: int) -> Any:
    """The server lists equal scores from the last to the first."""
    order = np.argsort(row, kind="stable")[::-1]
    return order[:count]


@variation("classification.widen_floats")
def sixteen_bit_floats_are_not_classified(original: Any, tensor: Tensor) -> Any:
    """The server refuses to classify FP16 and BF16."""
    if tensor.datatype in ("FP16", "BF16"):
        raise InferenceError(f"{tensor.datatype} cannot be classified")
    return original(tensor)


@variation("classification.classify")
def more_classes_than_there_are_is_refused(original: Any, tensor: Tensor, count: int, *rest: Any) -> Tensor:
    """The server refuses a number of classes above the number of elements."""
    batch = tensor.shape[0] if rest[0] else 1
    if count > tensor.elements.size // max(batch, 1):
        raise InferenceError(f"there are no {count} classes")
    found: Tensor = original(tensor, count, *rest)
    return found


@variation("classification.format_class")
def class_values_as_doubles(_: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server writes float values of classes with the 17 digits of a double."""
    return _class(row, index, labels, ".17g")


@variation("classification.find_top_indices")
def nan_comes_first(original: Any, row: Any, count: int) -> Any:
    """The server ranks NaN above all other scores."""
    order = original(row, row.size)
    equal_to_itself = row[order] == row[order]  # false for NaN
    return order[np.argsort(equal_to_itself, kind="stable")][:count]
