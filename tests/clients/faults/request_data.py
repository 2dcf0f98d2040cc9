"""Requests whose binary data are wrong, over HTTP."""

from __future__ import annotations

import struct
from typing import Any

from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, Tensor
from tests.clients.honest.request import Headers


@fault("request.data_size", misses="CLIENT-SENDS-SIZE CLIENT-SENDS-SIZES-FILL")
def size_off_by_one(original: Original, tensor: Tensor) -> int:
    """`binary_data_size` is one byte too great."""
    return int(original(tensor)) + 1


@fault("request.data_size", misses="CLIENT-SENDS-SIZE CLIENT-SENDS-SIZES-FILL")
def size_in_elements(_original: Original, tensor: Tensor) -> int:
    """`binary_data_size` is the number of elements."""
    return tensors.count(tensor.shape)


@fault("request.binary_data", misses="CLIENT-SENDS-SIZE CLIENT-SENDS-VALUES", datatypes="FP16")
def fp16_as_eight_bytes(_original: Original, tensor: Tensor) -> bytes:
    """An element of FP16 is sent as a double."""
    return tensors.packed("FP64", tensors.elements("FP16", tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-SIZE", datatypes="INT8")
def int8_as_four_bytes(_original: Original, tensor: Tensor) -> bytes:
    """An element of INT8 is sent as one of INT32."""
    return tensors.packed("INT32", tensors.elements("INT8", tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-SIZE CLIENT-SENDS-RAW CLIENT-SENDS-VALUES", datatypes="BOOL")
def bool_as_int32(_original: Original, tensor: Tensor) -> bytes:
    """An element of BOOL is sent as four bytes."""
    return b"".join(struct.pack("<i", byte) for byte in tensor.data)


@fault("request.binary_data", misses="CLIENT-SENDS-BOOL CLIENT-SENDS-VALUES", datatypes="BOOL")
def bool_as_255(original: Original, tensor: Tensor) -> bytes:
    """True is sent as a byte of 255."""
    made = bytes(original(tensor))
    return made.replace(b"\x01", b"\xff")


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_without_prefix(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES have no length before them."""
    return b"".join(tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_prefix_big_endian(_original: Original, tensor: Tensor) -> bytes:
    """The lengths of elements of BYTES are big-endian."""
    return b"".join(struct.pack(">I", len(one)) + one for one in tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_prefix_of_eight_bytes(_original: Original, tensor: Tensor) -> bytes:
    """The lengths of elements of BYTES have eight bytes."""
    return b"".join(struct.pack("<Q", len(one)) + one for one in tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_prefix_counts_characters(_original: Original, tensor: Tensor) -> bytes:
    """The lengths of elements of BYTES count characters."""
    found = tensors.strings(tensor.data)
    return b"".join(struct.pack("<I", len(one.decode(errors="ignore"))) + one for one in found)


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def bytes_end_in_nul(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES have a NUL behind them that their length does not count."""
    return b"".join(tensors.framed(one) + b"\0" for one in tensors.strings(tensor.data))


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES", datatypes="BYTES")
def trailing_nul_stripped(_original: Original, tensor: Tensor) -> bytes:
    """Elements of BYTES lose the NULs at their end, as in numpy's type S."""
    return b"".join(tensors.framed(one.rstrip(b"\0")) for one in tensors.strings(tensor.data))


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


@fault("request.in_order", misses="CLIENT-SENDS-ORDER")
def data_in_reverse(_original: Original, pieces: list[bytes]) -> list[bytes]:
    """Binary data follow the JSON in reverse order."""
    return pieces[::-1]


@fault("request.document", misses="CLIENT-SENDS-ORDER")
def json_in_order_of_names(original: Original, asked: CallerRequest) -> dict[str, Any]:
    """The JSON lists the inputs by name, their data come in the order of the caller."""
    said = original(asked)
    return {**said, "inputs": sorted(said["inputs"], key=lambda one: one["name"])}


@fault("request.in_order", misses="CLIENT-SENDS-SIZES-FILL")
def data_padded(_original: Original, pieces: list[bytes]) -> list[bytes]:
    """The data of each tensor are padded to a multiple of eight bytes."""
    return [piece + bytes(-len(piece) % 8) for piece in pieces]


@fault("request.joined", misses="CLIENT-SENDS-SIZES-FILL")
def newline_behind_the_json(_original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """A new line stands between JSON and data, which nothing counts."""
    return text + b"\n" * bool(pieces) + b"".join(pieces)


@fault("request.joined", misses="CLIENT-SENDS-SIZES-FILL")
def last_tensor_left_out(_original: Original, text: bytes, pieces: list[bytes]) -> bytes:
    """The binary data of the last input are left out."""
    return text + b"".join(pieces[:-1])


@fault("request.raw", misses="CLIENT-SENDS-RAW CLIENT-SENDS-VALUES")
def raw_with_json(_original: Original, asked: CallerRequest) -> tuple[Headers, bytes]:
    """A raw binary request has the JSON before its data."""
    headers = [("Content-Type", "application/octet-stream"), ("Inference-Header-Content-Length", "0")]
    return headers, b'{"inputs":[]}' + asked.inputs[0].data


@fault("request.raw_data", misses="CLIENT-SENDS-VALUES")
def raw_data_cut(original: Original, tensor: Tensor) -> bytes:
    """The last byte of a raw binary request is left out."""
    return bytes(original(tensor))[:-1]


SENT: dict[int, bytes] = {}


@fault("request.binary_data", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-BYTES CLIENT-SENDS-BOOL")
def buffer_of_an_earlier_request(original: Original, tensor: Tensor) -> bytes:
    """Where an earlier tensor was as long, its data are sent again."""
    made = bytes(original(tensor))
    return SENT.setdefault(len(made), made)


@fault("request.binary_data", misses="CLIENT-SENDS-BYTES", datatypes="BYTES")
def lone_element_without_length(_original: Original, tensor: Tensor) -> bytes:
    """The only element of a BYTES tensor is sent without its length."""
    return tensor.data[4:] if tensors.count(tensor.shape) == 1 else tensor.data
