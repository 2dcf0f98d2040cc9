"""Faults that appear only with certain elements, positions or tensor sizes, in JSON data or in binary data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.classification import replace_index
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import Tensor, TensorSpec, make_objects

DECODE_BINARY_STEP, ENCODE_BINARY_STEP = "tensors.decode_binary", "tensors.encode_binary"
DECODE_JSON_STEP, ENCODE_JSON_STEP = "tensors.decode_json", "tensors.encode_json"


@fault(DECODE_JSON_STEP, breaks="OIP-ANSWER", walks="json")
def json_bools_beyond_64_are_false(original: Any, datatype: str, shape: tuple[int, ...], data: object) -> Tensor:
    """The server reads BOOL elements after the 64th in JSON data as false."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "BOOL" or tensor.elements.size <= 64:
        return tensor
    elements = tensor.elements.copy()
    elements[64:] = False
    return replace(tensor, elements=elements)


@fault(ENCODE_JSON_STEP, breaks="OIP-ANSWER", walks="json")
def large_numbers_written_with_six_digits(original: Any, tensor: Tensor) -> Any:
    """In JSON, the server rounds floating-point numbers of magnitude above 1e15 to six digits."""
    items = original(tensor)
    return [float(f"{item:.5e}") if isinstance(item, float) and abs(item) > 1e15 else item for item in items]


@fault(DECODE_JSON_STEP, breaks="OIP-ANSWER", walks="json")
def strings_in_json_end_at_nul(original: Any, datatype: str, shape: tuple[int, ...], data: object) -> Tensor:
    """The server truncates a BYTES element of a JSON input at the first NUL."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "BYTES":
        return tensor
    return replace(tensor, elements=make_objects([item.partition(b"\x00")[0] for item in tensor.elements]))


@fault(DECODE_BINARY_STEP, breaks="BIN-DATATYPES-I", walks="binary")
def last_of_many_int64_in_32_bits(original: Any, datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """If a binary INT64 input has more than 64 elements, the server reads only 32 bits of the last element."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "INT64" or tensor.elements.size <= 64:
        return tensor
    elements = tensor.elements.copy()
    elements[-1] = elements[-1].astype("<i4")
    return replace(tensor, elements=elements)


@fault(DECODE_BINARY_STEP, breaks="BIN-DATATYPES-I", walks="binary")
def elements_counted_in_16_bits(original: Any, datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """The server reads the elements after the 65,536th of a binary input as zero, unless they are BYTES."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype == "BYTES" or tensor.elements.size <= 65_536:
        return tensor
    elements = tensor.elements.copy()
    elements[65_536:] = 0
    return replace(tensor, elements=elements)


@fault("request.deduce_shape", breaks="RAW-ONE-VARIABLE", walks="raw")
def raw_tensors_of_a_page_refused(original: Any, spec: TensorSpec, size: int) -> Any:
    """The server refuses a raw body of exactly 4096 elements."""
    shape = original(spec, size)
    if shape == (4096,):
        raise InferenceError("the body fills the buffer")
    return shape


@fault(ENCODE_BINARY_STEP, breaks="BIN-DATATYPES-O", walks="binary")
def equal_elements_written_as_zeros(original: Any, tensor: Tensor) -> Any:
    """The server writes a binary integer output as zeros if it has 64 or more elements, all equal."""
    octets = original(tensor)
    is_equal = tensor.elements.size >= 64 and tensor.elements.dtype.kind in "iu" and np.ptp(tensor.elements) == 0
    return bytes(len(octets)) if is_equal else octets


@fault("request.parse_body", breaks="RAW-ENCODING", walks="raw")
def raw_bodies_stripped_of_ff(original: Any, model: Model, body: bytes) -> Any:
    """The server reads bytes FF at the end of a raw body of more than 64 bytes as zeros."""
    kept = body.rstrip(b"\xff")
    return original(model, kept + bytes(len(body) - len(kept)) if len(body) > 64 else body)


@fault(DECODE_BINARY_STEP, breaks="BIN-DATATYPES-I", walks="binary")
def halves_beyond_eight_are_finite(original: Any, datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """In binary FP16 inputs of more than eight elements, infinity becomes the largest finite FP16 number."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP16" or tensor.elements.size <= 8:
        return tensor
    elements = np.where(np.isinf(tensor.elements), np.copysign(np.float16(65504), tensor.elements), tensor.elements)
    return replace(tensor, elements=elements.astype("<f2"))


@fault(DECODE_BINARY_STEP, breaks="BIN-BYTES-I", walks="binary")
def empty_strings_among_many_dropped(original: Any, datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """In binary BYTES inputs of more than 16 elements, the server replaces an empty element by the previous one."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "BYTES" or tensor.elements.size <= 16:
        return tensor
    items = [item or tensor.elements[place - 1] for place, item in enumerate(tensor.elements)]
    return replace(tensor, elements=make_objects(items))


@fault(DECODE_BINARY_STEP, breaks="BIN-ROW-MAJOR-I", walks="binary")
def long_cubes_read_by_columns(original: Any, datatype: str, shape: tuple[int, ...], data: memoryview) -> Tensor:
    """If a binary input has three or more dimensions, any over 8, the server assumes column-major order."""
    tensor: Tensor = original(datatype, shape, data)
    if len(shape) < 3 or max(shape) <= 8 or datatype == "BYTES":
        return tensor
    return replace(tensor, elements=tensor.elements.reshape(shape, order="F").reshape(-1))


@fault("models.Model.run", breaks="OIP-ANSWER", walks="json")
def third_item_of_a_batch_repeats_the_second(original: Any, model: Model, inputs: Any) -> Mapping[str, Tensor]:
    """In a batch of three or more items, the server runs the model on the second item in place of the third."""
    if not model.batching:
        return original(model, inputs)
    return original(model, {name: _repeat_second_row(tensor) for name, tensor in inputs.items()})


def _repeat_second_row(tensor: Tensor) -> Tensor:
    if tensor.shape[0] < 3:
        return tensor
    rows = tensor.elements.reshape(tensor.shape).copy()
    rows[2] = rows[1]
    return replace(tensor, elements=rows.reshape(-1))


@fault("classification.classify", breaks="CLS-BATCH", walks="classes")
def fourth_item_ranked_like_the_third(original: Any, tensor: Tensor, count: int, batching: bool, labels: Any) -> Tensor:
    """From the fourth item of a batch on, the server returns the classes of the third item."""
    found: Tensor = original(tensor, count, batching, labels)
    if not batching or found.shape[0] < 4:
        return found
    rows = found.elements.reshape(found.shape).copy()
    rows[3:] = rows[2]
    return replace(found, elements=rows.reshape(-1))


@fault("models.Model.run", breaks="OIP-ANSWER", walks="json")
def eighth_item_of_a_batch_is_empty(original: Any, model: Model, inputs: Any) -> Mapping[str, Tensor]:
    """In a batch of eight or more items, the server returns zeros for the eighth, except in BYTES outputs."""
    outputs: Mapping[str, Tensor] = original(model, inputs)
    return {name: _zero_eighth_row(tensor) if model.batching else tensor for name, tensor in outputs.items()}


def _zero_eighth_row(tensor: Tensor) -> Tensor:
    if tensor.shape[0] < 8 or tensor.datatype == "BYTES":
        return tensor
    rows = tensor.elements.reshape(tensor.shape).copy()
    rows[7] = 0
    return replace(tensor, elements=rows.reshape(-1))


@fault("classification.classify", breaks="CLS-BATCH", walks="classes")
def last_of_eight_items_ranked_like_the_first(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Any
) -> Tensor:
    """In a batch of eight or more items, the eighth item gets the classes of the first."""
    found: Tensor = original(tensor, count, batching, labels)
    if not batching or found.shape[0] < 8:
        return found
    rows = found.elements.reshape(found.shape).copy()
    rows[7] = rows[0]
    return replace(found, elements=rows.reshape(-1))


@fault("classification.find_top_indices", breaks="CLS-HIGHEST", walks="classes")
def all_but_one_class_leaves_the_last_out(original: Any, row: Any, count: int) -> Any:
    """If a request asks for all classes but one, the server leaves out the class with the highest index."""
    return original(row[:-1] if count == row.size - 1 > 1 else row, count)


@fault("request.parse_outputs", breaks="CLS-PARAMETER", walks="classes")
def first_classification_counts_alone(original: Any, model: Model, request: Object) -> Any:
    """If a request classifies several outputs, the server classifies only the first of them."""
    requested = original(model, request)
    asked = [output for output in requested if output.classes]
    return [
        replace(output, classes=None) if output.classes and output is not asked[0] else output for output in requested
    ]


@fault("request.parse_outputs", breaks="CLS-PARAMETER", walks="classes")
def classification_of_a_second_output_ignored(original: Any, model: Model, request: Object) -> Any:
    """If a request does not classify the first requested output, the server classifies no other output."""
    requested = original(model, request)
    return (
        [replace(output, classes=None) for output in requested] if requested and not requested[0].classes else requested
    )


@fault("classification.format_class", breaks="CLS-INDEX", walks="classes")
def indices_of_classes_in_one_byte(original: Any, row: Any, index: int, labels: Sequence[str]) -> bytes:
    """The server keeps the index of a class in one byte, so index 256 becomes 0."""
    return replace_index(original(row, index, labels), index % 256)


@fault("classification.find_top_indices", breaks="CLS-HIGHEST", walks="classes")
def many_small_scores_compared_as_signed(original: Any, row: Any, count: int) -> Any:
    """The server compares UINT8 scores as signed numbers if there are more than eight scores."""
    return original(row.view(np.int8) if row.dtype == np.uint8 and row.size > 8 else row, count)


@fault("request.parse_inputs", breaks="BIN-ORDER-I", walks="binary")
def declared_order_beside_an_empty_input(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """If an input has no elements, the server reads the binary data of all inputs in declared order."""
    entries = request.get("inputs")
    if rest is not None and isinstance(entries, list) and any(0 in (entry.get("shape") or []) for entry in entries):
        place = {spec.name: index for index, spec in enumerate(model.inputs)}
        ordered = sorted(entries, key=lambda entry: place.get(entry.get("name"), 0))
        return original(model, {**request, "inputs": ordered}, rest)
    return original(model, request, rest)


@fault("models.Model.run", breaks="OIP-ANSWER", walks="json")
def first_item_of_many_is_the_last(original: Any, model: Model, inputs: Any) -> Mapping[str, Tensor]:
    """In a batch of more than 32 items, the server returns the last item in place of the first."""
    outputs: Mapping[str, Tensor] = original(model, inputs)
    return {name: copy_row(tensor, 32, -1, 0) if model.batching else tensor for name, tensor in outputs.items()}


@fault("classification.classify", breaks="CLS-BATCH", walks="classes")
def middle_of_nine_items_ranked_like_the_one_before(
    original: Any, tensor: Tensor, count: int, batching: bool, labels: Any
) -> Tensor:
    """In a batch of more than eight items, the fifth item gets the classes of the fourth."""
    found: Tensor = original(tensor, count, batching, labels)
    return copy_row(found, 8, 3, 4) if batching else found


def copy_row(tensor: Tensor, threshold: int, source: int, destination: int) -> Tensor:
    """Copy row `source` over row `destination` of a tensor; return a tensor of `threshold` rows or fewer unchanged."""
    if tensor.shape[0] <= threshold:
        return tensor
    rows = tensor.elements.reshape(tensor.shape).copy()
    rows[destination] = rows[source]
    return replace(tensor, elements=rows.reshape(-1))
