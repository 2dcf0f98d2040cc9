"""Clients whose calls over gRPC are wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, RequestedOutput, Tensor
from tests.clients.honest.protobuf import integer, integers, message, text

version_left_out_of_calls = steps.NAMED.instead("CLIENT-SENDS-POST/grpc", lambda asked: text(1, asked.model)).says(
    "The version that the caller names is not in the call."
)
datatypes_of_numpy_in_calls = steps.CALL_INPUT.after(
    "CLIENT-SENDS-MEMBERS/grpc",
    lambda made, tensor: made.replace(text(2, tensor.datatype), text(2, tensor.datatype.lower()), 1),
).says("Datatypes in calls have the names of numpy.")
outputs_without_name = steps.CALL_OUTPUT.before(
    "CLIENT-SENDS-MEMBERS/grpc", output=lambda output: RequestedOutput("", output.form, output.classes)
).says("An output that a call asks for has no name.")
classes_as_string_param = steps.PARAMETER.instead(
    "CLIENT-SENDS-CLASSIFICATION/grpc",
    lambda field, key, value: message(field, text(1, key) + message(2, text(3, str(value[-1])))),
).says("The count of classes is a `string_param`.")
classification_of_the_call_too = steps.CALL_REQUEST.after(
    "CLIENT-SENDS-CLASSIFICATION-PLACE/grpc",
    lambda made: made + message(4, text(1, "classification") + message(2, integer(2, 9))),
).says("The call has a `classification` of the client's own, beside what it asks of outputs.")


@fault("grpc_request.request", misses="CLIENT-SENDS-OUTPUTS/grpc CLIENT-SENDS-CLASSIFICATION-PLACE/grpc")
def classification_of_the_call(original: Original, asked: CallerRequest) -> bytes:
    """The count of classes stands in the parameters of the call."""
    counts = [output.classes for output in asked.outputs or () if output.classes]
    plain = tuple(RequestedOutput(output.name, output.form) for output in asked.outputs or ())
    made = bytes(original(CallerRequest(**{**vars(asked), "outputs": plain})))
    return made + b"".join(message(4, text(1, "classification") + message(2, b"\x10%c" % count)) for count in counts)


int64_in_the_field_of_int32 = steps.CONTENTS_FIELD.after(
    "CLIENT-SENDS-DATA/grpc", lambda made, datatype: 2 if datatype == "INT64" else made
).says("Typed contents of INT64 stand in `int_contents`.")
unsigned_in_the_field_of_signed = steps.CONTENTS_FIELD.after(
    "CLIENT-SENDS-DATA/grpc", lambda made, datatype: 2 if datatype in ("UINT8", "UINT16") else made
).says("Typed contents of UINT8 and UINT16 stand in `int_contents`.")
uint8_sign_extended_in_calls = steps.TYPED_ELEMENTS.after(
    "CLIENT-SENDS-VALUES/grpc CLIENT-SENDS-ELEMENTS/grpc",
    lambda found: [element if element < 128 else element - 256 + (1 << 32) for element in found],
    datatypes="UINT8",
).says("A UINT8 of 200 is 4294967240 in typed contents.")
last_element_left_out_of_calls = steps.TYPED_ELEMENTS.after(
    "CLIENT-SENDS-DATA/grpc", lambda made: list(made[:-1])
).says("The last element of typed contents is left out.")


@fault("grpc_request.typed_elements", misses="CLIENT-SENDS-VALUES/grpc", datatypes="INT64 UINT64")
def int64_through_a_double_in_calls(original: Original, tensor: Tensor) -> list[int]:
    """A 64-bit integer goes through a double on its way into typed contents."""
    found = original(tensor)
    top = (1 << 63) - 1 if tensor.datatype == "INT64" else (1 << 64) - 1
    return [min(int(float(one)), top) for one in found]


fp16_in_the_field_of_fp32 = steps.CONTENTS.instead(
    "CLIENT-SENDS-FP16/grpc",
    lambda tensor: message(6, tensors.packed("FP32", tensors.elements(tensor.datatype, tensor.data))),
    datatypes="FP16 BF16",
).says("Typed contents of FP16 stand in `fp32_contents`.")
bytes_framed_in_typed_contents = steps.CONTENTS.instead(
    "CLIENT-SENDS-DATA/grpc", lambda tensor: message(8, tensor.data), datatypes="BYTES"
).says("Typed contents of BYTES are one element, the binary form of all.")


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


raw_entries_in_reverse = steps.ENTRIES.after("CLIENT-SENDS-ORDER/grpc", lambda made: list(made[::-1])).says(
    "The entries of raw_input_contents are in reverse order."
)
raw_entries_in_one = steps.ENTRIES.after(
    "CLIENT-SENDS-ORDER/grpc", lambda made, inputs: [b"".join(made)] if inputs else []
).says("raw_input_contents is one entry for all inputs.")
raw_entries_of_empty_left_out = steps.ENTRIES.after(
    "CLIENT-SENDS-ORDER/grpc", lambda made: [entry for entry in made if entry]
).says("An input without elements has no entry in raw_input_contents.")
fp16_as_eight_bytes_in_calls = steps.ENTRY.instead(
    "CLIENT-SENDS-SIZE/grpc",
    lambda tensor: tensors.packed("FP64", tensors.elements("FP16", tensor.data)),
    datatypes="FP16",
).says("An element of FP16 is eight bytes in raw_input_contents.")
bytes_without_prefix_in_calls = steps.ENTRY.instead(
    "CLIENT-SENDS-BYTES/grpc", lambda tensor: b"".join(tensors.strings(tensor.data)), datatypes="BYTES"
).says("Elements of BYTES have no length before them in raw_input_contents.")
bytes_prefix_big_endian_in_calls = steps.ENTRY.instead(
    "CLIENT-SENDS-BYTES/grpc",
    lambda tensor: b"".join(len(one).to_bytes(4, "big") + one for one in tensors.strings(tensor.data)),
    datatypes="BYTES",
).says("The lengths of elements of BYTES are big-endian in raw_input_contents.")
bool_as_255_in_calls = steps.ENTRY.after(
    "CLIENT-SENDS-BOOL/grpc", lambda made: made.replace(b"\x01", b"\xff"), datatypes="BOOL"
).says("True is a byte of 255 in raw_input_contents.")


@fault("grpc_request.entry", misses="CLIENT-SENDS-LITTLE-ENDIAN/grpc")
def elements_big_endian_in_calls(original: Original, tensor: Tensor) -> bytes:
    """Elements are big-endian in raw_input_contents."""
    made = bytes(original(tensor))
    if tensor.datatype == "BYTES" or not made:
        return made
    size = tensors.element_size(tensor.datatype)
    return b"".join(made[at : at + size][::-1] for at in range(0, len(made), size))


scalar_as_one_element_in_calls = steps.SHAPE.before("CLIENT-SENDS-VALUES/grpc", sizes=lambda sizes: sizes or [1]).says(
    "A tensor of rank 0 has the shape [1] in calls."
)
int8_not_sent_in_calls = steps.CALL_INPUT.fail(
    "CLIENT-SENDS-VALUES/grpc", RefusedError("unsupported datatype INT8"), when=lambda tensor: tensor.datatype == "INT8"
).says("An INT8 is an error of the client before a call is made.")
outputs_left_out_of_calls = steps.CALL_REQUEST.before(
    "CLIENT-SENDS-OUTPUTS/grpc", asked=lambda asked: CallerRequest(**{**vars(asked), "outputs": None})
).says("A call lists no output.")
id_left_out_of_calls = steps.CALL_REQUEST.before(
    "CLIENT-SENDS-OUTPUTS/grpc", asked=lambda asked: CallerRequest(**{**vars(asked), "id": None})
).says("The caller's id is not in the call.")


@fault("grpc_request.described_output", misses="CLIENT-SENDS-OUTPUTS/grpc")
def one_class_more_in_calls(original: Original, output: RequestedOutput) -> bytes:
    """A call asks for one class more than the caller wants."""
    classes = None if output.classes is None else output.classes + 1
    return bytes(original(RequestedOutput(output.name, output.form, classes)))


lone_element_without_length_in_calls = steps.ENTRY.instead(
    "CLIENT-SENDS-BYTES/grpc",
    lambda tensor: tensor.data[4:] if tensors.count(tensor.shape) == 1 else tensor.data,
    datatypes="BYTES",
).says("The only element of a BYTES tensor is in raw contents without its length.")


@fault("grpc_request.entries", misses="CLIENT-SENDS-VALUES/grpc")
def one_buffer_for_calls_at_once(original: Original, inputs: Sequence[Tensor]) -> list[bytes]:
    """Calls that are made at once share a buffer for raw contents of one size: each is sent with those of the last."""
    made: list[bytes] = original(inputs)
    sizes = tuple(map(len, made))
    shared_contents[sizes] = made
    time.sleep(0.01)
    return shared_contents[sizes]


shared_contents: dict[tuple[int, ...], list[bytes]] = {}
