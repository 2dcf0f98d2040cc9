"""Elements read or written wrongly for one datatype: width, sign, precision, booleans, strings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.tensors import Tensor, make_objects

# --- numbers --------------------------------------------------------------------------------------------------------


@fault("tensors.decode_binary", breaks=("BIN-DATATYPES-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"))
def uint64_read_into_signed_integers(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server clips UINT64 elements of a binary input at 2^63 - 1."""
    tensor: Tensor = original(datatype, *rest)
    return replace(tensor, elements=np.minimum(tensor.elements, 2**63 - 1)) if datatype == "UINT64" else tensor


@fault("tensors.decode_binary", breaks=("BIN-DATATYPES-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"))
def int64_read_through_doubles(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server rounds INT64 elements of a binary input to FP64."""
    tensor: Tensor = original(datatype, *rest)
    return replace(tensor, elements=round_to_doubles(tensor.elements)) if datatype == "INT64" else tensor


def round_to_doubles(elements: Any) -> Any:
    """Return INT64 elements, rounded to FP64 and converted back; 2^63 wraps around to -2^63."""
    return np.array([int(float(number)) % 2**64 for number in elements.tolist()], "<u8").view("<i8")


@fault("tensors.decode_binary", breaks=("BIN-DATATYPES-I", "OIP-ANSWER"))
def fp32_subnormals_read_as_zero(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server reads subnormal FP32 elements of a binary input as zeros."""
    tensor: Tensor = original(datatype, *rest)
    if datatype != "FP32":
        return tensor
    subnormal = np.abs(tensor.elements) < np.finfo("<f4").tiny
    return replace(tensor, elements=np.where(subnormal, np.copysign(np.float32(0), tensor.elements), tensor.elements))


@fault("tensors.decode_binary", breaks="BIN-DATATYPES-I")
def inputs_read_into_a_buffer_of_64_kib(original: Any, *arguments: Any) -> Tensor:
    """The server reads elements after the first 64 KiB of a binary input as zero, unless they are BYTES."""
    tensor: Tensor = original(*arguments)
    if tensor.datatype == "BYTES" or tensor.elements.nbytes <= 2**16:
        return tensor
    elements = tensor.elements.copy()
    elements[2**16 // elements.itemsize :] = 0
    return replace(tensor, elements=elements)


@fault("members.get_integer", breaks=("BIN-DATATYPES-I", "BIN-DATA-AND-SIZE"))
def size_zero_taken_for_no_size(original: Any, given: dict[str, Any], name: str, minimum: int) -> int | None:
    """The server takes a binary_data_size of 0 for a missing one, and refuses the input."""
    number: int | None = original(given, name, minimum)
    return number or None


@fault("tensors.encode_binary", breaks=("BIN-DATATYPES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def fp64_written_through_single_precision(original: Any, tensor: Tensor) -> Any:
    """The server rounds FP64 elements of a binary output to FP32 precision."""
    if tensor.datatype == "FP64":
        with np.errstate(all="ignore"):
            tensor = replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))
    return original(tensor)


@fault("tensors.encode_binary", breaks="BIN-DATATYPES-O")
def last_block_of_large_outputs_not_written(original: Any, tensor: Tensor) -> Any:
    """In a binary output over 32 KiB, the server writes a last block of less than 4 KiB as zeros."""
    data = original(tensor)
    whole = len(data) // 4096 * 4096
    if tensor.datatype == "BYTES" or len(data) <= 32_768:
        return data
    return bytes(data[:whole]) + bytes(len(data) - whole)


# --- BOOL -------------------------------------------------------------------------------------------------------------


@fault("tensors.decode_bools", breaks=("BIN-BOOL-I", "BIN-SAME-AS-JSON-I", "OIP-ANSWER"))
def every_bool_read_from_the_first_byte(original: Any, data: memoryview) -> Any:
    """The server gives all BOOL elements of a binary input the value of the first."""
    return np.repeat(original(data)[:1], len(data))


@fault("tensors.encode_binary", breaks="BIN-BOOL-O")
def true_written_as_255_from_the_ninth_element_on(original: Any, tensor: Tensor) -> Any:
    """From the ninth element of a binary BOOL output on, the server writes true as the byte 255."""
    data = bytes(original(tensor))
    return data[:8] + data[8:].replace(b"\1", b"\xff") if tensor.datatype == "BOOL" else data


# --- FP16 -------------------------------------------------------------------------------------------------------------


@fault("tensors.decode_binary", breaks=("BIN-DATATYPES-I", "OIP-ANSWER"))
def fp16_subnormals_read_as_zero(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server reads subnormal FP16 elements of a binary input as zero."""
    tensor: Tensor = original(datatype, *rest)
    if datatype != "FP16":
        return tensor
    subnormal = np.abs(tensor.elements) < np.finfo("<f2").tiny
    return replace(tensor, elements=np.where(subnormal, np.copysign(np.float16(0), tensor.elements), tensor.elements))


@fault("tensors.encode_binary", breaks=("BIN-DATATYPES-O", "BIN-SIZE-O", "OIP-ANSWER"))
def fp16_written_in_four_bytes(original: Any, tensor: Tensor) -> Any:
    """The server writes FP16 elements of a binary output as FP32."""
    return original(replace(tensor, elements=tensor.elements.astype("<f4")) if tensor.datatype == "FP16" else tensor)


@fault("tensors.encode_json", breaks=("BIN-FP16-IN-JSON", "OIP-ANSWER"))
def fp16_written_to_json_as_bit_patterns(original: Any, tensor: Tensor) -> Any:
    """The server writes FP16 elements in JSON as the integers with the same bits."""
    return tensor.elements.view("<u2").tolist() if tensor.datatype == "FP16" else original(tensor)


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def fp16_written_to_json_with_four_digits(original: Any, tensor: Tensor) -> Any:
    """The server writes FP16 elements in JSON with four significant digits, where five are needed."""
    if tensor.datatype != "FP16" or not np.isfinite(tensor.elements).all():
        return original(tensor)
    return [float(f"{element:.4g}") for element in tensor.elements]


@fault("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def fp32_written_to_json_with_eight_digits(original: Any, tensor: Tensor) -> Any:
    """The server writes FP32 elements in JSON with eight significant digits, where nine are needed."""
    if tensor.datatype != "FP32" or not np.isfinite(tensor.elements).all():
        return original(tensor)
    return [float(f"{element:.8g}") for element in tensor.elements]


@fault("tensors.encode_json", breaks="OIP-BOOL")
def bools_are_numbers_in_json(original: Any, tensor: Tensor) -> list[Any]:
    """The server writes BOOL elements in JSON as 1 and 0."""
    items: list[Any] = original(tensor)
    return [int(item) for item in items] if tensor.datatype == "BOOL" else items


@fault("request.parse_input", broad=True)
def booleans_are_of_no_known_datatype(original: Any, model: Any, spec: Any, entry: Any, rest: Any) -> Tensor:
    """The server refuses every BOOL input because it does not know the datatype BOOL."""
    if entry.get("datatype") == "BOOL":
        raise InferenceError("invalid datatype BOOL")
    return original(model, spec, entry, rest)


@fault("response.encode_output", broad=True)
def boolean_outputs_fail(original: Any, model: Any, output: Any, tensor: Tensor) -> Any:
    """The server fails with an internal error when it returns a BOOL output."""
    if tensor.datatype == "BOOL":
        raise KeyError("bool_")
    return original(model, output, tensor)


@fault("tensors.encode_json", breaks="BIN-SAME-AS-JSON-O")
def not_a_number_written_to_json_as_zero(original: Any, tensor: Tensor) -> Any:
    """The server writes NaN and infinity in JSON as 0."""
    if tensor.datatype in ("FP32", "FP64"):
        tensor = replace(tensor, elements=np.nan_to_num(tensor.elements, nan=0, posinf=0, neginf=0))
    return original(tensor)


@fault("tensors.decode_json", breaks=("BIN-FP16-IN-JSON", "OIP-VALUE"))
def fp16_read_from_json_as_integers(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """The server accepts FP16 elements in JSON, and truncates them to integers."""
    if datatype != "FP16":
        return original(datatype, shape, data)
    return Tensor(datatype, shape, np.trunc(np.array(data, "<f2")))


# --- BYTES ------------------------------------------------------------------------------------------------------------


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def strings_read_up_to_a_nul(original: Any, *arguments: Any) -> Any:
    """The server ends a BYTES element of a binary input at the first NUL byte."""
    return make_objects(item.partition(b"\0")[0] for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER", "OIP-BYTES-EXACT"))
def strings_read_as_text(original: Any, *arguments: Any) -> Any:
    """The server replaces bytes of a binary BYTES input that are not UTF-8 with U+FFFD."""
    return make_objects(item.decode(errors="replace").encode() for item in original(*arguments))


@fault("tensors.split_elements", breaks=("BIN-BYTES-I", "OIP-ANSWER"))
def string_lengths_read_as_signed_bytes(original: Any, data: memoryview, count: int) -> Any:
    """In a binary input, the server reads a BYTES element of 128 to 255 bytes as empty."""
    return make_objects(b"" if 128 <= len(item) <= 255 else item for item in original(data, count))


def join_prefixed(items: Iterable[tuple[int, bytes]]) -> bytes:
    """Join BYTES elements; each item is the length to write into the four-byte prefix, and the bytes."""
    return b"".join(length.to_bytes(4, "little") + item for length, item in items)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def string_lengths_count_letters(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The length prefix of a BYTES element in a binary output counts characters, not bytes."""
    return join_prefixed((len(item.decode(errors="replace")), item) for item in elements)


@fault("tensors.join_elements", breaks=("BIN-BYTES-O", "BIN-SAME-AS-JSON-O", "OIP-ANSWER"))
def string_lengths_written_big_endian(_original: Any, elements: Iterable[bytes]) -> bytes:
    """The server writes BYTES lengths of a binary output as big-endian."""
    return b"".join(len(item).to_bytes(4, "big") + item for item in elements)


# --- differences between JSON and binary data -------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-ANSWER", "OIP-VALUE", "OIP-NUMBER-EXACT"))
def json_integers_read_as_doubles(original: Any, datatype: str, *rest: Any) -> Tensor:
    """The server rounds INT64 elements of a JSON input to FP64, but not those of a binary input."""
    tensor: Tensor = original(datatype, *rest)
    return replace(tensor, elements=round_to_doubles(tensor.elements)) if datatype == "INT64" else tensor


@fault("tensors.encode_json", breaks=("BIN-SAME-AS-JSON-O", "OIP-ANSWER", "OIP-VALUE"))
def fp64_written_to_json_in_single_precision(original: Any, tensor: Tensor) -> Any:
    """The server rounds FP64 elements to FP32 precision in JSON outputs, but not in binary outputs."""
    if tensor.datatype == "FP64":
        with np.errstate(all="ignore"):
            tensor = replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))
    return original(tensor)


@fault("response.encode_output", breaks=("BIN-SAME-AS-JSON-O", "BIN-BYTES-O", "OIP-ANSWER"))
def binary_strings_called_string(original: Any, *arguments: Any) -> Any:
    """The server returns the datatype STRING instead of BYTES for a binary output, but not for a JSON output."""
    entry, data = original(*arguments)
    return entry if data is None or entry["datatype"] != "BYTES" else entry | {"datatype": "STRING"}, data
