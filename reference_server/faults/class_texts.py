"""What stands in a class: its format, value, index and label; its binary form; numbers and datatypes out of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.datatypes import BINARY_ONLY
from reference_server.faults import fault
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.response import Octets
from reference_server.tensors import Tensor

Labels = Sequence[str]
Part = tuple[dict[str, Any], Octets | None]


def replace_value(text: bytes, value: str) -> bytes:
    """Return a class with another value."""
    return value.encode() + text[text.index(b":") :]


def replace_index(text: bytes, index: int) -> bytes:
    """Return a class with another index."""
    value, _, *label = text.split(b":", 2)
    return b":".join([value, b"%d" % index, *label])


def is_integer(row: Any) -> bool:
    """Whether scores are integers."""
    return row.dtype.kind in "iu"


# --- format and value ------------------------------------------------------------------------------------------------


@fault("classification.class_text", breaks="CLS-FORMAT")
def index_stands_before_the_value(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """A class of floats reads index:value:label."""
    value, place, *label = original(row, index, labels).split(b":", 2)
    return b":".join([value, place, *label] if is_integer(row) else [place, value, *label])


@fault("classification.class_text", breaks="CLS-FORMAT")
def bytes_are_printed_as_characters(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """A score of UINT8 is printed as the character with that code."""
    text: bytes = original(row, index, labels)
    return replace_value(text, chr(row[index])) if row.dtype.str == "|u1" else text


@fault("classification.class_text", breaks="CLS-VALUE-EXACT")
def values_have_six_digits(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """Floats are written with six significant digits, what streams print by default."""
    text: bytes = original(row, index, labels)
    return text if is_integer(row) else replace_value(text, f"{row[index]:.6g}")


@fault("classification.class_text", breaks="CLS-VALUE")
def values_are_probabilities(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The values of floats are what a softmax makes of the scores."""
    if is_integer(row):
        return bytes(original(row, index, labels))
    with np.errstate(all="ignore"):
        weights = np.exp(row.astype("<f8") - row.max())
        return replace_value(original(row, index, labels), str((weights / weights.sum())[index]))


# --- index -----------------------------------------------------------------------------------------------------------


@fault("classification.class_text", breaks="CLS-INDEX")
def indices_count_from_1(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The index of the first score is 1."""
    return replace_index(original(row, index, labels), index + 1)


# --- labels ----------------------------------------------------------------------------------------------------------


@fault("classification.class_text", breaks="CLS-LABEL")
def labels_are_left_out(original: Any, row: Any, index: int, _labels: Labels) -> bytes:
    """No class has a label."""
    return bytes(original(row, index, ()))


@fault("classification.class_text", breaks="CLS-LABEL")
def first_label_is_taken_for_a_heading(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The first label is skipped, so that every class has the label of the next."""
    return bytes(original(row, index, labels[1:]))


@fault("classification.class_text", breaks="CLS-NO-LABEL")
def second_colon_comes_without_label(original: Any, row: Any, index: int, labels: Labels) -> bytes:
    """The colon in front of the label is written where there is no label."""
    return bytes(original(row, index, labels)) + (b"" if index < len(labels) else b":")


# --- as binary data --------------------------------------------------------------------------------------------------


@fault("response.output_part", breaks=("CLS-BINARY", "BIN-TRUE-OVERRIDES"))
def classes_always_come_as_json(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """The parameter binary_data is not looked at where an output is classified."""
    part: Part = original(model, replace(wish, binary=wish.binary and not wish.classes), tensor)
    return part


@fault("response.output_part", breaks=("BIN-OUTPUT-FALSE", "BIN-OUTPUT-UNSET", "BIN-FALSE-OVERRIDES"))
def classes_always_come_as_binary_data(original: Any, model: Model, wish: RequestedOutput, tensor: Tensor) -> Part:
    """A classified output is binary data, whether it is asked for or not."""
    part: Part = original(model, replace(wish, binary=wish.binary or bool(wish.classes)), tensor)
    return part


# --- out of bounds ---------------------------------------------------------------------------------------------------


@fault("members.whole", breaks="CLS-COUNT-WRONG")
def negative_count_is_taken_for_a_large_one(original: Any, given: dict[str, Any], name: str, least: int) -> int | None:
    """A negative number of classes becomes a large unsigned one, and all classes are returned."""
    count = given.get(name)
    if name == "classification" and type(count) is int and count < 0:
        return int(count) % 2**32
    read: int | None = original(given, name, least)
    return read


@fault("members.whole", breaks="CLS-COUNT-WRONG")
def fraction_of_a_count_is_cut_off(original: Any, given: dict[str, Any], name: str, least: int) -> int | None:
    """A number of classes with decimals loses them."""
    count = given.get(name)
    cut = {name: int(count)} if name == "classification" and isinstance(count, float) else {}
    read: int | None = original(given | cut, name, least)
    return read


@fault("members.whole", breaks="CLS-COUNT-WRONG")
def count_is_read_from_a_string(original: Any, given: dict[str, Any], name: str, least: int) -> int | None:
    """A string of digits is taken for a number of classes."""
    count = given.get(name)
    read_from = {name: int(count)} if name == "classification" and isinstance(count, str) and count.isdigit() else {}
    read: int | None = original(given | read_from, name, least)
    return read


@fault("classification.widened", breaks="CLS-FP16")
def short_floats_are_ranked_by_their_bits(original: Any, tensor: Tensor) -> Any:
    """FP16 and BF16 are classified as the unsigned integers of the same bits."""
    return tensor.elements.view("<u2") if tensor.datatype in BINARY_ONLY else original(tensor)


@fault("classification.classify", breaks="CLS-BOOL")
def bools_are_classified_as_words(original: Any, tensor: Tensor, count: int, batching: bool, labels: Labels) -> Tensor:
    """BOOL is classified, with the values True and False."""
    result: Tensor = original(
        replace(tensor, datatype="UINT8") if tensor.datatype == "BOOL" else tensor, count, batching, labels
    )
    return result
