"""Faults that appear only with certain elements, positions or tensor sizes, in JSON data or in binary data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.faults import steps
from reference_server.faults.classification import replace_index
from reference_server.faults.edits import (
    copy_row,
    has_named_inputs,
    on_each,
    on_elements,
    on_strings,
    read_by_columns,
    set_classes,
    set_elements,
    sort_as_declared,
)
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor, make_objects


def has_more_elements(threshold: int, *datatypes: str) -> Callable[[Tensor], bool]:
    """Return a condition: a tensor that was read is of one of these datatypes and has more elements."""
    return lambda result: result.datatype in datatypes and result.elements.size > threshold


json_bools_beyond_64_are_false = steps.DECODE_JSON.after(
    "OIP-ANSWER",
    on_elements(lambda elements: set_elements(elements, slice(64, None), False), "BOOL"),
    when=has_more_elements(64, "BOOL"),
    walks="json",
).says("The server reads BOOL elements after the 64th in JSON data as false.")
large_numbers_written_with_six_digits = steps.ENCODE_JSON.after(
    "OIP-ANSWER",
    lambda items: [float(f"{item:.5e}") if isinstance(item, float) and abs(item) > 1e15 else item for item in items],
    walks="json",
).says("In JSON, the server rounds floating-point numbers of magnitude above 1e15 to six digits.")
strings_in_json_end_at_nul = steps.DECODE_JSON.after(
    "OIP-ANSWER", on_strings(lambda item: item.partition(b"\x00")[0]), walks="json"
).says("The server truncates a BYTES element of a JSON input at the first NUL.")
last_of_many_int64_in_32_bits = steps.DECODE_BINARY.after(
    "BIN-DATATYPES-I",
    on_elements(lambda elements: set_elements(elements, -1, elements[-1].astype("<i4")), "INT64"),
    when=has_more_elements(64, "INT64"),
    walks="binary",
).says("If a binary INT64 input has more than 64 elements, the server reads only 32 bits of the last element.")
elements_counted_in_16_bits = steps.DECODE_BINARY.after(
    "BIN-DATATYPES-I", on_elements(lambda elements: set_elements(elements, slice(65_536, None), 0)), walks="binary"
).says("The server reads the elements after the 65,536th of a binary input as zero, unless they are BYTES.")
raw_tensors_of_a_page_refused = steps.DEDUCE_SHAPE.refuse(
    "RAW-ONE-VARIABLE", lambda result: result == (4096,), walks="raw"
).says("The server refuses a raw body of exactly 4096 elements.")
equal_elements_written_as_zeros = steps.ENCODE_BINARY.after(
    "BIN-DATATYPES-O",
    lambda octets: bytes(len(octets)),
    when=lambda tensor: (
        tensor.elements.size >= 64 and tensor.elements.dtype.kind in "iu" and np.ptp(tensor.elements) == 0
    ),
    walks="binary",
).says("The server writes a binary integer output as zeros if it has 64 or more elements, all equal.")
raw_bodies_stripped_of_ff = steps.PARSE_BODY.before(
    "RAW-ENCODING",
    body=lambda body: body.rstrip(b"\xff").ljust(len(body), b"\0"),
    when=lambda body: len(body) > 64,
    walks="raw",
).says("The server reads bytes FF at the end of a raw body of more than 64 bytes as zeros.")


def _make_finite(elements: Any) -> Any:
    return np.where(np.isinf(elements), np.copysign(np.float16(65504), elements), elements).astype("<f2")


halves_beyond_eight_are_finite = steps.DECODE_BINARY.after(
    "BIN-DATATYPES-I", on_elements(_make_finite, "FP16"), when=has_more_elements(8, "FP16"), walks="binary"
).says("In binary FP16 inputs of more than eight elements, infinity becomes the largest finite FP16 number.")
empty_strings_among_many_dropped = steps.DECODE_BINARY.after(
    "BIN-BYTES-I",
    on_elements(
        lambda elements: make_objects(item or elements[place - 1] for place, item in enumerate(elements)), "BYTES"
    ),
    when=has_more_elements(16, "BYTES"),
    walks="binary",
).says("In binary BYTES inputs of more than 16 elements, the server replaces an empty element by the previous one.")
long_cubes_read_by_columns = steps.DECODE_BINARY.after(
    "BIN-ROW-MAJOR-I",
    read_by_columns,
    when=lambda shape, datatype: len(shape) > 2 and max(shape) > 8 and datatype != "BYTES",
    walks="binary",
).says("If a binary input has three or more dimensions, any over 8, the server assumes column-major order.")


def batches(self: Model) -> bool:
    """Whether a model batches."""
    return self.batching


def on_rows(threshold: int, source: Any, destination: Any) -> Callable[[Mapping[str, Tensor]], dict[str, Tensor]]:
    """Return a function that runs `copy_row` on each tensor."""
    return on_each(lambda tensor: copy_row(tensor, threshold, source, destination))


def on_ranked_rows(threshold: int, source: Any, destination: Any) -> Callable[[Tensor, bool], Tensor]:
    """Return a function that runs `copy_row` on the classes of a batch."""
    return lambda found, batching: copy_row(found, threshold, source, destination) if batching else found


third_item_of_a_batch_repeats_the_second = steps.RUN.before(
    "OIP-ANSWER", inputs=on_rows(2, 1, 2), when=batches, walks="json"
).says("In a batch of three or more items, the server runs the model on the second item in place of the third.")
fourth_item_ranked_like_the_third = steps.CLASSIFY.after(
    "CLS-BATCH", on_ranked_rows(3, 2, slice(3, None)), walks="classes"
).says("From the fourth item of a batch on, the server returns the classes of the third item.")


def _zero_eighth_row(tensor: Tensor) -> Tensor:
    if tensor.shape[0] < 8 or tensor.datatype == "BYTES":
        return tensor
    rows = tensor.elements.reshape(tensor.shape)
    return replace(tensor, elements=set_elements(rows, 7, 0).reshape(-1))


eighth_item_of_a_batch_is_empty = steps.RUN.after(
    "OIP-ANSWER", on_each(_zero_eighth_row), when=batches, walks="json"
).says("In a batch of eight or more items, the server returns zeros for the eighth, except in BYTES outputs.")
last_of_eight_items_ranked_like_the_first = steps.CLASSIFY.after(
    "CLS-BATCH", on_ranked_rows(7, 0, 7), walks="classes"
).says("In a batch of eight or more items, the eighth item gets the classes of the first.")
all_but_one_class_leaves_the_last_out = steps.FIND_TOP_INDICES.before(
    "CLS-HIGHEST", row=lambda row: row[:-1], when=lambda row, count: count == row.size - 1 > 1, walks="classes"
).says("If a request asks for all classes but one, the server leaves out the class with the highest index.")


def _keep_first_classification(requested: list[RequestedOutput]) -> list[RequestedOutput]:
    first = next((output.name for output in requested if output.classes), None)
    return set_classes(requested, lambda output: output.classes if output.name == first else None)


first_classification_counts_alone = steps.PARSE_OUTPUTS.after(
    "CLS-PARAMETER", _keep_first_classification, walks="classes"
).says("If a request classifies several outputs, the server classifies only the first of them.")
classification_of_a_second_output_ignored = steps.PARSE_OUTPUTS.after(
    "CLS-PARAMETER",
    lambda requested: set_classes(requested, lambda _: None),
    when=lambda result: result and not result[0].classes,
    walks="classes",
).says("If a request does not classify the first requested output, the server classifies no other output.")
indices_of_classes_in_one_byte = steps.FORMAT_CLASS.after(
    "CLS-INDEX", lambda text, index: replace_index(text, index % 256), walks="classes"
).says("The server keeps the index of a class in one byte, so index 256 becomes 0.")
many_small_scores_compared_as_signed = steps.FIND_TOP_INDICES.before(
    "CLS-HIGHEST",
    row=lambda row: row.view(np.int8),
    when=lambda row: row.dtype == np.uint8 and row.size > 8,
    walks="classes",
).says("The server compares UINT8 scores as signed numbers if there are more than eight scores.")
declared_order_beside_an_empty_input = steps.PARSE_INPUTS.before(
    "BIN-ORDER-I",
    request=sort_as_declared,
    when=lambda request, rest: (
        rest is not None
        and has_named_inputs(request)
        and any(0 in (entry.get("shape") or []) for entry in request["inputs"])
    ),
    walks="binary",
).says("If an input has no elements, the server reads the binary data of all inputs in declared order.")
first_item_of_many_is_the_last = steps.RUN.after("OIP-ANSWER", on_rows(32, -1, 0), when=batches, walks="json").says(
    "In a batch of more than 32 items, the server returns the last item in place of the first."
)
middle_of_nine_items_ranked_like_the_one_before = steps.CLASSIFY.after(
    "CLS-BATCH", on_ranked_rows(8, 3, 4), walks="classes"
).says("In a batch of more than eight items, the fifth item gets the classes of the fourth.")
