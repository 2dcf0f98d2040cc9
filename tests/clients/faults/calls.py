"""Clients whose calls over gRPC are wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, RequestedOutput, Tensor
from tests.clients.honest.protobuf import integer, integers, message, text


@fault("grpc_request.named", misses="CLIENT-SENDS-POST/grpc")
def version_left_out_of_calls(_original: Original, asked: CallerRequest) -> bytes:
    """The version that the caller names is not in the call."""
    return text(1, asked.model)


@fault("grpc_request.described_input", misses="CLIENT-SENDS-MEMBERS/grpc")
def datatypes_of_numpy_in_calls(original: Original, tensor: Tensor) -> bytes:
    """Datatypes in calls have the names of numpy."""
    made = bytes(original(tensor))
    return made.replace(text(2, tensor.datatype), text(2, tensor.datatype.lower()), 1)


@fault("grpc_request.described_output", misses="CLIENT-SENDS-MEMBERS/grpc")
def outputs_without_name(original: Original, output: RequestedOutput) -> bytes:
    """An output that a call asks for has no name."""
    return bytes(original(RequestedOutput("", output.form, output.classes)))


@fault("grpc_request.parameter", misses="CLIENT-SENDS-CLASSIFICATION/grpc")
def classes_as_string_param(_original: Original, field: int, key: str, value: bytes) -> bytes:
    """The count of classes is a `string_param`."""
    return message(field, text(1, key) + message(2, text(3, str(value[-1]))))


@fault("grpc_request.request", misses="CLIENT-SENDS-CLASSIFICATION-PLACE/grpc")
def classification_of_the_call_too(original: Original, asked: CallerRequest) -> bytes:
    """The call has a `classification` of the client's own, beside what it asks of outputs."""
    return bytes(original(asked)) + message(4, text(1, "classification") + message(2, integer(2, 9)))


@fault("grpc_request.request", misses="CLIENT-SENDS-OUTPUTS/grpc CLIENT-SENDS-CLASSIFICATION-PLACE/grpc")
def classification_of_the_call(original: Original, asked: CallerRequest) -> bytes:
    """The count of classes stands in the parameters of the call."""
    counts = [output.classes for output in asked.outputs or () if output.classes]
    plain = tuple(RequestedOutput(output.name, output.form) for output in asked.outputs or ())
    made = bytes(original(CallerRequest(**{**vars(asked), "outputs": plain})))
    return made + b"".join(message(4, text(1, "classification") + message(2, b"\x10%c" % count)) for count in counts)


@fault("grpc_request.contents_field", misses="CLIENT-SENDS-DATA/grpc")
def int64_in_the_field_of_int32(original: Original, datatype: str) -> int:
    """Typed contents of INT64 stand in `int_contents`."""
    return 2 if datatype == "INT64" else int(original(datatype))


@fault("grpc_request.contents_field", misses="CLIENT-SENDS-DATA/grpc")
def unsigned_in_the_field_of_signed(original: Original, datatype: str) -> int:
    """Typed contents of UINT8 and UINT16 stand in `int_contents`."""
    return 2 if datatype in ("UINT8", "UINT16") else int(original(datatype))


@fault("grpc_request.typed_elements", misses="CLIENT-SENDS-VALUES/grpc CLIENT-SENDS-ELEMENTS/grpc", datatypes="UINT8")
def uint8_sign_extended_in_calls(original: Original, tensor: Tensor) -> list[int]:
    """A UINT8 of 200 is 4294967240 in typed contents."""
    found = original(tensor)
    return [element if element < 128 else element - 256 + (1 << 32) for element in found]


@fault("grpc_request.typed_elements", misses="CLIENT-SENDS-DATA/grpc")
def last_element_left_out_of_calls(original: Original, tensor: Tensor) -> list[int]:
    """The last element of typed contents is left out."""
    return list(original(tensor)[:-1])


@fault("grpc_request.typed_elements", misses="CLIENT-SENDS-VALUES/grpc", datatypes="INT64 UINT64")
def int64_through_a_double_in_calls(original: Original, tensor: Tensor) -> list[int]:
    """A 64-bit integer goes through a double on its way into typed contents."""
    found = original(tensor)
    top = (1 << 63) - 1 if tensor.datatype == "INT64" else (1 << 64) - 1
    return [min(int(float(one)), top) for one in found]


@fault("grpc_request.contents", misses="CLIENT-SENDS-FP16/grpc", datatypes="FP16 BF16")
def fp16_in_the_field_of_fp32(_original: Original, tensor: Tensor) -> bytes:
    """Typed contents of FP16 stand in `fp32_contents`."""
    return message(6, tensors.packed("FP32", tensors.elements(tensor.datatype, tensor.data)))


@fault("grpc_request.contents", misses="CLIENT-SENDS-DATA/grpc", datatypes="BYTES")
def bytes_framed_in_typed_contents(_original: Original, tensor: Tensor) -> bytes:
    """Typed contents of BYTES are one element, the binary form of all."""
    return message(8, tensor.data)


@fault("grpc_request.contents", misses="CLIENT-SENDS-VALUES/grpc", datatypes="BYTES")
def bytes_of_calls_cut_at_nul(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES in typed contents end at their first NUL."""
    return b"".join(message(8, element.partition(b"\0")[0]) for element in tensors.strings(tensor.data))


@fault("grpc_request.described_input", misses="CLIENT-SENDS-ONE-FORM")
def raw_and_typed_contents(original: Original, tensor: Tensor) -> bytes:
    """An input in raw contents has typed ones, too."""
    made = bytes(original(tensor))
    if tensor.datatype != "INT32" or not tensor.is_binary or not tensor.data:
        return made
    return made + message(5, integers(2, tensors.elements("INT32", tensor.data)))


@fault("grpc_request.entries", misses="CLIENT-SENDS-ORDER/grpc")
def raw_entries_in_reverse(original: Original, inputs: Sequence[Tensor]) -> list[bytes]:
    """The entries of raw_input_contents are in reverse order."""
    return list(original(inputs)[::-1])


@fault("grpc_request.entries", misses="CLIENT-SENDS-ORDER/grpc")
def raw_entries_in_one(original: Original, inputs: Sequence[Tensor]) -> list[bytes]:
    """raw_input_contents is one entry for all inputs."""
    return [b"".join(original(inputs))] if inputs else []


@fault("grpc_request.entries", misses="CLIENT-SENDS-ORDER/grpc")
def raw_entries_of_empty_left_out(original: Original, inputs: Sequence[Tensor]) -> list[bytes]:
    """An input without elements has no entry in raw_input_contents."""
    return [entry for entry in original(inputs) if entry]


@fault("grpc_request.entry", misses="CLIENT-SENDS-SIZE/grpc", datatypes="FP16")
def fp16_as_eight_bytes_in_calls(_original: Original, tensor: Tensor) -> bytes:
    """An element of FP16 is eight bytes in raw_input_contents."""
    return tensors.packed("FP64", tensors.elements("FP16", tensor.data))


@fault("grpc_request.entry", misses="CLIENT-SENDS-BYTES/grpc", datatypes="BYTES")
def bytes_without_prefix_in_calls(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES have no length before them in raw_input_contents."""
    return b"".join(tensors.strings(tensor.data))


@fault("grpc_request.entry", misses="CLIENT-SENDS-BYTES/grpc", datatypes="BYTES")
def bytes_prefix_big_endian_in_calls(_original: Original, tensor: Tensor) -> bytes:
    """The lengths of elements of BYTES are big-endian in raw_input_contents."""
    return b"".join(len(one).to_bytes(4, "big") + one for one in tensors.strings(tensor.data))


@fault("grpc_request.entry", misses="CLIENT-SENDS-BOOL/grpc", datatypes="BOOL")
def bool_as_255_in_calls(original: Original, tensor: Tensor) -> bytes:
    """True is a byte of 255 in raw_input_contents."""
    made = bytes(original(tensor))
    return made.replace(b"\x01", b"\xff")


@fault("grpc_request.entry", misses="CLIENT-SENDS-LITTLE-ENDIAN/grpc")
def elements_big_endian_in_calls(original: Original, tensor: Tensor) -> bytes:
    """Elements are big-endian in raw_input_contents."""
    made = bytes(original(tensor))
    if tensor.datatype == "BYTES" or not made:
        return made
    size = tensors.element_size(tensor.datatype)
    return b"".join(made[at : at + size][::-1] for at in range(0, len(made), size))


@fault("grpc_request.shape", misses="CLIENT-SENDS-VALUES/grpc")
def scalar_as_one_element_in_calls(original: Original, sizes: Sequence[int]) -> bytes:
    """A tensor of rank 0 has the shape [1] in calls."""
    return bytes(original(sizes or [1]))


@fault("grpc_request.described_input", misses="CLIENT-SENDS-VALUES/grpc")
def int8_not_sent_in_calls(original: Original, tensor: Tensor) -> bytes:
    """An INT8 is an error of the client before a call is made."""
    if tensor.datatype == "INT8":
        raise RefusedError("unsupported datatype INT8")
    return bytes(original(tensor))


@fault("grpc_request.request", misses="CLIENT-SENDS-OUTPUTS/grpc")
def outputs_left_out_of_calls(original: Original, asked: CallerRequest) -> bytes:
    """A call lists no output."""
    return bytes(original(CallerRequest(**{**vars(asked), "outputs": None})))


@fault("grpc_request.request", misses="CLIENT-SENDS-OUTPUTS/grpc")
def id_left_out_of_calls(original: Original, asked: CallerRequest) -> bytes:
    """The caller's id is not in the call."""
    return bytes(original(CallerRequest(**{**vars(asked), "id": None})))


@fault("grpc_request.described_output", misses="CLIENT-SENDS-OUTPUTS/grpc")
def one_class_more_in_calls(original: Original, output: RequestedOutput) -> bytes:
    """A call asks for one class more than the caller wants."""
    classes = None if output.classes is None else output.classes + 1
    return bytes(original(RequestedOutput(output.name, output.form, classes)))


@fault("grpc_request.entry", misses="CLIENT-SENDS-BYTES/grpc", datatypes="BYTES")
def lone_element_without_length_in_calls(_original: Original, tensor: Tensor) -> bytes:
    """The only element of a BYTES tensor is in raw contents without its length."""
    return tensor.data[4:] if tensors.count(tensor.shape) == 1 else tensor.data


@fault("grpc_request.entries", misses="CLIENT-SENDS-VALUES/grpc")
def one_buffer_for_calls_at_once(original: Original, inputs: Sequence[Tensor]) -> list[bytes]:
    """Calls that are made at once share a buffer for raw contents of one size: each is sent with those of the last."""
    made: list[bytes] = original(inputs)
    sizes = tuple(map(len, made))
    shared_contents[sizes] = made
    time.sleep(0.01)
    return shared_contents[sizes]


shared_contents: dict[tuple[int, ...], list[bytes]] = {}
