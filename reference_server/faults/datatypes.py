"""Elements read or written wrongly for one datatype: width, sign, precision, booleans, strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from reference_server.faults import fault, steps
from reference_server.faults.edits import flush_subnormals, on_elements, round_to_single, set_elements
from reference_server.tensors import Tensor, make_objects

Elements = Any


def is_tensor_of(*datatypes: str) -> Callable[[Tensor], bool]:
    """Return a condition: the tensor to write is of one of these datatypes."""
    return lambda tensor: tensor.datatype in datatypes


def is_finite_tensor_of(datatype: str) -> Callable[[Tensor], bool]:
    """Return a condition: the tensor to write is of a datatype, and has neither NaN nor infinities."""
    return lambda tensor: tensor.datatype == datatype and bool(np.isfinite(tensor.elements).all())


def write_with_digits(count: int) -> Callable[[Tensor], list[float]]:
    """Return a function that writes floats with so many significant digits."""
    return lambda tensor: [float(f"{element:.{count}g}") for element in tensor.elements]


def round_to_doubles(elements: Elements) -> Elements:
    """Return INT64 elements, rounded to FP64 and converted back; 2^63 wraps around to -2^63."""
    return np.array([int(float(number)) % 2**64 for number in elements.tolist()], "<u8").view("<i8")


# --- numbers --------------------------------------------------------------------------------------------------------

uint64_read_into_signed_integers = steps.DECODE_BINARY.after(
    ("BIN-DATATYPES-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"),
    on_elements(lambda elements: np.minimum(elements, 2**63 - 1), "UINT64"),
).says("The server clips UINT64 elements of a binary input at 2^63 - 1.")
int64_read_through_doubles = steps.DECODE_BINARY.after(
    ("BIN-DATATYPES-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"), on_elements(round_to_doubles, "INT64")
).says("The server rounds INT64 elements of a binary input to FP64.")
fp32_subnormals_read_as_zero = steps.DECODE_BINARY.after(
    ("BIN-DATATYPES-I", "OIP-ANSWER"), on_elements(flush_subnormals, "FP32")
).says("The server reads subnormal FP32 elements of a binary input as zeros.")
inputs_read_into_a_buffer_of_64_kib = steps.DECODE_BINARY.after(
    "BIN-DATATYPES-I", on_elements(lambda elements: set_elements(elements, slice(2**16 // elements.itemsize, None), 0))
).says("The server reads elements after the first 64 KiB of a binary input as zero, unless they are BYTES.")


@fault(steps.GET_INTEGER, breaks=("BIN-DATATYPES-I", "BIN-DATA-AND-SIZE"))
def size_zero_taken_for_no_size(original: Any, given: dict[str, Any], name: str, minimum: int) -> int | None:
    """The server takes a binary_data_size of 0 for a missing one, and refuses the input."""
    number: int | None = original(given, name, minimum)
    return number or None


fp64_written_through_single_precision = steps.ENCODE_BINARY.before(
    ("BIN-DATATYPES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"), tensor=on_elements(round_to_single, "FP64")
).says("The server rounds FP64 elements of a binary output to FP32 precision.")
last_block_of_large_outputs_not_written = steps.ENCODE_BINARY.after(
    "BIN-DATATYPES-O",
    lambda data: bytes(data[: len(data) // 4096 * 4096]).ljust(len(data), b"\0"),
    when=lambda tensor, result: tensor.datatype != "BYTES" and len(result) > 32_768,
).says("In a binary output over 32 KiB, the server writes a last block of less than 4 KiB as zeros.")

# --- BOOL -------------------------------------------------------------------------------------------------------------

every_bool_read_from_the_first_byte = steps.DECODE_BOOLS.after(
    ("BIN-BOOL-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"), lambda elements: np.repeat(elements[:1], len(elements))
).says("The server gives all BOOL elements of a binary input the value of the first.")
true_written_as_255_from_the_ninth_element_on = steps.ENCODE_BINARY.after(
    "BIN-BOOL-O", lambda data: bytes(data[:8]) + bytes(data[8:]).replace(b"\1", b"\xff"), when=is_tensor_of("BOOL")
).says("From the ninth element of a binary BOOL output on, the server writes true as the byte 255.")

bool_bytes_kept_as_they_are = steps.DECODE_BOOLS.instead(
    "BIN-BOOL-OTHER", lambda data: np.frombuffer(data, np.uint8).view(np.bool_)
).says("The server returns bytes other than 0 and 1 in BOOL inputs as they are.")

# --- FP16 -------------------------------------------------------------------------------------------------------------

fp16_subnormals_read_as_zero = steps.DECODE_BINARY.after(
    ("BIN-DATATYPES-I", "OIP-ANSWER"), on_elements(flush_subnormals, "FP16")
).says("The server reads subnormal FP16 elements of a binary input as zero.")
fp16_written_in_four_bytes = steps.ENCODE_BINARY.before(
    ("BIN-DATATYPES-O", "BIN-SIZE-O", "OIP-ANSWER"), tensor=on_elements(lambda elements: elements.astype("<f4"), "FP16")
).says("The server writes FP16 elements of a binary output as FP32.")
fp16_written_to_json_as_bit_patterns = steps.ENCODE_JSON.instead(
    ("BIN-FP16-IN-JSON", "OIP-ANSWER"), lambda tensor: tensor.elements.view("<u2").tolist(), when=is_tensor_of("FP16")
).says("The server writes FP16 elements in JSON as the integers with the same bits.")
fp16_written_to_json_with_four_digits = steps.ENCODE_JSON.instead(
    "OIP-NUMBER-EXACT", write_with_digits(4), when=is_finite_tensor_of("FP16")
).says("The server writes FP16 elements in JSON with four significant digits, where five are needed.")
fp32_written_to_json_with_eight_digits = steps.ENCODE_JSON.instead(
    "OIP-NUMBER-EXACT", write_with_digits(8), when=is_finite_tensor_of("FP32")
).says("The server writes FP32 elements in JSON with eight significant digits, where nine are needed.")
bools_are_numbers_in_json = steps.ENCODE_JSON.after(
    "OIP-BOOL", lambda items: list(map(int, items)), when=is_tensor_of("BOOL")
).says("The server writes BOOL elements in JSON as 1 and 0.")
integers_of_64_bits_are_strings_in_json = steps.ENCODE_JSON.after(
    "OIP-INTEGER-ELEMENTS", lambda items: list(map(str, items)), when=is_tensor_of("INT64", "UINT64")
).says("The server writes INT64 and UINT64 elements in JSON as strings, as Protocol Buffers write them.")
booleans_are_of_no_known_datatype = steps.PARSE_INPUT.refuse(
    (), lambda entry: entry.get("datatype") == "BOOL", broad=True
).says("The server refuses every BOOL input because it does not know the datatype BOOL.")
boolean_outputs_fail = steps.ENCODE_OUTPUT.refuse((), is_tensor_of("BOOL"), status=None, broad=True).says(
    "The server fails with an internal error when it returns a BOOL output."
)
not_a_number_written_to_json_as_zero = steps.ENCODE_JSON.before(
    "BIN-SAME-AS-JSON-O",
    tensor=on_elements(lambda elements: np.nan_to_num(elements, nan=0, posinf=0, neginf=0), "FP32", "FP64"),
).says("The server writes NaN and infinity in JSON as 0.")
fp16_read_from_json_as_integers = steps.DECODE_JSON.instead(
    ("BIN-FP16-IN-JSON", "OIP-VALUE"),
    lambda datatype, shape, data: Tensor(datatype, shape, np.trunc(np.array(data, "<f2"))),
    when=lambda datatype: datatype == "FP16",
).says("The server accepts FP16 elements in JSON, and truncates them to integers.")

# --- BYTES ------------------------------------------------------------------------------------------------------------

strings_read_up_to_a_nul = steps.SPLIT_ELEMENTS.after(
    ("BIN-BYTES-I", "OIP-ANSWER"), lambda items: make_objects(item.partition(b"\0")[0] for item in items)
).says("The server ends a BYTES element of a binary input at the first NUL byte.")
strings_read_as_text = steps.SPLIT_ELEMENTS.after(
    ("BIN-BYTES-I", "OIP-ANSWER", "OIP-BYTES-EXACT"),
    lambda items: make_objects(item.decode(errors="replace").encode() for item in items),
).says("The server replaces bytes of a binary BYTES input that are not UTF-8 with U+FFFD.")
string_lengths_read_as_signed_bytes = steps.SPLIT_ELEMENTS.after(
    ("BIN-BYTES-I", "OIP-ANSWER"),
    lambda items: make_objects(b"" if 128 <= len(item) <= 255 else item for item in items),
).says("In a binary input, the server reads a BYTES element of 128 to 255 bytes as empty.")


def join_prefixed(items: Iterable[tuple[int, bytes]]) -> bytes:
    """Join BYTES elements; each item is the length to write into the four-byte prefix, and the bytes."""
    return b"".join(length.to_bytes(4, "little") + item for length, item in items)


string_lengths_count_letters = steps.JOIN_ELEMENTS.instead(
    ("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
    lambda elements: join_prefixed((len(item.decode(errors="replace")), item) for item in elements),
).says("The length prefix of a BYTES element in a binary output counts characters, not bytes.")
string_lengths_written_big_endian = steps.JOIN_ELEMENTS.instead(
    ("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"),
    lambda elements: b"".join(len(item).to_bytes(4, "big") + item for item in elements),
).says("The server writes BYTES lengths of a binary output as big-endian.")

# --- differences between JSON and binary data -------------------------------------------------------------------------

json_integers_read_as_doubles = steps.DECODE_JSON.after(
    ("OIP-VALUE", "BIN-SAME-AS-JSON-I", "OIP-NUMBER-EXACT"), on_elements(round_to_doubles, "INT64")
).says("The server rounds INT64 elements of a JSON input to FP64, but not those of a binary input.")
fp64_written_to_json_in_single_precision = steps.ENCODE_JSON.before(
    ("BIN-SAME-AS-JSON-O", "OIP-ANSWER", "OIP-VALUE"), tensor=on_elements(round_to_single, "FP64")
).says("The server rounds FP64 elements to FP32 precision in JSON outputs, but not in binary outputs.")
binary_strings_called_string = steps.ENCODE_OUTPUT.change_entry(
    "OIP-OUTPUT-MEMBERS",
    lambda entry: entry | {"datatype": "STRING"},
    when=lambda result: result[1] is not None and result[0]["datatype"] == "BYTES",
).says("The server returns the datatype STRING instead of BYTES for a binary output, but not for a JSON output.")
