"""gRPC: wrong typed or raw contents, wrong order, and accepted contents that should be refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reference_server import grpc_contents
from reference_server.faults import fault
from reference_server.faults.combined_values import copy_row
from reference_server.tensors import NUMPY, Tensor, make_objects

Message = Any


# --- typed contents ---------------------------------------------------------------------------------------------------


@fault("grpc_contents.typed_elements", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_64_bit_integers_go_through_doubles(original: Any, datatype: str, field: str, values: Any) -> Any:
    """INT64 and UINT64 in typed contents are read into doubles."""
    elements = original(datatype, field, values)
    if datatype not in ("INT64", "UINT64"):
        return elements
    limit = np.iinfo(elements.dtype).max
    return np.array([min(int(float(value)), limit) for value in elements], elements.dtype)


@fault("grpc_contents.typed_elements", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_fp64_is_read_as_fp32(original: Any, datatype: str, field: str, values: Any) -> Any:
    """FP64 in typed contents is read with the precision of FP32."""
    elements = original(datatype, field, values)
    with np.errstate(all="ignore"):
        return elements.astype(np.float32).astype(np.float64) if datatype == "FP64" else elements


@fault("grpc_contents.typed_elements", breaks="GRPC-TYPED")
def grpc_typed_uint32_is_signed(original: Any, datatype: str, field: str, values: Any) -> Any:
    """UINT32 in typed contents above 2^31 - 1 becomes the largest of its signed kin."""
    elements = original(datatype, field, values)
    return np.minimum(elements, 2**31 - 1).astype(np.uint32) if datatype == "UINT32" else elements


@fault("grpc_contents.typed_elements", breaks="GRPC-TYPED")
def grpc_typed_strings_end_at_nul(original: Any, datatype: str, field: str, values: Any) -> Any:
    """BYTES in typed contents are handed on as C strings."""
    elements = original(datatype, field, values)
    return make_objects(value.partition(b"\0")[0] for value in elements) if datatype == "BYTES" else elements


@fault("grpc_contents.decode_typed", breaks=("GRPC-TYPED", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_typed_contents_are_read_by_columns(original: Any, datatype: str, shape: Any, contents: Message) -> Tensor:
    """Typed contents of two dimensions or more are taken column by column."""
    tensor: Tensor = original(datatype, shape, contents)
    return replace(tensor, elements=tensor.elements.reshape(shape, order="F").reshape(-1))


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_unsigned_answers_are_in_int_contents(original: Any, tensor: Tensor) -> dict[str, Any]:
    """Unsigned outputs of up to 16 bits are written into int_contents."""
    contents: dict[str, Any] = original(tensor)
    return {"int_contents": contents["uint_contents"]} if tensor.datatype in ("UINT8", "UINT16") else contents


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_answers_lack_their_last_element(original: Any, tensor: Tensor) -> dict[str, Any]:
    """A typed output of 16 numbers and more, or of a matrix of them, lacks its last element."""
    contents: dict[str, Any] = original(tensor)
    long = tensor.datatype != "BYTES" and (tensor.elements.size >= 16 or len(tensor.shape) > 1)
    return {field: values[:-1] if long and values else values for field, values in contents.items()}


# --- raw contents -----------------------------------------------------------------------------------------------------


def swap_bytes(data: bytes, datatype: str) -> bytes:
    """Return raw contents with the byte order swapped."""
    size = 1 if datatype == "BYTES" else NUMPY[datatype].itemsize
    return data if size == 1 else np.frombuffer(data, f"u{size}").byteswap().tobytes()


@fault("grpc_contents.decode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_contents_are_read_big_endian(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """Raw contents of integers of 64 bits are read in network byte order."""
    is_long = datatype in ("INT64", "UINT64") and len(data) % 8 == 0
    return original(datatype, shape, swap_bytes(data, datatype) if is_long else data)


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_contents_are_written_big_endian(original: Any, tensor: Tensor) -> bytes:
    """Raw contents of FP64 are written in network byte order."""
    data: bytes = original(tensor)
    return swap_bytes(data, tensor.datatype) if tensor.datatype == "FP64" else data


@fault("grpc_contents.decode_raw", "grpc_contents.encode_raw", breaks="GRPC-RAW-LITTLE-ENDIAN")
def grpc_raw_contents_are_big_endian_on_both_sides(original: Any, *arguments: Any) -> Any:
    """Raw contents are in network byte order, in requests and in answers."""
    if isinstance(arguments[0], Tensor):
        return swap_bytes(original(*arguments), arguments[0].datatype)
    datatype, shape, data = arguments
    size = 1 if datatype == "BYTES" else NUMPY[datatype].itemsize
    return original(datatype, shape, swap_bytes(data, datatype) if len(data) % size == 0 else data)


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED"))
def grpc_raw_integers_are_padded_to_4_bytes(original: Any, tensor: Tensor) -> bytes:
    """INT8 and INT16 outputs take four bytes an element in raw contents, as they do in typed ones."""
    short = tensor.datatype in ("INT8", "INT16")
    return tensor.elements.astype("<i4").tobytes() if short else bytes(original(tensor))


@fault(
    "grpc_contents.decode_raw",
    "grpc_contents.encode_raw",
    breaks=("GRPC-RAW", "GRPC-RAW-AS-TYPED", "CLS-BATCH/grpc", "CLS-INDEX/grpc", "GRPC-SAME-AS-HTTP"),
)
def grpc_raw_matrices_are_columns_on_both_sides(original: Any, *arguments: Any) -> Any:
    """Raw contents of two dimensions are read and written column by column."""
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
    """BYTES elements of raw contents are handed on as C strings."""
    tensor: Tensor = original(datatype, shape, data)
    cut = datatype == "BYTES"
    return (
        replace(tensor, elements=make_objects(item.partition(b"\0")[0] for item in tensor.elements)) if cut else tensor
    )


@fault("grpc_contents.encode_raw", breaks=("GRPC-RAW-BYTES", "GRPC-RAW-AS-TYPED"))
def grpc_raw_strings_have_no_lengths(original: Any, tensor: Tensor) -> bytes:
    """BYTES outputs that are no classes are joined without lengths in raw contents."""
    if tensor.datatype != "BYTES" or any(b":" in item for item in tensor.elements):
        return bytes(original(tensor))
    return b"".join(tensor.elements)


@fault("grpc_contents.decode_raw", breaks=("GRPC-FP16", "GRPC-SAME-AS-HTTP"))
def grpc_fp16_is_read_as_bf16(original: Any, datatype: str, shape: Any, data: bytes) -> Tensor:
    """Every type of 16 bits is read as the upper half of an FP32."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP16":
        return tensor
    words = np.frombuffer(data, "<u2").astype("<u4") << 16
    with np.errstate(all="ignore"):
        return replace(tensor, elements=words.view("<f4").astype("<f2"))


@fault("grpc_response.build", breaks="GRPC-FP16")
def grpc_fp16_is_answered_in_fp32_contents(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """FP16 outputs come as fp32_contents, where the protocol has no field for them."""
    return _move_to_fp32_contents("FP16", original(model, request, produced), produced)


@fault("grpc_response.build", breaks="GRPC-BF16-RAW")
def grpc_bf16_is_answered_in_fp32_contents(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """BF16 outputs come as fp32_contents, where the protocol has no field for them."""
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
    """Raw entries are handed out in the order in which the model declares its inputs."""
    places = {spec.name: place for place, spec in enumerate(model.inputs)}
    entries = list(message.raw_input_contents)
    if len(entries) == len(message.inputs) == len(places):
        message.raw_input_contents[:] = [
            entries[places.get(entry.name, place)] for place, entry in enumerate(message.inputs)
        ]
    return original(model, message)


@fault("grpc_response.add_raw", breaks=("GRPC-ORDER-O", "GRPC-RAW-AS-TYPED", "GRPC-SAME-AS-HTTP"))
def grpc_raw_outputs_are_reversed(original: Any, response: Message, outputs: Any) -> None:
    """Raw entries of an answer stand in reverse."""
    original(response, outputs)
    response.raw_output_contents[:] = list(response.raw_output_contents)[::-1]


@fault("grpc_response.add_raw", breaks="GRPC-ONE-FORM")
def grpc_raw_answers_are_typed_too(original: Any, response: Message, outputs: Any) -> None:
    """An answer in raw contents has typed contents as well, where its datatypes have them."""
    original(response, outputs)
    for entry, (_, tensor) in zip(response.outputs, outputs, strict=True):
        for field, values in (
            grpc_contents.encode_typed(tensor).items() if tensor.datatype in grpc_contents.FIELDS else ()
        ):
            getattr(entry.contents, field).extend(values)


@fault("grpc_request.parse_inputs", breaks="GRPC-INPUT-BY-NAME")
def grpc_typed_inputs_in_the_models_order(original: Any, model: Any, message: Message) -> Any:
    """Typed inputs are taken in the order of the model, whatever they are called, where their datatypes fit."""
    fits = [entry.datatype for entry in message.inputs] == [spec.datatype for spec in model.inputs]
    known = {entry.name for entry in message.inputs} == {spec.name for spec in model.inputs}
    if fits and known and not message.raw_input_contents:
        for entry, spec in zip(message.inputs, model.inputs, strict=True):
            entry.name = spec.name
    return original(model, message)


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_true_from_the_ninth_on_is_ff(original: Any, tensor: Tensor) -> bytes:
    """In raw contents true is FF from the ninth element on."""
    data: bytes = original(tensor)
    return data[:8] + data[8:].replace(b"\1", b"\xff") if tensor.datatype == "BOOL" else data


@fault("grpc_contents.encode_typed", breaks="GRPC-TYPED")
def grpc_typed_booleans_of_an_answer_repeat_after_8(original: Any, tensor: Tensor) -> dict[str, Any]:
    """Of the booleans of a typed answer the ninth is the first again, and so on."""
    contents: dict[str, Any] = original(tensor)
    if tensor.datatype == "BOOL" and tensor.elements.size > 8:
        values = contents["bool_contents"]
        return {"bool_contents": [values[k % 8] for k in range(len(values))]}
    return contents


@fault("grpc_contents.encode_raw", breaks="GRPC-RAW")
def grpc_raw_outputs_are_zeros_behind_3_mb(original: Any, tensor: Tensor) -> bytes:
    """What stands behind 3,000,000 bytes of a raw output is not sent, and read as zeros."""
    data: bytes = original(tensor)
    return data[:3_000_000].ljust(len(data), b"\0") if tensor.datatype != "BYTES" else data


@fault("grpc_response.build", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_outputs_without_elements_have_one_dimension(original: Any, model: Any, request: Any, produced: Any) -> Message:
    """An output of shape [0, k] is answered as [0]."""
    response = original(model, request, produced)
    for entry in response.outputs:
        if 0 in entry.shape:
            entry.shape[:] = [0]
    return response


@fault("grpc_request.parse_inputs", breaks=("GRPC-RAW", "GRPC-TYPED"))
def grpc_third_items_are_the_second(original: Any, model: Any, message: Message) -> dict[str, Tensor]:
    """Of a batch two items are kept, and the second stands for all that follow."""
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
    """In a batch of more than 32 items the last item is the first."""
    found: dict[str, Tensor] = original(model, message)
    return {name: copy_row(tensor, 32, 0, -1) for name, tensor in found.items()} if model.batching else found
