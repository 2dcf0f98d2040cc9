"""Other spellings of classes, and limits of classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.tensors import Tensor


def spell_floats(spelling: str, breaks: str = "") -> Fault:
    """Return a server that writes float values of classes in a format of Python."""

    def write(text: bytes, row: Any, index: int) -> bytes:
        _, colon, rest = text.partition(b":")
        return format(float(row[index]), spelling).encode() + colon + rest if row.dtype.kind == "f" else text

    return steps.FORMAT_CLASS.after(breaks or (), write)


class_values_have_six_decimals = spell_floats("f", "CLS-VALUE-EXACT").says(
    "The server writes float values of classes with six decimals."
)
class_values_are_printed_by_a_stream = spell_floats("g", "CLS-VALUE-EXACT").says(
    "The server writes float values of classes with six significant digits, the default of C++ streams."
)
integer_class_values_have_a_point = steps.FORMAT_CLASS.after(
    "CLS-VALUE-EXACT", lambda text: text.replace(b":", b".0:", 1), when=lambda row: row.dtype.kind in "iu"
).says("The server writes integer values of classes with a decimal point, such as 10.0.")
classes_always_have_a_batch = steps.CLASSIFY.after(
    "CLS-SHAPE-SHOWN",
    lambda found: replace(found, shape=(1, *found.shape)),
    when=lambda batching: not batching,
).says("The server gives classes of a model that does not batch the shape [1, count], as the prose says.")
each_row_of_a_matrix_is_ranked = steps.CLASSIFY.before(
    (), batching=lambda batching, tensor: batching or len(tensor.shape) > 1
).says("The server classifies each row of an output of several dimensions, even if the model does not batch.")


@variation(steps.CLASSIFY)
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


class_values_have_an_exponent = spell_floats(".9e", "CLS-VALUE-EXACT").says(
    "The server writes float values of classes with an exponent."
)
ties_from_the_end = steps.FIND_TOP_INDICES.instead(
    (), lambda row, count: np.argsort(row, kind="stable")[::-1][:count]
).says("The server lists equal scores from the last to the first.")
sixteen_bit_floats_are_not_classified = steps.WIDEN_FLOATS.refuse(
    when=lambda tensor: tensor.datatype in ("FP16", "BF16")
).says("The server refuses to classify FP16 and BF16.")
more_classes_than_there_are_is_refused = steps.CLASSIFY.refuse(
    when=lambda tensor, count, batching: count > tensor.elements.size // max(tensor.shape[0] if batching else 1, 1)
).says("The server refuses a number of classes above the number of elements.")
class_values_as_doubles = spell_floats(".17g").says(
    "The server writes float values of classes with the 17 digits of a double."
)


@variation(steps.FIND_TOP_INDICES)
def nan_comes_first(original: Any, row: Any, count: int) -> Any:
    """The server ranks NaN above all other scores."""
    order = original(row, row.size)
    equal_to_itself = row[order] == row[order]  # false for NaN
    return order[np.argsort(equal_to_itself, kind="stable")][:count]
