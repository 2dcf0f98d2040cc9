"""gRPC: wrong typed or raw contents, contents in a wrong order, and typed contents added to raw ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reference_server import grpc_contents
from reference_server.faults import Fault, fault, steps
from reference_server.faults.datatypes import is_tensor_of
from reference_server.faults.edits import copy_row, on_each, on_elements, on_strings, read_by_columns, round_to_single
from reference_server.faults.element_layout import write_by_columns
from reference_server.faults.families import combine
from reference_server.faults.grpc_frame import set_field
from reference_server.tensors import NUMPY, Tensor, make_objects

Message = Any
TYPED_REQUIREMENTS = ("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP")


def is_datatype(*datatypes: str) -> Callable[[str], bool]:
    """Return a condition: the contents to read are of one of these datatypes."""
    return lambda datatype: datatype in datatypes


# --- typed contents ---------------------------------------------------------------------------------------------------


def _read_through_doubles(elements: Any) -> Any:
    limit = np.iinfo(elements.dtype).max
    return np.array([min(int(float(value)), limit) for value in elements], elements.dtype)


grpc_typed_64_bit_integers_go_through_doubles = steps.CONVERT_ELEMENTS.after(
    "GRPC-TYPED", _read_through_doubles, when=is_datatype("INT64", "UINT64")
).says("The server reads typed INT64 and UINT64 contents as doubles, which round integers beyond 2^53.")
grpc_typed_fp64_is_read_as_fp32 = steps.CONVERT_ELEMENTS.after(
    TYPED_REQUIREMENTS, round_to_single, when=is_datatype("FP64")
).says("The server reads typed FP64 contents in single precision.")
grpc_typed_uint32_is_signed = steps.CONVERT_ELEMENTS.after(
    "GRPC-TYPED", lambda elements: np.minimum(elements, 2**31 - 1).astype(np.uint32), when=is_datatype("UINT32")
).says("The server reads typed UINT32 elements above 2^31 - 1 as 2^31 - 1.")
grpc_typed_uint32_is_looked_for_in_int_contents = steps.CONVERT_ELEMENTS.refuse(
    (), is_datatype("UINT32"), broad=True
).says("The server counts the elements of a typed UINT32 input in `int_contents`, and refuses the call.")
grpc_typed_fp64_is_read_big_endian = steps.CONVERT_ELEMENTS.after(
    "GRPC-TYPED", lambda elements: elements.byteswap(), when=is_datatype("FP64")
).says("The server reads typed FP64 contents as big-endian.")
grpc_typed_strings_end_at_nul = steps.CONVERT_ELEMENTS.after(
    "GRPC-TYPED",
    lambda elements: make_objects(value.partition(b"\0")[0] for value in elements),
    when=is_datatype("BYTES"),
).says("The server truncates typed BYTES elements at the first NUL byte, like C strings.")
grpc_typed_contents_are_read_by_columns = steps.DECODE_TYPED.after(TYPED_REQUIREMENTS, read_by_columns).says(
    "The server reads typed contents in column-major order."
)
grpc_typed_unsigned_answers_are_in_int_contents = steps.ENCODE_TYPED.after(
    "GRPC-TYPED", lambda contents: {"int_contents": contents["uint_contents"]}, when=is_tensor_of("UINT8", "UINT16")
).says("The server writes UINT8 and UINT16 outputs into `int_contents` instead of `uint_contents`.")
grpc_typed_answers_lack_their_last_element = steps.ENCODE_TYPED.after(
    "GRPC-TYPED",
    lambda contents: {field: values[:-1] for field, values in contents.items()},
    when=lambda tensor: tensor.datatype != "BYTES" and (tensor.elements.size >= 16 or len(tensor.shape) > 1),
).says("The server omits the last element of long or multi-dimensional typed outputs, except BYTES.")

# --- raw contents -----------------------------------------------------------------------------------------------------


def _count_bytes(datatype: str) -> int:
    return 1 if datatype == "BYTES" else NUMPY[datatype].itemsize


def swap_bytes(data: bytes, datatype: str) -> bytes:
    """Return raw contents with the byte order of each element reversed; BYTES are unchanged."""
    size = _count_bytes(datatype)
    return data if size == 1 or len(data) % size else np.frombuffer(data, f"u{size}").byteswap().tobytes()


def _swap_output(data: bytes, tensor: Tensor) -> bytes:
    return swap_bytes(data, tensor.datatype)


_read_big_endian = steps.DECODE_RAW.before((), data=swap_bytes)
_write_big_endian = steps.ENCODE_RAW.after((), _swap_output)


grpc_raw_contents_are_read_big_endian = steps.DECODE_RAW.before(
    ("GRPC-RAW", "GRPC-RAW-AS-TYPED"), data=swap_bytes, when=is_datatype("INT64", "UINT64")
).says("The server reads raw INT64 and UINT64 contents as big-endian.")
grpc_raw_contents_are_written_big_endian = steps.ENCODE_RAW.after(
    ("GRPC-RAW", "GRPC-RAW-AS-TYPED"), _swap_output, when=is_tensor_of("FP64")
).says("The server writes raw FP64 contents as big-endian.")
grpc_raw_contents_are_big_endian_on_both_sides = combine(
    "GRPC-RAW-LITTLE-ENDIAN", _read_big_endian, _write_big_endian
).says("The server reads and writes raw contents as big-endian.")
grpc_id_is_left_out_by_a_big_endian_server = combine(
    ("OIP-ID/grpc", "GRPC-RAW-LITTLE-ENDIAN"),
    _read_big_endian,
    _write_big_endian,
    steps.BUILD_RESPONSE.after((), set_field("id", None)),
).says("The server reads and writes raw contents as big-endian, and omits the id from inference answers.")
grpc_raw_integers_are_padded_to_4_bytes = steps.ENCODE_RAW.instead(
    ("GRPC-RAW", "GRPC-RAW-AS-TYPED"),
    lambda tensor: tensor.elements.astype("<i4").tobytes(),
    when=is_tensor_of("INT8", "INT16"),
).says("The server writes each INT8 and INT16 element of raw contents as four bytes.")


grpc_raw_matrices_are_columns_on_both_sides = combine(
    ("GRPC-RAW", "GRPC-RAW-AS-TYPED", "CLS-BATCH/grpc", "CLS-INDEX/grpc", "GRPC-SAME-AS-HTTP"),
    steps.DECODE_RAW.after((), read_by_columns, when=lambda shape, datatype: len(shape) == 2 and datatype != "BYTES"),
    steps.ENCODE_RAW.before(
        (), tensor=write_by_columns, when=lambda tensor: len(tensor.shape) == 2 and tensor.datatype != "BYTES"
    ),
).says("The server reads and writes two-dimensional raw contents, except BYTES, in column-major order.")
grpc_raw_strings_end_at_nul = steps.DECODE_RAW.after(
    "GRPC-RAW", on_strings(lambda item: item.partition(b"\0")[0])
).says("The server truncates BYTES elements of raw contents at the first NUL byte, like C strings.")
grpc_raw_contents_without_elements_are_an_error = steps.DECODE_RAW.refuse("GRPC-RAW", lambda shape: 0 in shape).says(
    "The server fails to read raw contents without elements, but reads typed contents without elements."
)
grpc_raw_strings_have_no_lengths = steps.ENCODE_RAW.instead(
    ("GRPC-RAW-BYTES", "GRPC-RAW-AS-TYPED"),
    lambda tensor: b"".join(tensor.elements),
    when=lambda tensor: tensor.datatype == "BYTES",
).says("The server writes raw BYTES outputs without length prefixes.")


def _read_as_bf16(elements: Any) -> Any:
    with np.errstate(all="ignore"):
        return (elements.view("<u2").astype("<u4") << 16).view("<f4").astype("<f2")


def _add_dimension(response: Message) -> Message:
    for entry in response.outputs:
        entry.shape.extend([] if entry.shape else [1])
    return response


grpc_scalars_have_a_dimension = steps.BUILD_RESPONSE.after(
    ("GRPC-TYPED", "GRPC-RAW", "GRPC-SAME-AS-HTTP"), _add_dimension
).says("The server answers a tensor without dimensions with the shape [1].")


def move_to_fp32_contents(breaks: str, datatype: str) -> Fault:
    """Return a fault: the server writes an answer with an output of a datatype into `fp32_contents`."""

    def move(response: Message, produced: Any) -> Message:
        if any(entry.datatype == datatype for entry in response.outputs):
            del response.raw_output_contents[:]
            for entry in response.outputs:
                entry.contents.fp32_contents.extend(produced[entry.name].elements.astype(float).tolist())
        return response

    return steps.BUILD_RESPONSE.after(breaks, move)


grpc_fp16_is_read_as_bf16 = steps.DECODE_RAW.after(
    ("GRPC-FP16", "GRPC-SAME-AS-HTTP"), on_elements(_read_as_bf16, "FP16")
).says("The server reads raw FP16 contents as BF16.")
grpc_fp16_is_answered_in_fp32_contents = move_to_fp32_contents("GRPC-FP16", "FP16").says(
    "If an output is FP16, the server writes the answer into `fp32_contents` instead of raw contents."
)
grpc_bf16_is_answered_in_fp32_contents = move_to_fp32_contents("GRPC-BF16-RAW", "BF16").says(
    "If an output is BF16, the server writes the answer into `fp32_contents` instead of raw contents."
)

# --- order, forms, sizes and shapes ---------------------------------------------------------------------------------


@fault(steps.PARSE_CALL_INPUTS, breaks="GRPC-ORDER-I")
def grpc_raw_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """The server assigns raw entries to inputs in declared order instead of the order of the request."""
    places = {spec.name: place for place, spec in enumerate(model.inputs)}
    entries = list(message.raw_input_contents)
    if len(entries) == len(message.inputs) == len(places):
        message.raw_input_contents[:] = [
            entries[places.get(entry.name, place)] for place, entry in enumerate(message.inputs)
        ]
    return original(model, message)


@fault(steps.ADD_RAW, breaks=("GRPC-ORDER-O", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_raw_outputs_are_reversed(original: Any, response: Message, outputs: Any) -> None:
    """The server writes the raw entries of an answer in reverse order."""
    original(response, outputs)
    response.raw_output_contents[:] = list(response.raw_output_contents)[::-1]


@fault(steps.ADD_RAW, breaks="GRPC-ONE-FORM")
def grpc_raw_answers_are_typed_too(original: Any, response: Message, outputs: Any) -> None:
    """The server adds typed contents to raw answers, for each output whose datatype has a typed field."""
    original(response, outputs)
    for entry, (_, tensor) in zip(response.outputs, outputs, strict=True):
        for field, values in (
            grpc_contents.encode_typed(tensor).items() if tensor.datatype in grpc_contents.FIELDS else ()
        ):
            getattr(entry.contents, field).extend(values)


@fault(steps.ADD_RAW, breaks="GRPC-ONE-FORM")
def grpc_outputs_beside_fp16_are_typed(original: Any, response: Message, outputs: Any) -> None:
    """If an answer has FP16 outputs and others, the server writes raw contents for the FP16 outputs alone."""
    halves = [(output, tensor) for output, tensor in outputs if tensor.datatype == "FP16"]
    original(response, halves or outputs)
    if halves and len(halves) < len(outputs):
        from reference_server import grpc_response  # lazy: needs the packages of grpc

        grpc_response.add_typed(response, [pair for pair in outputs if pair not in halves])


@fault(steps.PARSE_CALL_INPUTS, breaks="GRPC-INPUT-BY-NAME")
def grpc_typed_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """The server ignores the names of typed inputs and takes them in declared order, if the datatypes match."""
    fits = [entry.datatype for entry in message.inputs] == [spec.datatype for spec in model.inputs]
    known = {entry.name for entry in message.inputs} == {spec.name for spec in model.inputs}
    if fits and known and not message.raw_input_contents:
        for entry, spec in zip(message.inputs, model.inputs, strict=True):
            entry.name = spec.name
    return original(model, message)


grpc_true_from_the_ninth_on_is_ff = steps.ENCODE_RAW.after(
    "GRPC-RAW", lambda data: data[:8] + data[8:].replace(b"\1", b"\xff"), when=is_tensor_of("BOOL")
).says("From the ninth element of raw BOOL outputs on, the server writes true as the byte 0xFF.")
grpc_typed_booleans_of_an_answer_repeat_after_8 = steps.ENCODE_TYPED.after(
    "GRPC-TYPED",
    lambda contents: {field: [values[k % 8] for k in range(len(values))] for field, values in contents.items()},
    when=is_tensor_of("BOOL"),
).says("In typed BOOL outputs, the server repeats the first eight elements from the ninth element on.")
grpc_raw_outputs_are_zeros_behind_3_mb = steps.ENCODE_RAW.after(
    "GRPC-RAW", lambda data: data[:3_000_000].ljust(len(data), b"\0"), when=lambda tensor: tensor.datatype != "BYTES"
).says("The server sends zeros after the first 3,000,000 bytes of a raw output, except BYTES.")


@fault(steps.BUILD_RESPONSE, breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_outputs_without_elements_have_one_dimension(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server gives every output without elements the shape [0], even if the shape is [0, 3]."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.shape[:] = [0]
    return response


grpc_raw_batches_over_2_refused = steps.PARSE_CALL_INPUT.refuse(
    "GRPC-RAW", lambda model, entry, raw: raw is not None and model.batching and entry.shape[:1] > [2]
).says("The server refuses batches of more than two items in raw contents, but not in typed contents.")
grpc_typed_batches_over_2_refused = steps.PARSE_CALL_INPUT.refuse(
    "GRPC-TYPED", lambda model, entry, raw: raw is None and model.batching and entry.shape[:1] > [2]
).says("The server refuses batches of more than two items in typed contents, but not in raw contents.")
grpc_third_items_are_the_second = steps.PARSE_CALL_INPUTS.after(
    ("GRPC-RAW", "GRPC-TYPED"),
    on_each(lambda tensor: copy_row(tensor, 2, 1, slice(2, None))),
    when=lambda model: model.batching,
).says("The server replaces every item of an input batch after the second by the second item.")
grpc_last_of_many_items_is_the_first = steps.PARSE_CALL_INPUTS.after(
    "GRPC-TYPED", on_each(lambda tensor: copy_row(tensor, 32, 0, -1)), when=lambda model: model.batching, walks="calls"
).says("In an input batch of more than 32 items, the server replaces the last item by the first.")
