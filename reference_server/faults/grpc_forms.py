"""gRPC: wrong typed or raw contents, contents in a wrong order, and typed contents added to raw ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reference_server import grpc_contents
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.edits import copy_row
from reference_server.tensors import NUMPY, Tensor, make_objects

Message = Any


# --- typed contents ---------------------------------------------------------------------------------------------------


@fault("grpc_contents.convert_elements", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_64_bit_integers_go_through_doubles(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server reads typed INT64 and UINT64 contents as doubles, which round integers beyond 2^53."""
    elements = original(datatype, field, values)
    if datatype not in ("INT64", "UINT64"):
        return elements
    limit = np.iinfo(elements.dtype).max
    return np.array([min(int(float(value)), limit) for value in elements], elements.dtype)


@fault("grpc_contents.convert_elements", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_fp64_is_read_as_fp32(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server reads typed FP64 contents in single precision."""
    elements = original(datatype, field, values)
    with np.errstate(all="ignore"):
        return elements.astype(np.float32).astype(np.float64) if datatype == "FP64" else elements


@fault("grpc_contents.convert_elements", breaks="GRPC-TYPED")
def grpc_typed_uint32_is_signed(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server reads typed UINT32 elements above 2^31 - 1 as 2^31 - 1."""
    elements = original(datatype, field, values)
    return np.minimum(elements, 2**31 - 1).astype(np.uint32) if datatype == "UINT32" else elements


@fault("grpc_contents.convert_elements", breaks="GRPC-TYPED")
def grpc_typed_strings_end_at_nul(original: Any, datatype: str, field: str, values: Any) -> Any:
    """The server truncates typed BYTES elements at the first NUL byte, like C strings."""
    elements = original(datatype, field, values)
    return make_objects(value.partition(b"\0")[0] for value in elements) if datatype == "BYTES" else elements


@fault("grpc_contents.decode_typed", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_contents_are_read_by_columns(original: Any, datatype: str, shape: Any, contents: Message) -> Tensor:
    """The server reads typed contents in column-major order."""
    tensor: Tensor = original(datatype, shape, contents)
    return replace(tensor, elements=tensor.elements.reshape(shape, order="F").reshape(-1))


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_unsigned_answers_are_in_int_contents(original: Any, tensor: Tensor) -> dict[str, Any]:
    """The server writes UINT8 and UINT16 outputs into `int_contents` instead of `uint_contents`."""
    contents: dict[str, Any] = original(tensor)
    return {"int_contents": contents["uint_contents"]} if tensor.datatype in ("UINT8", "UINT16") else contents


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_answers_lack_their_last_element(original: Any, tensor: Tensor) -> dict[str, Any]:
    """The server omits the last element of long or multi-dimensional typed outputs, except BYTES."""
    contents: dict[str, Any] = original(tensor)
    long = tensor.datatype != "BYTES" and (tensor.elements.size >= 16 or len(tensor.shape) > 1)
    return {field: values[:-1] if long and values else values for field, values in contents.items()}


# --- raw contents -----------------------------------------------------------------------------------------------------


def swap_bytes(data: bytes, datatype: str) -> bytes:
    """Return raw contents with the byte order of each element reversed; BYTES are unchanged."""
    size = 1 if datatype == "BYTES" else NUMPY[datatype].itemsize
    return data if size == 1 else np.frombuffer(data, f"u{size}").byteswap().tobytes()


@fault("grpc_contents.decode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_contents_are_read_big_endian(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server reads raw INT64 and UINT64 contents as big-endian."""
    is_long = datatype in ("INT64", "UINT64") and len(data) % 8 == 0
    return original(datatype, shape, swap_bytes(data, datatype) if is_long else data)


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_contents_are_written_big_endian(original: Any, tensor: Tensor) -> bytes:
    """The server writes raw FP64 contents as big-endian."""
    data: bytes = original(tensor)
    return swap_bytes(data, tensor.datatype) if tensor.datatype == "FP64" else data


def _swap_raw_contents(original: Any, *arguments: Any) -> Any:
    """Decode or encode raw contents as big-endian."""
    if isinstance(arguments[0], Tensor):
        return swap_bytes(original(*arguments), arguments[0].datatype)
    datatype, shape, data = arguments
    size = 1 if datatype == "BYTES" else NUMPY[datatype].itemsize
    return original(datatype, shape, swap_bytes(data, datatype) if len(data) % size == 0 else data)


@fault("grpc_contents.decode_raw", "grpc_contents.encode_raw", breaks="GRPC-RAW-LITTLE-ENDIAN")
def grpc_raw_contents_are_big_endian_on_both_sides(original: Any, *arguments: Any) -> Any:
    """The server reads and writes raw contents as big-endian."""
    return _swap_raw_contents(original, *arguments)


@fault(
    "grpc_contents.decode_raw",
    "grpc_contents.encode_raw",
    "grpc_response.build",
    breaks=("OIP-ID/grpc", "GRPC-RAW-LITTLE-ENDIAN"),
)
def grpc_id_is_left_out_by_a_big_endian_server(original: Any, *arguments: Any) -> Any:
    """The server reads and writes raw contents as big-endian, and omits the id from inference answers."""
    if isinstance(arguments[0], str | Tensor):
        return _swap_raw_contents(original, *arguments)
    response = original(*arguments)
    response.ClearField("id")
    return response


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_integers_are_padded_to_4_bytes(original: Any, tensor: Tensor) -> bytes:
    """The server writes each INT8 and INT16 element of raw contents as four bytes."""
    short = tensor.datatype in ("INT8", "INT16")
    return tensor.elements.astype("<i4").tobytes() if short else bytes(original(tensor))


@fault(
    "grpc_contents.decode_raw",
    "grpc_contents.encode_raw",
    breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED", "CLS-BATCH/grpc", "CLS-INDEX/grpc", "GRPC-SAME-AS-HTTP"),
)
def grpc_raw_matrices_are_columns_on_both_sides(original: Any, *arguments: Any) -> Any:
    """The server reads and writes two-dimensional raw contents, except BYTES, in column-major order."""
    if isinstance(arguments[0], Tensor):
        (tensor,) = arguments
        if len(tensor.shape) == 2 and tensor.datatype != "BYTES":
            tensor = replace(tensor, elements=tensor.elements.reshape(tensor.shape).reshape(-1, order="F"))
        return original(tensor)
    tensor = original(*arguments)
    if len(tensor.shape) != 2 or tensor.datatype == "BYTES":
        return tensor
    return replace(tensor, elements=tensor.elements.reshape(tensor.shape, order="F").reshape(-1))


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW")
def grpc_raw_strings_end_at_nul(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server truncates BYTES elements of raw contents at the first NUL byte, like C strings."""
    tensor: Tensor = original(datatype, shape, data)
    cut = datatype == "BYTES"
    return (
        replace(tensor, elements=make_objects(item.partition(b"\0")[0] for item in tensor.elements)) if cut else tensor
    )


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW")
def grpc_raw_contents_without_elements_are_an_error(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server fails to read raw contents without elements, but reads typed contents without elements."""
    if 0 in shape:
        raise InferenceError("the buffer has no bytes")
    found: Tensor = original(datatype, shape, data)
    return found


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW-BYTES", "GRPC-RAW-AS-TYPED"))
def grpc_raw_strings_have_no_lengths(original: Any, tensor: Tensor) -> bytes:
    """The server writes raw BYTES outputs without length prefixes, unless an element has a colon, as classes do."""
    if tensor.datatype != "BYTES" or any(b":" in item for item in tensor.elements):
        return bytes(original(tensor))
    return b"".join(tensor.elements)


@fault("grpc_contents.decode_raw", breaks=("GRPC-FP16", "GRPC-SAME-AS-HTTP"))
def grpc_fp16_is_read_as_bf16(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """The server reads raw FP16 contents as BF16."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP16":
        return tensor
    words = np.frombuffer(data, "<u2").astype("<u4") << 16
    with np.errstate(all="ignore"):
        return replace(tensor, elements=words.view("<f4").astype("<f2"))


@fault("grpc_response.build", breaks="GRPC-FP16")
def grpc_fp16_is_answered_in_fp32_contents(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """If an output is FP16, the server writes the answer into `fp32_contents` instead of raw contents."""
    return _move_to_fp32_contents("FP16", original(model, request, produced), produced)


@fault("grpc_response.build", breaks="GRPC-BF16-RAW")
def grpc_bf16_is_answered_in_fp32_contents(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """If an output is BF16, the server writes the answer into `fp32_contents` instead of raw contents."""
    return _move_to_fp32_contents("BF16", original(model, request, produced), produced)


def _move_to_fp32_contents(datatype: str, response: Message, produced: Any) -> Message:
    if any(entry.datatype == datatype for entry in response.outputs):
        del response.raw_output_contents[:]
        for entry in response.outputs:
            entry.contents.fp32_contents.extend(produced[entry.name].elements.astype(float).tolist())
    return response


# --- order, forms, sizes and shapes ---------------------------------------------------------------------------------


@fault("grpc_request.parse_inputs", breaks="GRPC-ORDER-I")
def grpc_raw_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """The server assigns raw entries to inputs in declared order instead of the order of the request."""
    places = {spec.name: place for place, spec in enumerate(model.inputs)}
    entries = list(message.raw_input_contents)
    if len(entries) == len(message.inputs) == len(places):
        message.raw_input_contents[:] = [
            entries[places.get(entry.name, place)] for place, entry in enumerate(message.inputs)
        ]
    return original(model, message)


@fault("grpc_response.add_raw", breaks=("GRPC-ORDER-O", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_raw_outputs_are_reversed(original: Any, response: Message, outputs: Any) -> None:
    """The server writes the raw entries of an answer in reverse order."""
    original(response, outputs)
    response.raw_output_contents[:] = list(response.raw_output_contents)[::-1]


@fault("grpc_response.add_raw", breaks="GRPC-ONE-FORM")
def grpc_raw_answers_are_typed_too(original: Any, response: Message, outputs: Any) -> None:
    """The server adds typed contents to raw answers, for each output whose datatype has a typed field."""
    original(response, outputs)
    for entry, (_, tensor) in zip(response.outputs, outputs, strict=True):
        for field, values in (
            grpc_contents.encode_typed(tensor).items() if tensor.datatype in grpc_contents.FIELDS else ()
        ):
            getattr(entry.contents, field).extend(values)


@fault("grpc_response.add_raw", breaks="GRPC-ONE-FORM")
def grpc_outputs_beside_fp16_are_typed(original: Any, response: Message, outputs: Any) -> None:
    """If an answer has FP16 outputs and others, the server writes raw contents for the FP16 outputs alone."""
    halves = [(output, tensor) for output, tensor in outputs if tensor.datatype == "FP16"]
    original(response, halves or outputs)
    if halves and len(halves) < len(outputs):
        from reference_server import grpc_response  # lazy: needs the packages of grpc

        grpc_response.add_typed(response, [pair for pair in outputs if pair not in halves])


@fault("grpc_request.parse_inputs", breaks="GRPC-INPUT-BY-NAME")
def grpc_typed_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """The server ignores the names of typed inputs and takes them in declared order, if the datatypes match."""
    fits = [entry.datatype for entry in message.inputs] == [spec.datatype for spec in model.inputs]
    known = {entry.name for entry in message.inputs} == {spec.name for spec in model.inputs}
    if fits and known and not message.raw_input_contents:
        for entry, spec in zip(message.inputs, model.inputs, strict=True):
            entry.name = spec.name
    return original(model, message)


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_true_from_the_ninth_on_is_ff(original: Any, tensor: Tensor) -> bytes:
    """From the ninth element of raw BOOL outputs on, the server writes true as the byte 0xFF."""
    data: bytes = original(tensor)
    return data[:8] + data[8:].replace(b"\1", b"\xff") if tensor.datatype == "BOOL" else data


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_booleans_of_an_answer_repeat_after_8(original: Any, tensor: Tensor) -> dict[str, Any]:
    """In typed BOOL outputs, the server repeats the first eight elements from the ninth element on."""
    contents: dict[str, Any] = original(tensor)
    if tensor.datatype == "BOOL" and tensor.elements.size > 8:
        values = contents["bool_contents"]
        return {"bool_contents": [values[k % 8] for k in range(len(values))]}
    return contents


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_raw_outputs_are_zeros_behind_3_mb(original: Any, tensor: Tensor) -> bytes:
    """The server sends zeros after the first 3,000,000 bytes of a raw output, except BYTES."""
    data: bytes = original(tensor)
    return data[:3_000_000].ljust(len(data), b"\0") if tensor.datatype != "BYTES" else data


@fault("grpc_response.build", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_outputs_without_elements_have_one_dimension(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """The server gives every output without elements the shape [0], even if the shape is [0, 3]."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.shape[:] = [0]
    return response


@fault("grpc_request.parse_input", breaks="GRPC-RAW")
def grpc_raw_batches_over_2_refused(original: Any, model: Any, spec: Any, entry: Message, raw: bytes | None) -> Tensor:
    """The server refuses batches of more than two items in raw contents, but not in typed contents."""
    if raw is not None and model.batching and entry.shape[:1] > [2]:
        raise InferenceError("the batch is too large")
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


@fault("grpc_request.parse_input", breaks="GRPC-TYPED")
def grpc_typed_batches_over_2_refused(
    original: Any, model: Any, spec: Any, entry: Message, raw: bytes | None
) -> Tensor:
    """The server refuses batches of more than two items in typed contents, but not in raw contents."""
    if raw is None and model.batching and entry.shape[:1] > [2]:
        raise InferenceError("the batch is too large")
    tensor: Tensor = original(model, spec, entry, raw)
    return tensor


@fault("grpc_request.parse_inputs", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_third_items_are_the_second(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """The server replaces every item of an input batch after the second by the second item."""
    found: dict[str, Tensor] = original(model, message)
    if not model.batching:
        return found
    return {name: _repeat_second_item(tensor) for name, tensor in found.items()}


def _repeat_second_item(tensor: Tensor) -> Tensor:
    items = tensor.elements.reshape(tensor.shape).copy()
    items[2:] = items[1:2]
    return replace(tensor, elements=items.reshape(-1))


@fault("grpc_request.parse_inputs", breaks="GRPC-TYPED", walks="calls")
def grpc_last_of_many_items_is_the_first(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """In an input batch of more than 32 items, the server replaces the last item by the first."""
    found: dict[str, Tensor] = original(model, message)
    return {name: copy_row(tensor, 32, 0, -1) for name, tensor in found.items()} if model.batching else found
