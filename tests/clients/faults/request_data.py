"""Requests whose binary data are wrong, over HTTP."""

from __future__ import annotations

import struct

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, Tensor
from tests.clients.honest.request import Headers

size_off_by_one = steps.DATA_SIZE.after("CLIENT-SENDS-SIZE CLIENT-SENDS-SIZES-FILL", lambda made: made + 1).says(
    "`binary_data_size` is one byte too great."
)
size_in_elements = steps.DATA_SIZE.instead(
    "CLIENT-SENDS-SIZE CLIENT-SENDS-SIZES-FILL", lambda tensor: tensors.count(tensor.shape)
).says("`binary_data_size` is the number of elements.")
fp16_as_eight_bytes = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-SIZE CLIENT-SENDS-VALUES",
    lambda tensor: tensors.packed("FP64", tensors.elements("FP16", tensor.data)),
    datatypes="FP16",
).says("An element of FP16 is sent as a double.")
int8_as_four_bytes = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-SIZE", lambda tensor: tensors.packed("INT32", tensors.elements("INT8", tensor.data)), datatypes="INT8"
).says("An element of INT8 is sent as one of INT32.")
bool_as_int32 = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-SIZE CLIENT-SENDS-RAW CLIENT-SENDS-VALUES",
    lambda tensor: b"".join(struct.pack("<i", byte) for byte in tensor.data),
    datatypes="BOOL",
).says("An element of BOOL is sent as four bytes.")
bool_as_255 = steps.BINARY_DATA.after(
    "CLIENT-SENDS-BOOL CLIENT-SENDS-VALUES", lambda made: made.replace(b"\x01", b"\xff"), datatypes="BOOL"
).says("True is sent as a byte of 255.")
bytes_without_prefix = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-BYTES", lambda tensor: b"".join(tensors.strings(tensor.data)), datatypes="BYTES"
).says("Elements of BYTES have no length before them.")
bytes_prefix_big_endian = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-BYTES",
    lambda tensor: b"".join(struct.pack(">I", len(one)) + one for one in tensors.strings(tensor.data)),
    datatypes="BYTES",
).says("The lengths of elements of BYTES are big-endian.")
bytes_prefix_of_eight_bytes = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-BYTES",
    lambda tensor: b"".join(struct.pack("<Q", len(one)) + one for one in tensors.strings(tensor.data)),
    datatypes="BYTES",
).says("The lengths of elements of BYTES have eight bytes.")


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_prefix_counts_characters(_original: Original, tensor: Tensor) -> bytes:
    """The lengths of elements of BYTES count characters."""
    found = tensors.strings(tensor.data)
    return b"".join(struct.pack("<I", len(one.decode(errors="ignore"))) + one for one in found)


bytes_end_in_nul = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-BYTES",
    lambda tensor: b"".join(tensors.framed(one) + b"\0" for one in tensors.strings(tensor.data)),
    datatypes="BYTES",
).says("Elements of BYTES have a NUL behind them that their length does not count.")
trailing_nul_stripped = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-VALUES",
    lambda tensor: b"".join(tensors.framed(one.rstrip(b"\0")) for one in tensors.strings(tensor.data)),
    datatypes="BYTES",
).says("Elements of BYTES lose the NULs at their end, as in numpy's type S.")


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES", datatypes="BYTES")
def bytes_cut_at_nul(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES end at their first NUL, as strings of C."""
    return b"".join(tensors.framed(one.partition(b"\0")[0]) for one in tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES", datatypes="BYTES")
def bytes_made_text(_original: Original, tensor: Tensor) -> bytes:
    """Bytes that are no UTF-8 become replacement characters."""
    return b"".join(tensors.framed(one.decode(errors="replace").encode()) for one in tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-LITTLE-ENDIAN CLIENT-SENDS-VALUES")
def elements_big_endian(original: Original, tensor: Tensor) -> bytes:
    """Elements are sent big-endian."""
    made = bytes(original(tensor))
    if tensor.datatype == "BYTES" or not made:
        return made
    size = tensors.element_size(tensor.datatype)
    return b"".join(made[at : at + size][::-1] for at in range(0, len(made), size))


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES")
def column_major(original: Original, tensor: Tensor) -> bytes:
    """A matrix is sent column by column."""
    made = bytes(original(tensor))
    if tensor.datatype == "BYTES" or len(tensor.shape) != 2:
        return made
    (rows, columns), size = tensor.shape, tensors.element_size(tensor.datatype)
    places = [row * columns + column for column in range(columns) for row in range(rows)]
    return b"".join(made[place * size : (place + 1) * size] for place in places)


data_in_reverse = steps.IN_ORDER.instead("CLIENT-SENDS-ORDER", lambda pieces: pieces[::-1]).says(
    "Binary data follow the JSON in reverse order."
)
json_in_order_of_names = steps.DOCUMENT.after(
    "CLIENT-SENDS-ORDER", lambda said: {**said, "inputs": sorted(said["inputs"], key=lambda one: one["name"])}
).says("The JSON lists the inputs by name, their data come in the order of the caller.")
data_padded = steps.IN_ORDER.instead(
    "CLIENT-SENDS-SIZES-FILL", lambda pieces: [piece + bytes(-len(piece) % 8) for piece in pieces]
).says("The data of each tensor are padded to a multiple of eight bytes.")
newline_behind_the_json = steps.JOINED.instead(
    "CLIENT-SENDS-SIZES-FILL", lambda text, pieces: text + b"\n" * bool(pieces) + b"".join(pieces)
).says("A new line stands between JSON and data, which nothing counts.")
data_behind_an_empty_tensor_left_out = steps.IN_ORDER.instead(
    "CLIENT-SENDS-SIZES-FILL", lambda pieces: pieces[: pieces.index(b"")], when=lambda pieces: b"" in pieces
).says("The binary data of inputs behind an input without elements are left out.")
last_tensor_left_out = steps.JOINED.instead(
    "CLIENT-SENDS-SIZES-FILL", lambda text, pieces: text + b"".join(pieces[:-1])
).says("The binary data of the last input are left out.")


@fault("request.raw", misses="CLIENT-SENDS-RAW CLIENT-SENDS-VALUES")
def raw_with_json(_original: Original, asked: CallerRequest) -> tuple[Headers, bytes]:
    """A raw binary request has the JSON before its data."""
    headers = [("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", "0")]
    return headers, b'{"inputs":[]}' + asked.inputs[0].data


raw_data_cut = steps.RAW_DATA.after("CLIENT-SENDS-VALUES", lambda made: made[:-1]).says(
    "The last byte of a raw binary request is left out."
)


SENT: dict[int, bytes] = {}


buffer_of_an_earlier_request = steps.BINARY_DATA.after(
    "CLIENT-SENDS-VALUES CLIENT-SENDS-BYTES CLIENT-SENDS-BOOL", lambda made: SENT.setdefault(len(made), made)
).says("Where an earlier tensor was as long, its data are sent again.")
lone_element_without_length = steps.BINARY_DATA.instead(
    "CLIENT-SENDS-BYTES",
    lambda tensor: tensor.data[4:] if tensors.count(tensor.shape) == 1 else tensor.data,
    datatypes="BYTES",
).says("The only element of a BYTES tensor is sent without its length.")
