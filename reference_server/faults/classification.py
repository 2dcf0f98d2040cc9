"""Classification faults: wrong number, order, shape, text or scores of classes, or classes that were not requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.overrides import get_entries, get_parameters
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.response import Octets
from reference_server.tensors import BINARY_ONLY, Tensor, make_objects

Labels = Sequence[str]
EncodedOutput = tuple[Object, Octets | None]


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


# --- requested classes ------------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks=("CLS-PARAMETER", "CLS-BOOL"))
def classification_is_not_looked_at(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server ignores the parameter `classification` and returns the unclassified output."""
    return [replace(output, classes=None) for output in original(model, request)]


@fault("request.parse_outputs", breaks=("CLS-ONLY", "OIP-ANSWER"))
def one_classified_output_classifies_all(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """If a request classifies one output, the server classifies all outputs of the request."""
    requested: list[RequestedOutput] = original(model, request)
    count = next((output.classes for output in requested if output.classes), None)
    return [replace(output, classes=output.classes or count) for output in requested]


@fault("request.parse_outputs", breaks=("CLS-ONLY", "OIP-ISOLATION"))
def classification_stays_for_a_request_without_outputs(original: Any, model: Model, request: Object) -> Any:
    """The first request that lists no outputs is classified like the previous request to the same model."""
    requested: list[RequestedOutput] = original(model, request)
    if request.get("outputs"):
        _stays[model.name] = {output.name: output.classes for output in requested}
        return requested
    before = _stays.pop(model.name, {})
    return [replace(output, classes=before.get(output.name)) for output in requested]


_stays: dict[str, dict[str, int | None]] = {}


@fault("request.parse_outputs", breaks="CLS-ONLY")
def classification_on_the_request_counted_from_0(original: Any, model: Model, request: Object) -> Any:
    """The server applies `classification` of the whole request to every output, and returns one class too many."""
    count = get_parameters(request).get("classification")
    if not isinstance(count, int):
        return original(model, request)
    outputs = get_entries(request, "outputs") or [{"name": spec.name} for spec in model.outputs]
    more = [entry | {"parameters": {"classification": count + 1, **get_parameters(entry)}} for entry in outputs]
    return original(model, request | {"outputs": more})


# --- the number of classes --------------------------------------------------------------------------------------------


@fault("classification.classify", breaks="CLS-COUNT")
def one_class_more_than_asked(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The server returns one class more than requested."""
    return original(tensor, count + 1, batching, labels)


@fault("classification.classify", breaks=("CLS-PARAMETER", "OIP-ANSWER"))
def as_many_classes_as_scores_refused(original: Any, tensor: Tensor, count: int, *rest: Any) -> Tensor:
    """The server refuses as many classes as the output has scores, if these are more than two."""
    if count == tensor.elements.size > 2:
        raise InferenceError(f"there are no {count} classes")
    found: Tensor = original(tensor, count, *rest)
    return found


@fault("response.encode_output", breaks="CLS-COUNT-ABOVE")
def shape_has_the_count_asked_for(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> EncodedOutput:
    """The shape of a classified output has the requested number of classes, even if there are fewer."""
    entry, data = original(model, output, tensor)
    if output.classes:
        entry["shape"][-1] = output.classes
    return entry, data


@fault("members.get_integer", breaks="CLS-COUNT-WRONG")
def negative_count_is_taken_for_a_large_one(
    original: Any, given: dict[str, Any], name: str, minimum: int
) -> int | None:
    """The server reads a negative number of classes as a large unsigned one, and returns all classes."""
    count = given.get(name)
    if name == "classification" and type(count) is int and count < 0:
        return int(count) % 2**32
    return original(given, name, minimum)


@fault("members.get_integer", breaks="CLS-COUNT-WRONG")
def fraction_of_a_count_is_cut_off(original: Any, given: dict[str, Any], name: str, minimum: int) -> int | None:
    """The server truncates a fractional number of classes to an integer."""
    count = given.get(name)
    cut = {name: int(count)} if name == "classification" and isinstance(count, float) else {}
    return original(given | cut, name, minimum)


@fault("members.get_integer", breaks="CLS-COUNT-WRONG")
def count_is_read_from_a_string(original: Any, given: dict[str, Any], name: str, minimum: int) -> int | None:
    """The server accepts a string of digits as the number of classes."""
    count = given.get(name)
    read_from = {name: int(count)} if name == "classification" and isinstance(count, str) and count.isdigit() else {}
    return original(given | read_from, name, minimum)


@fault("classification.widen_floats", breaks="CLS-FP16")
def short_floats_are_ranked_by_their_bits(original: Any, tensor: Tensor) -> Any:
    """The server classifies FP16 and BF16 scores as the unsigned integers with the same bits."""
    return tensor.elements.view("<u2") if tensor.datatype in BINARY_ONLY else original(tensor)


@fault("classification.classify", breaks="CLS-BOOL")
def bools_are_classified_as_words(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """The server classifies BOOL outputs, with the values True and False."""
    result: Tensor = original(
        replace(tensor, datatype="UINT8") if tensor.datatype == "BOOL" else tensor, count, batching, labels
    )
    return result


# --- order ------------------------------------------------------------------------------------------------------------


@fault("classification.find_top_indices", breaks=("CLS-HIGHEST", "CLS-TIES"))
def lowest_scores_come_first(original: Any, row: Any, count: int) -> Any:
    """The server returns the lowest scores, lowest first, instead of the highest."""
    return original(row, row.size)[::-1][:count]


@fault("classification.find_top_indices", breaks="CLS-HIGHEST")
def scores_of_64_bits_are_compared_as_doubles(original: Any, row: Any, count: int) -> Any:
    """The server compares integer scores as FP64, in which neighbouring integers above 2^53 can be equal."""
    return original(row.astype("<f8") if row.dtype.kind in "iu" else row, count)


@fault("classification.find_top_indices", breaks=("CLS-HIGHEST", "CLS-COUNT-ABOVE"))
def search_for_the_highest_starts_at_0(original: Any, row: Any, count: int) -> Any:
    """The search for the highest score starts at 0, so the server returns index 0 for each negative score."""
    return [index if row[index] >= 0 else 0 for index in original(row, count)]


@fault("classification.find_top_indices", breaks="CLS-TIES")
def index_is_looked_up_by_its_score(original: Any, row: Any, count: int) -> Any:
    """The server gives all equal scores the index of the first of them."""
    return [
        int(np.flatnonzero(row == row[index])[0]) if row[index] == row[index] else 0 for index in original(row, count)
    ]


# --- datatype and shape -----------------------------------------------------------------------------------------------


@fault("response.encode_output", breaks="CLS-TYPE")
def classes_have_datatype_string(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """A classified output has the datatype STRING, as in the examples of Triton's extension, not BYTES."""
    entry, data = original(model, output, tensor)
    return (entry | {"datatype": "STRING"} if output.classes else entry), data


@fault("classification.classify", breaks="CLS-SHAPE-SHOWN")
def batch_of_1_is_made_up(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """For a model without batching, the shape of the classes has an additional first dimension of 1."""
    result: Tensor = original(tensor, count, batching, labels)
    return result if batching else replace(result, shape=(1, *result.shape))


@fault("classification.classify", breaks="CLS-SHAPE")
def classes_stand_in_a_column(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """For a model without batching, the shape of two or more classes has an additional last dimension of 1."""
    result: Tensor = original(tensor, count, batching, labels)
    return result if batching or count == 1 else replace(result, shape=(*result.shape, 1))


@fault("classification.classify", breaks="CLS-SHAPE-BATCH")
def batch_of_1_is_squeezed_away(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """For a batch of one item, the shape of the classes lacks the batch dimension."""
    result: Tensor = original(tensor, count, batching, labels)
    return replace(result, shape=result.shape[1:]) if batching and result.shape[0] == 1 else result


@fault("classification.classify", breaks="CLS-BATCH")
def every_item_has_the_first_ranking(original: Any, tensor: Tensor, count: int, batching: bool, labels: Any) -> Any:
    """Every item of a batch gets the classes of the first item."""
    result: Tensor = original(tensor, count, batching, labels)
    if not batching:
        return result
    first = list(result.elements[: result.elements.size // result.shape[0]])
    return Tensor("BYTES", result.shape, make_objects(first * result.shape[0]))


# --- the text of a class, and the form of the output ----------------------------------------------------------------


@fault("classification.format_class", breaks="CLS-FORMAT")
def index_stands_before_the_value(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server writes classes of floating-point scores as index:value:label instead of value:index:label."""
    value, place, *label = original(row, index, labels).split(b":", 2)
    return b":".join([value, place, *label] if is_integer(row) else [place, value, *label])


@fault("classification.format_class", breaks="CLS-FORMAT")
def bytes_are_printed_as_characters(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server writes a UINT8 score as the character with that code."""
    text: bytes = original(row, index, labels)
    return replace_value(text, chr(row[index])) if row.dtype.str == "|u1" else text


@fault("classification.format_class", breaks="CLS-VALUE-EXACT")
def values_have_six_digits(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server writes floating-point scores with six significant digits, the default of C++ streams."""
    text: bytes = original(row, index, labels)
    return text if is_integer(row) else replace_value(text, f"{row[index]:.6g}")


@fault("classification.format_class", breaks="CLS-VALUE")
def values_are_probabilities(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server writes the softmax of floating-point scores instead of the scores."""
    if is_integer(row):
        return original(row, index, labels)
    with np.errstate(all="ignore"):
        weights = np.exp(row.astype("<f8") - row.max())
        return replace_value(original(row, index, labels), str((weights / weights.sum())[index]))


@fault("classification.format_class", breaks="CLS-INDEX")
def indices_count_from_1(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server counts the indices of classes from 1 instead of 0."""
    return replace_index(original(row, index, labels), index + 1)


@fault("classification.format_class", breaks="CLS-LABEL")
def labels_are_left_out(original: Any, row: Any, index: int, _labels: Labels) -> bytes:
    """The server writes classes without labels."""
    return bytes(original(row, index, ()))


@fault("classification.format_class", breaks="CLS-LABEL")
def first_label_is_taken_for_a_heading(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server skips the first label, so every class gets the label of the next class."""
    return original(row, index, labels[1:])


@fault("classification.format_class", breaks="CLS-NO-LABEL")
def second_colon_comes_without_label(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The server writes the colon that precedes a label even if the class has no label."""
    return bytes(original(row, index, labels)) + (b"" if index < len(labels) else b":")


@fault("response.encode_output", breaks=("CLS-BINARY", "BIN-TRUE-OVERRIDES"))
def classes_always_come_as_json(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> EncodedOutput:
    """The server returns a classified output as JSON, even if the request asks for binary data."""
    return original(model, replace(output, binary=output.binary and not output.classes), tensor)


@fault("response.encode_output", breaks=("BIN-OUTPUT-FALSE", "BIN-OUTPUT-UNSET", "BIN-FALSE-OVERRIDES"))
def classes_always_come_as_binary_data(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> EncodedOutput:
    """The server returns a classified output as binary data, even if the request asks for JSON."""
    return original(model, replace(output, binary=output.binary or bool(output.classes)), tensor)
