"""Wrong layout of elements in the body: byte order, element order, gaps, lengths, modified bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.edits import on_elements, read_by_columns, swap_bytes
from reference_server.faults.families import combine
from reference_server.tensors import NUMPY, Tensor, make_objects

# --- byte order -------------------------------------------------------------------------------------------------------

inputs_read_big_endian = steps.DECODE_BINARY.after(
    ("BIN-LITTLE-ENDIAN-I", "BIN-DATATYPES-I", "OIP-ANSWER"), on_elements(swap_bytes)
).says("The server reads numbers of a binary input as big-endian.")
outputs_written_big_endian = steps.ENCODE_BINARY.before(
    ("BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-O", "OIP-ANSWER"), tensor=on_elements(swap_bytes)
).says("The server writes numbers of a binary output as big-endian.")
numbers_big_endian_both_ways = combine(
    ("BIN-LITTLE-ENDIAN-I", "BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-I", "BIN-DATATYPES-O", "OIP-ANSWER"),
    inputs_read_big_endian,
    outputs_written_big_endian,
).says("The server reads and writes numbers in binary data as big-endian.")

# --- the order of elements --------------------------------------------------------------------------------------------


def write_by_columns(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements are in column-major order."""
    return replace(tensor, elements=tensor.elements.reshape(tensor.shape).ravel(order="F"))


inputs_read_column_by_column = steps.DECODE_BINARY.after(("BIN-ROW-MAJOR-I", "OIP-ANSWER"), read_by_columns).says(
    "The server reads elements of a binary input in column-major order."
)
outputs_written_column_by_column = steps.ENCODE_BINARY.before(
    ("BIN-ROW-MAJOR-O", "OIP-ANSWER"), tensor=write_by_columns
).says("The server writes elements of a binary output in column-major order.")

# --- bytes that must stay unchanged -----------------------------------------------------------------------------------

line_end_behind_the_json_skipped = steps.BINARY_DATA.before(
    "BIN-BODY-I", data=lambda data: memoryview(bytes(data).removeprefix(b"\r\n"))
).says("The server skips CRLF at the start of the binary data of a request.")
byte_order_mark_behind_the_json_skipped = steps.BINARY_DATA.before(
    "BIN-BODY-I", data=lambda data: memoryview(bytes(data).removeprefix(b"\xef\xbb\xbf"))
).says("The server skips a UTF-8 byte order mark at the start of the binary data of a request.")
line_end_behind_the_last_tensor = steps.JOIN.after(("BIN-BODY-O", "CLS-BINARY"), lambda body: body + b"\n").says(
    "The server adds a line feed after the last binary output of an answer."
)
blank_between_the_json_and_a_brace = steps.JOIN.before(
    ("BIN-BODY-O", "OIP-ANSWER"),
    binary=lambda binary: [b" ", *binary],
    when=lambda binary: binary and bytes(binary[0][:1]) in (b"{", b"}", b"[", b"]", b'"'),
).says("The server adds a space before binary data that begin with a brace, a bracket or a double quote.")

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


strings_cut_where_the_data_end = steps.SPLIT_ELEMENTS.instead(
    "BIN-BYTES-MISFRAMED", lambda data, count: make_objects(split_prefixed(bytes(data), count, allow_cut=True))
).says("If the length of a BYTES element exceeds the rest of a binary input, the element gets the remaining bytes.")


@fault(steps.SPLIT_ELEMENTS, "tensors.check_size", breaks="BIN-BYTES-MISFRAMED")
def missing_strings_read_as_empty(original: Any, *arguments: Any) -> Any:
    """If a binary BYTES input has too few elements for the shape, the server adds empty elements."""
    if len(arguments) == 3:
        return None if arguments[0] == "BYTES" else original(*arguments)
    data, count = arguments
    items: list[bytes] = []
    octets, start = bytes(data), 0
    while start < len(octets) and len(items) < count:
        items.extend(original(octets[start : start + 4 + int.from_bytes(octets[start : start + 4], "little")], 1))
        start += 4 + len(items[-1])
    if start < len(octets):
        raise InferenceError("surplus bytes after the last element")
    return make_objects([*items, *[b""] * (count - len(items))])


@fault(steps.SPLIT_ELEMENTS, breaks="BIN-BYTES-MISFRAMED")
def strings_beyond_the_shape_ignored(original: Any, data: memoryview, count: int) -> Any:
    """The server ignores bytes after the last BYTES element that the shape of a binary input counts."""
    octets, end = bytes(data), 0
    for _ in range(count):
        end += 4 + int.from_bytes(octets[end : end + 4], "little")
    return original(octets[:end], count)


# --- gaps -------------------------------------------------------------------------------------------------------------


@fault(steps.TAKE, breaks=("BIN-PACKED-I", "BIN-BODY-LONG", "BIN-SIZE-I", "OIP-ANSWER"))
def inputs_expected_at_multiples_of_four(original: Any, self: Any, size: int) -> memoryview:
    """The server expects each binary input to be padded to a multiple of four bytes."""
    taken: memoryview = original(self, size)
    self._remaining = self._remaining[-size % 4 :]
    return taken


def _skip_gaps(data: memoryview, datatype: str, shape: tuple[int, ...]) -> memoryview:
    """Return binary data without the gaps between rows; bytes missing at the end are read as zeros."""
    length = 0 if datatype == "BYTES" or len(shape) < 2 else shape[-1] * NUMPY[datatype].itemsize
    if length % 4 == 0:
        return data
    stride = length + -length % 4
    starts = range(0, len(data) // length * stride, stride)
    return memoryview(b"".join(bytes(data[start : start + length]).ljust(length, b"\0") for start in starts))


rows_expected_at_multiples_of_four = steps.DECODE_BINARY.before(("BIN-PACKED-I", "OIP-ANSWER"), data=_skip_gaps).says(
    "The server expects each row of a binary input to be padded to a multiple of four bytes."
)
outputs_written_at_multiples_of_four = steps.JOIN.before(
    ("BIN-PACKED-O", "BIN-BODY-O", "OIP-ANSWER"),
    binary=lambda binary: [*(bytes(data) + bytes(-len(data) % 4) for data in binary[:-1]), binary[-1]],
).says("The server pads each binary output except the last to a multiple of four bytes.")


def _pad_rows(tensor: Tensor) -> bytes:
    """Return the binary data of a matrix; `binary_data_size` counts the padding."""
    return b"".join(row.tobytes() + bytes(-row.nbytes % 16) for row in tensor.elements.reshape(tensor.shape))


rows_written_at_multiples_of_16 = steps.ENCODE_BINARY.instead(
    ("BIN-PACKED-O", "BIN-SIZE-O", "OIP-ANSWER"),
    _pad_rows,
    when=lambda tensor: len(tensor.shape) == 2 and tensor.datatype != "BYTES",
).says("The server pads each row of a two-dimensional binary output to a multiple of 16 bytes.")
strings_expected_at_multiples_of_four = steps.SPLIT_ELEMENTS.instead(
    ("BIN-PACKED-I", "BIN-BYTES-I", "BIN-BYTES-MISFRAMED", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"),
    lambda data, count: make_objects(split_prefixed(bytes(data), count, unit=4)),
).says("The server expects each BYTES element of a binary input to be padded to a multiple of four bytes.")
strings_written_at_multiples_of_four = steps.JOIN_ELEMENTS.instead(
    ("BIN-PACKED-O", "BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
    lambda elements: b"".join(len(item).to_bytes(4, "little") + item + bytes(-len(item) % 4) for item in elements),
).says("The server pads each BYTES element of a binary output to a multiple of four bytes.")
