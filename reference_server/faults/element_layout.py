"""Wrong layout of elements in the body: byte order, element order, gaps, lengths, modified bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.response import Octets
from reference_server.tensors import NUMPY, Tensor, make_objects

Shape = tuple[int, ...]


# --- byte order -------------------------------------------------------------------------------------------------------


def swap_bytes(elements: Any) -> Any:
    """Return numbers with the byte order of each reversed."""
    return elements.view(f"u{elements.itemsize}").byteswap().view(elements.dtype)


@fault("tensors.decode_binary", breaks=("BIN-LITTLE-ENDIAN-I", "BIN-DATATYPES-I", "OIP-ANSWER"))
def inputs_read_big_endian(original: Any, *arguments: Any) -> Tensor:
    """The server reads numbers of a binary input as big-endian."""
    tensor: Tensor = original(*arguments)
    return tensor if tensor.datatype == "BYTES" else replace(tensor, elements=swap_bytes(tensor.elements))


@fault("tensors.encode_binary", breaks=("BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-O", "OIP-ANSWER"))
def outputs_written_big_endian(original: Any, tensor: Tensor) -> Any:
    """The server writes numbers of a binary output as big-endian."""
    return original(tensor if tensor.datatype == "BYTES" else replace(tensor, elements=swap_bytes(tensor.elements)))


@fault(
    "tensors.decode_binary",
    "tensors.encode_binary",
    breaks=(
        "BIN-LITTLE-ENDIAN-I",
        "BIN-LITTLE-ENDIAN-O",
        "BIN-DATATYPES-I",
        "BIN-DATATYPES-O",
        "OIP-ANSWER",
    ),
)
def numbers_big_endian_both_ways(original: Any, first: Any, *rest: Any) -> Any:
    """The server reads and writes numbers in binary data as big-endian."""
    if isinstance(first, Tensor):
        return original(first if first.datatype == "BYTES" else replace(first, elements=swap_bytes(first.elements)))
    tensor = original(first, *rest)
    return tensor if first == "BYTES" else replace(tensor, elements=swap_bytes(tensor.elements))


# --- the order of elements --------------------------------------------------------------------------------------------


def order_by_columns(elements: Any, shape: Shape) -> Any:
    """Return row-major elements in column-major order."""
    return elements.reshape(shape).ravel(order="F")


def order_by_rows(elements: Any, shape: Shape) -> Any:
    """Return column-major elements in row-major order."""
    return elements.reshape(shape, order="F").ravel()


@fault("tensors.decode_binary", breaks=("BIN-ROW-MAJOR-I", "OIP-ANSWER"))
def inputs_read_column_by_column(original: Any, *arguments: Any) -> Tensor:
    """The server reads elements of a binary input in column-major order."""
    tensor: Tensor = original(*arguments)
    return replace(tensor, elements=order_by_rows(tensor.elements, tensor.shape))


@fault("tensors.encode_binary", breaks=("BIN-ROW-MAJOR-O", "OIP-ANSWER"))
def outputs_written_column_by_column(original: Any, tensor: Tensor) -> Any:
    """The server writes elements of a binary output in column-major order."""
    return original(replace(tensor, elements=order_by_columns(tensor.elements, tensor.shape)))


# --- bytes that must stay unchanged -----------------------------------------------------------------------------------


@fault("framing.BinaryData.__init__", breaks="BIN-BODY-I")
def line_end_behind_the_json_skipped(original: Any, self: Any, data: memoryview) -> None:
    """The server skips CRLF at the start of the binary data of a request."""
    original(self, memoryview(bytes(data).removeprefix(b"\r\n")))


@fault("framing.BinaryData.__init__", breaks="BIN-BODY-I")
def byte_order_mark_behind_the_json_skipped(original: Any, self: Any, data: memoryview) -> None:
    """The server skips a UTF-8 byte order mark at the start of the binary data of a request."""
    original(self, memoryview(bytes(data).removeprefix(b"\xef\xbb\xbf")))


@fault("response.join", breaks=("BIN-BODY-O", "CLS-BINARY"))
def line_end_behind_the_last_tensor(original: Any, head: bytes, binary: Iterable[Octets]) -> bytes:
    """The server adds a line feed after the last binary output of an answer."""
    return original(head, binary) + b"\n"


@fault("response.join", breaks=("BIN-BODY-O", "OIP-ANSWER"))
def blank_between_the_json_and_a_brace(original: Any, head: bytes, binary: Sequence[Octets]) -> Any:
    """The server adds a space before binary data that begin with a brace, a bracket or a double quote."""
    apart = binary and bytes(binary[0][:1]) in (b"{", b"}", b"[", b"]", b'"')
    return original(head, [b" ", *binary] if apart else binary)


# --- inconsistent lengths ---------------------------------------------------------------------------------------------


def split_prefixed(data: bytes, count: int, *, unit: int = 1, allow_cut: bool = False) -> Iterator[bytes]:
    """Yield length-prefixed elements aligned to `unit` bytes; `allow_cut` allows a truncated end of the data."""
    offset = 0
    for index in range(count):
        if offset + 4 > len(data) and not allow_cut:
            raise InferenceError(f"element {index} has no length prefix")
        start = offset + 4
        end = start + int.from_bytes(data[offset:start], "little")
        if end > len(data) and not allow_cut:
            raise InferenceError(f"element {index} ends at byte {end}, past the end of the data")
        yield data[start:end]
        offset = end + -end % unit
    if offset < len(data):
        raise InferenceError("surplus bytes after the last element")


@fault("tensors.split_elements", breaks="BIN-BYTES-MISFRAMED")
def strings_cut_where_the_data_end(_original: Any, data: memoryview, count: int) -> Any:
    """If the length of a BYTES element exceeds the rest of a binary input, the element gets the remaining bytes."""
    return make_objects(split_prefixed(bytes(data), count, allow_cut=True))


@fault("tensors.split_elements", "tensors.check_size", breaks="BIN-BYTES-MISFRAMED")
def missing_strings_read_as_empty(original: Any, *arguments: Any) -> Any:
    """If a binary BYTES input has too few elements for the shape, the server adds empty elements."""
    if len(arguments) == 3:
        return None if arguments[0] == "BYTES" else original(*arguments)
    data, count = arguments
    items: list[bytes] = []
    octets = bytes(data)
    while octets and len(items) < count:
        items.extend(original(octets[: 4 + int.from_bytes(octets[:4], "little")], 1))
        octets = octets[4 + len(items[-1]) :]
    if octets:
        raise InferenceError("surplus bytes after the last element")
    return make_objects([*items, *[b""] * (count - len(items))])


@fault("tensors.split_elements", breaks="BIN-BYTES-MISFRAMED")
def strings_beyond_the_shape_ignored(original: Any, data: memoryview, count: int) -> Any:
    """The server ignores bytes after the last BYTES element that the shape of a binary input counts."""
    octets, end = bytes(data), 0
    for _ in range(count):
        end += 4 + int.from_bytes(octets[end : end + 4], "little")
    return original(octets[:end], count)


# --- gaps -------------------------------------------------------------------------------------------------------------


@fault("framing.BinaryData.take", breaks=("BIN-PACKED-I", "BIN-BODY-LONG", "BIN-SIZE-I", "OIP-ANSWER"))
def inputs_expected_at_multiples_of_four(original: Any, self: Any, size: int) -> memoryview:
    """The server expects each binary input to be padded to a multiple of four bytes."""
    taken: memoryview = original(self, size)
    self._remaining = self._remaining[-size % 4 :]
    return taken


@fault("tensors.decode_binary", breaks=("BIN-PACKED-I", "OIP-ANSWER"))
def rows_expected_at_multiples_of_four(
    original: Any, datatype: str, shape: tuple[int, ...], data: memoryview
) -> Tensor:
    """The server expects each row of a binary input to be padded to a multiple of four bytes.

    Bytes missing at the end are read as zeros.
    """
    length = 0 if datatype == "BYTES" or len(shape) < 2 else shape[-1] * NUMPY[datatype].itemsize
    if length % 4 == 0:
        return cast(Tensor, original(datatype, shape, data))
    stride = length + -length % 4
    starts = range(0, len(data) // length * stride, stride)
    rows = [bytes(data[start : start + length]).ljust(length, b"\0") for start in starts]
    return cast(Tensor, original(datatype, shape, memoryview(b"".join(rows))))


@fault("response.join", breaks=("BIN-PACKED-O", "BIN-BODY-O", "OIP-ANSWER"))
def outputs_written_at_multiples_of_four(original: Any, head: bytes, binary: Sequence[Octets]) -> Any:
    """The server pads each binary output except the last to a multiple of four bytes."""
    padded = [bytes(data) + bytes(-len(data) % 4) for data in binary[:-1]]
    return original(head, [*padded, binary[-1]])


@fault("tensors.encode_binary", breaks=("BIN-PACKED-O", "BIN-SIZE-O", "OIP-ANSWER"))
def rows_written_at_multiples_of_16(original: Any, tensor: Tensor) -> Any:
    """The server pads each row of a two-dimensional binary output to a multiple of 16 bytes.

    `binary_data_size` counts the padding.
    """
    if len(tensor.shape) != 2 or tensor.datatype == "BYTES":
        return original(tensor)
    rows = tensor.elements.reshape(tensor.shape)
    return b"".join(row.tobytes() + bytes(-row.nbytes % 16) for row in rows)


@fault(
    "tensors.split_elements",
    breaks=("BIN-PACKED-I", "BIN-BYTES-I", "BIN-BYTES-MISFRAMED", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"),
)
def strings_expected_at_multiples_of_four(_original: Any, data: memoryview, count: int) -> Any:
    """The server expects each BYTES element of a binary input to be padded to a multiple of four bytes."""
    return make_objects(split_prefixed(bytes(data), count, unit=4))


@fault("tensors.join_elements", breaks=("BIN-PACKED-O", "BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def strings_written_at_multiples_of_four(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The server pads each BYTES element of a binary output to a multiple of four bytes.

    The length of the element does not count the padding.
    """
    return b"".join(len(item).to_bytes(4, "little") + item + bytes(-len(item) % 4) for item in elements)
