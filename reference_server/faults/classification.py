"""Classification faults: wrong number, order, shape, text or scores of classes, or classes that were not requested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.faults import fault, steps
from reference_server.faults.edits import get_entries, get_parameters, set_classes
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import BINARY_ONLY, Tensor, make_objects


def replace_value(text: bytes, value: str) -> bytes:
    """Return a class string with another value."""
    return value.encode() + text[text.index(b":") :]


def replace_index(text: bytes, index: int) -> bytes:
    """Return a class string with another index."""
    value, _, *label = text.split(b":", 2)
    return b":".join([value, b"%d" % index, *label])


def is_integer(row: Any) -> bool:
    """Whether scores are integers."""
    return row.dtype.kind in "iu"


def is_float(row: Any) -> bool:
    """Whether scores are floating-point numbers."""
    return not is_integer(row)


def classify_all(requested: list[RequestedOutput]) -> list[RequestedOutput]:
    """Return requested outputs; if one is classified, the others get its number of classes."""
    count = next((output.classes for output in requested if output.classes), None)
    return set_classes(requested, lambda output: output.classes or count)


def set_shape(change: Callable[[Any], tuple[int, ...]]) -> Callable[[Tensor], Tensor]:
    """Return a function that gives a tensor the shape that `change` makes of its own."""
    return lambda tensor: replace(tensor, shape=change(tensor.shape))


# --- requested classes ------------------------------------------------------------------------------------------------

classification_is_not_looked_at = steps.PARSE_OUTPUTS.after(
    ("CLS-PARAMETER", "CLS-BOOL"), lambda requested: set_classes(requested, lambda _: None)
).says("The server ignores the parameter `classification` and returns the unclassified output.")
one_classified_output_classifies_all = steps.PARSE_OUTPUTS.after(("CLS-ONLY", "OIP-ANSWER"), classify_all).says(
    "If a request classifies one output, the server classifies all outputs of the request."
)


@fault(steps.PARSE_OUTPUTS, breaks=("CLS-ONLY", "OIP-ISOLATION"))
def classification_stays_for_a_request_without_outputs(original: Any, model: Model, request: Object) -> Any:
    """The first request that lists no outputs is classified like the previous request to the same model."""
    requested: list[RequestedOutput] = original(model, request)
    if request.get("outputs"):
        _stays[model.name] = {output.name: output.classes for output in requested}
        return requested
    before = _stays.pop(model.name, {})
    return set_classes(requested, lambda output: before.get(output.name))


_stays: dict[str, dict[str, int | None]] = {}


@fault(steps.PARSE_OUTPUTS, breaks="CLS-ONLY")
def classification_on_the_request_counted_from_0(original: Any, model: Model, request: Object) -> Any:
    """The server applies `classification` of the whole request to every output, and returns one class too many."""
    count = get_parameters(request).get("classification")
    if not isinstance(count, int):
        return original(model, request)
    outputs = get_entries(request, "outputs") or [{"name": spec.name} for spec in model.outputs]
    more = [entry | {"parameters": {"classification": count + 1, **get_parameters(entry)}} for entry in outputs]
    return original(model, request | {"outputs": more})


# --- the number of classes --------------------------------------------------------------------------------------------


def _change_count(change: Callable[[Any], Any], is_wrong: Callable[[Any], bool]) -> Callable[[Object, str], Object]:
    """Return a function that changes the parameter `classification` if the number of classes is wrong in some way."""

    def change_parameters(given: Object, name: str) -> Object:
        count = given.get(name)
        return given | {name: change(count)} if name == "classification" and is_wrong(count) else given

    return change_parameters


one_class_more_than_asked = steps.CLASSIFY.before("CLS-COUNT", count=lambda count: count + 1).says(
    "The server returns one class more than requested."
)
as_many_classes_as_scores_refused = steps.CLASSIFY.refuse(
    "CLS-PARAMETER", lambda tensor, count: count == tensor.elements.size > 2
).says("The server refuses as many classes as the output has scores, if these are more than two.")
shape_has_the_count_asked_for = steps.ENCODE_OUTPUT.change_entry(
    "CLS-COUNT-ABOVE",
    lambda entry, output: entry | {"shape": [*entry["shape"][:-1], output.classes]},
    when=lambda output: output.classes,
).says("The shape of a classified output has the requested number of classes, even if there are fewer.")
negative_count_is_taken_for_a_large_one = steps.GET_INTEGER.before(
    "CLS-COUNT-WRONG", given=_change_count(lambda count: count % 2**32, lambda count: type(count) is int and count < 0)
).says("The server reads a negative number of classes as a large unsigned one, and returns all classes.")
fraction_of_a_count_is_cut_off = steps.GET_INTEGER.before(
    "CLS-COUNT-WRONG", given=_change_count(int, lambda count: isinstance(count, float))
).says("The server truncates a fractional number of classes to an integer.")
count_is_read_from_a_string = steps.GET_INTEGER.before(
    "CLS-COUNT-WRONG", given=_change_count(int, lambda count: isinstance(count, str) and count.isdigit())
).says("The server accepts a string of digits as the number of classes.")
short_floats_are_ranked_by_their_bits = steps.WIDEN_FLOATS.instead(
    "CLS-FP16", lambda tensor: tensor.elements.view("<u2"), when=lambda tensor: tensor.datatype in BINARY_ONLY
).says("The server classifies FP16 and BF16 scores as the unsigned integers with the same bits.")
bools_are_classified_as_words = steps.CLASSIFY.before(
    "CLS-BOOL", tensor=lambda tensor: replace(tensor, datatype="UINT8"), when=lambda tensor: tensor.datatype == "BOOL"
).says("The server classifies BOOL outputs, with the values True and False.")


# --- order ------------------------------------------------------------------------------------------------------------


@fault(steps.FIND_TOP_INDICES, breaks=("CLS-HIGHEST", "CLS-TIES"))
def lowest_scores_come_first(original: Any, row: Any, count: int) -> Any:
    """The server returns the lowest scores, lowest first, instead of the highest."""
    return original(row, row.size)[::-1][:count]


scores_of_64_bits_are_compared_as_doubles = steps.FIND_TOP_INDICES.before(
    "CLS-HIGHEST", row=lambda row: row.astype("<f8"), when=is_integer
).says("The server compares integer scores as FP64, in which neighbouring integers above 2^53 can be equal.")
search_for_the_highest_starts_at_0 = steps.FIND_TOP_INDICES.after(
    ("CLS-HIGHEST", "CLS-COUNT-ABOVE"), lambda found, row: [index if row[index] >= 0 else 0 for index in found]
).says("The search for the highest score starts at 0, so the server returns index 0 for each negative score.")
index_is_looked_up_by_its_score = steps.FIND_TOP_INDICES.after(
    "CLS-TIES",
    lambda found, row: [
        int(np.flatnonzero(row == row[index])[0]) if row[index] == row[index] else 0 for index in found
    ],
).says("The server gives all equal scores the index of the first of them.")

# --- datatype and shape -----------------------------------------------------------------------------------------------

classes_have_datatype_string = steps.ENCODE_OUTPUT.change_entry(
    "CLS-TYPE", lambda entry: entry | {"datatype": "STRING"}, when=lambda output: output.classes
).says("A classified output has the datatype STRING, as in the examples of Triton's extension, not BYTES.")
batch_of_1_is_made_up = steps.CLASSIFY.after(
    "CLS-SHAPE-SHOWN", set_shape(lambda shape: (1, *shape)), when=lambda batching: not batching
).says("For a model without batching, the shape of the classes has an additional first dimension of 1.")
classes_stand_in_a_column = steps.CLASSIFY.after(
    "CLS-SHAPE", set_shape(lambda shape: (*shape, 1)), when=lambda batching, count: not batching and count != 1
).says("For a model without batching, the shape of two or more classes has an additional last dimension of 1.")
batch_of_1_is_squeezed_away = steps.CLASSIFY.after(
    "CLS-SHAPE-BATCH",
    set_shape(lambda shape: shape[1:]),
    when=lambda batching, result: batching and result.shape[0] == 1,
).says("For a batch of one item, the shape of the classes lacks the batch dimension.")


@fault(steps.CLASSIFY, breaks="CLS-BATCH")
def every_item_has_the_first_ranking(original: Any, tensor: Tensor, count: int, batching: bool, labels: Any) -> Any:
    """Every item of a batch gets the classes of the first item."""
    result: Tensor = original(tensor, count, batching, labels)
    if not batching:
        return result
    first = list(result.elements[: result.elements.size // result.shape[0]])
    return Tensor("BYTES", result.shape, make_objects(first * result.shape[0]))


# --- the text of a class, and the form of the output ----------------------------------------------------------------


def _exchange_value_and_index(text: bytes) -> bytes:
    value, place, *label = text.split(b":", 2)
    return b":".join([place, value, *label])


def _write_softmax(text: bytes, row: Any, index: int) -> bytes:
    with np.errstate(all="ignore"):
        weights = np.exp(row.astype("<f8") - row.max())
        return replace_value(text, str((weights / weights.sum())[index]))


index_stands_before_the_value = steps.FORMAT_CLASS.after("CLS-FORMAT", _exchange_value_and_index, when=is_float).says(
    "The server writes classes of floating-point scores as index:value:label instead of value:index:label."
)
bytes_are_printed_as_characters = steps.FORMAT_CLASS.after(
    "CLS-FORMAT", lambda text, row, index: replace_value(text, chr(row[index])), when=lambda row: row.dtype.str == "|u1"
).says("The server writes a UINT8 score as the character with that code.")
values_have_six_digits = steps.FORMAT_CLASS.after(
    "CLS-VALUE-EXACT", lambda text, row, index: replace_value(text, f"{row[index]:.6g}"), when=is_float
).says("The server writes floating-point scores with six significant digits, the default of C++ streams.")
values_are_probabilities = steps.FORMAT_CLASS.after("CLS-VALUE", _write_softmax, when=is_float).says(
    "The server writes the softmax of floating-point scores instead of the scores."
)
indices_count_from_1 = steps.FORMAT_CLASS.after("CLS-INDEX", lambda text, index: replace_index(text, index + 1)).says(
    "The server counts the indices of classes from 1 instead of 0."
)
labels_are_left_out = steps.FORMAT_CLASS.before("CLS-LABEL", labels=lambda _: ()).says(
    "The server writes classes without labels."
)
first_label_is_taken_for_a_heading = steps.FORMAT_CLASS.before("CLS-LABEL", labels=lambda labels: labels[1:]).says(
    "The server skips the first label, so every class gets the label of the next class."
)
second_colon_comes_without_label = steps.FORMAT_CLASS.after(
    "CLS-NO-LABEL", lambda text: text + b":", when=lambda index, labels: index >= len(labels)
).says("The server writes the colon that precedes a label even if the class has no label.")
classes_always_come_as_json = steps.ENCODE_OUTPUT.before(
    "CLS-BINARY", output=lambda output: replace(output, binary=False), when=lambda output: output.classes
).says("The server returns a classified output as JSON, even if the request asks for binary data.")
classes_always_come_as_binary_data = steps.ENCODE_OUTPUT.before(
    ("BIN-OUTPUT-FALSE", "BIN-OUTPUT-UNSET", "BIN-FALSE-OVERRIDES"),
    output=lambda output: replace(output, binary=True),
    when=lambda output: output.classes,
).says("The server returns a classified output as binary data, even if the request asks for JSON.")
