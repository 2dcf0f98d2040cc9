"""Faults in `binary_data_size` of inputs: sizes read wrongly, and wrong sizes accepted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import get_size, has_listed_objects, has_named_inputs, on_elements, set_size
from reference_server.framing import BinaryData
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import NUMPY, TensorSpec


def get_remaining(rest: Any) -> Any:
    """Return the binary data that no input has read yet."""
    return rest._remaining


def count_native_bytes(datatype: str, shape: Sequence[int]) -> int:
    """Return the number of bytes of a tensor that is not BYTES."""
    return math.prod(shape) * NUMPY[datatype].itemsize


def has_integer_size(entry: Object, spec: TensorSpec) -> bool:
    """Whether a numeric input declares an integer as its size, and has no `data`."""
    return type(get_size(entry)) is int and spec.datatype != "BYTES" and "data" not in entry


def reread_size(breaks: str, is_wrong: Callable[[Any], bool], change: Callable[[Any], Any]) -> Fault:
    """Return a fault: the server reads another binary_data_size where that of an input is wrong in some way."""
    return steps.PARSE_INPUT.before(
        breaks,
        entry=lambda entry: set_size(entry, change(get_size(entry))),
        when=lambda entry: is_wrong(get_size(entry)),
    )


@fault(steps.TAKE, breaks=("BIN-SIZE-I", "OIP-ANSWER"))
def tensors_looked_for_at_multiples_of_eight(original: Any, rest: Any, size: int) -> Any:
    """The server expects padding to a multiple of eight bytes between the binary data of inputs."""
    taken = original(rest, size)
    padding = -size % 8
    if len(get_remaining(rest)) > padding:
        original(rest, padding)
    return taken


size_with_a_point_is_no_size = steps.PARSE_INPUT.before(
    ("BIN-SIZE-I", "OIP-ANSWER"),
    entry=lambda entry: set_size(entry, int(get_size(entry))),
    result=on_elements(np.zeros_like),
    when=lambda entry: type(get_size(entry)) is float and get_size(entry).is_integer(),
).says("The server reads the elements of an input as zeros if binary_data_size has a decimal point, such as 12.0.")


@fault(steps.TAKE, breaks="BIN-BODY-SHORT")
def last_word_filled_up_with_zeros(original: Any, rest: Any, size: int) -> Any:
    """The server reads words of four bytes, and sets up to three missing bytes of the last word to zero."""
    if len(get_remaining(rest)) < size < len(get_remaining(rest)) + 4:
        rest._remaining = memoryview(bytes(get_remaining(rest)).ljust(size, b"\0"))
    return original(rest, size)


declared_bytes_without_a_tail_are_zero = steps.PARSE_INPUT.before(
    ("BIN-BODY-SHORT", "BIN-HEADER-MISSING-SAFE"),
    rest=lambda _, entry: BinaryData(memoryview(bytes(min(max(get_size(entry), 0), 2**20)))),
    when=lambda entry, spec, rest: rest is None and has_integer_size(entry, spec),
).says("Without an inference header, the server fills a numeric input that declares binary data with zeros.")
size_of_strings_clipped_to_the_body = steps.PARSE_INPUT.before(
    "BIN-SIZE-FALSE",
    entry=lambda entry, rest: set_size(entry, min(get_size(entry), len(get_remaining(rest)))),
    when=lambda entry, spec, rest: rest and spec.datatype == "BYTES" and type(get_size(entry)) is int,
).says("If binary_data_size of a BYTES input exceeds the body, the server uses the remaining bytes.")

_received = bytearray(2**16)


@fault(steps.TAKE, breaks="BIN-BODY-SHORT")
def missing_bytes_are_those_of_the_request_before(original: Any, rest: Any, size: int) -> Any:
    """If all bytes of an input are missing, the server uses bytes that an earlier request left in a buffer."""
    data = bytes(get_remaining(rest))[: len(_received)]
    _received[: len(data)] = data
    if not data and size <= len(_received):
        return memoryview(bytes(_received[:size]))
    return original(rest, size)


size_of_thirty_two_bits = reread_size("BIN-SIZE-FALSE", lambda size: type(size) is int, lambda size: size % 2**32).says(
    "The server keeps binary_data_size of an input in 32 unsigned bits, so larger sizes wrap around."
)


def fit_to_shape(is_due: Callable[[int, int, int], bool]) -> Fault:
    """Return a fault: the server truncates or zero-pads the bytes of a numeric input to the size of its shape.

    `is_due`: takes the size of the input, the size of the shape, and the number of bytes left.
    """

    def is_changed(entry: Object, spec: TensorSpec, rest: Any) -> bool:
        if rest is None or not has_integer_size(entry, spec):
            return False
        return is_due(get_size(entry), count_native_bytes(spec.datatype, entry["shape"]), len(get_remaining(rest)))

    def fit(rest: Any, entry: Object, spec: TensorSpec) -> BinaryData:
        need = count_native_bytes(spec.datatype, entry["shape"])
        return BinaryData(memoryview(bytes(rest.take(get_size(entry)))[:need].ljust(need, b"\0")))

    return steps.PARSE_INPUT.before(
        "BIN-SIZE-WRONG",
        rest=fit,
        entry=lambda entry, spec: set_size(entry, count_native_bytes(spec.datatype, entry["shape"])),
        when=is_changed,
    )


size_not_held_against_the_shape = fit_to_shape(lambda size, need, left: need < size <= left).says(
    "The server takes as many bytes as an input declares, and drops those that the shape does not need."
)
shape_filled_up_with_zeros = fit_to_shape(lambda size, need, _left: 0 <= size < min(need, 2**20)).says(
    "The server adds zeros to a numeric input that has fewer bytes than its shape needs."
)


@fault(steps.PARSE_INPUT, breaks=("BIN-SIZE-WRONG", "OIP-SIGNATURE", "OIP-DIMENSION-NEGATIVE"))
def shape_made_to_fit_the_size(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """For an input of one variable dimension, the server computes the shape from binary_data_size."""
    size = get_size(entry)
    if type(size) is int and 0 <= size <= 2**20 and spec.shape == (-1,) and spec.datatype != "BYTES":
        count, odd = divmod(size, NUMPY[spec.datatype].itemsize)
        entry = entry if odd else entry | {"shape": [count]}
    return original(model, spec, entry, rest)


@fault(steps.PARSE_INPUT, breaks="BIN-SIZE-WRONG")
def booleans_read_from_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server reads a BOOL input as packed bits if binary_data_size is an eighth of the number of elements."""
    size = get_size(entry)
    shape = entry.get("shape")
    count = math.prod(shape) if isinstance(shape, list) and all(type(one) is int for one in shape) else 0
    if spec.datatype == "BOOL" and rest and type(size) is int and count > size == -(-count // 8):
        bits = np.unpackbits(np.frombuffer(rest.take(size), np.uint8), count=count, bitorder="little")
        rest = BinaryData(memoryview(bits.tobytes() + bytes(get_remaining(rest))))
        entry = set_size(entry, count)
    return original(model, spec, entry, rest)


@fault(steps.PARSE_INPUTS, breaks="BIN-SIZE-FALSE")
def sizes_checked_in_sum_alone(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server checks only the sum of all binary_data_size values against the shapes."""
    if rest and has_listed_objects(request, "inputs") and len(request["inputs"]) > 1:
        sizes = [get_size(entry) for entry in request["inputs"]]
        if all(type(size) is int and size >= 0 for size in sizes):
            request = request | {"inputs": set_sizes_from_shapes(request["inputs"], sum(sizes))}
    return original(model, request, rest)


def set_sizes_from_shapes(entries: list[Object], total: int) -> list[Object]:
    """Return inputs with sizes computed from their shapes if these add up to `total`, otherwise unchanged.

    BYTES inputs always keep their binary_data_size.
    """
    plain = [
        get_size(e) if e["datatype"] == "BYTES" else count_native_bytes(e["datatype"], e["shape"]) for e in entries
    ]
    return list(map(set_size, entries, plain)) if sum(plain) == total else entries


fraction_of_a_size_dropped = reread_size("BIN-SIZE-FALSE", lambda size: type(size) is float, int).says(
    "The server rounds down a binary_data_size that is not an integer."
)
size_of_minus_one_takes_the_rest = steps.PARSE_INPUT.before(
    "BIN-SIZE-FALSE",
    entry=lambda entry, rest: set_size(entry, len(get_remaining(rest))),
    when=lambda entry: get_size(entry) == -1,
).says("The server reads a binary_data_size of -1 as all remaining bytes.")
input_of_negative_size_is_ones = steps.PARSE_INPUT.before(
    "BIN-SIZE-FALSE-SAFE",
    entry=lambda entry, spec: set_size(entry, count_native_bytes(spec.datatype, entry["shape"])),
    result=on_elements(np.ones_like),
    when=lambda entry, spec, rest: (
        rest is not None and type(get_size(entry)) is int and get_size(entry) < 0 and spec.datatype != "BYTES"
    ),
).says("If binary_data_size of a numeric input is negative, the server skips its bytes and sets its elements to 1.")
size_read_from_a_string = reread_size(
    "BIN-SIZE-TYPE", lambda size: isinstance(size, str) and size.isdecimal(), int
).says("The server accepts a string of digits as binary_data_size.")
true_taken_for_one_byte = reread_size("BIN-SIZE-TYPE", lambda size: size is True, int).says(
    "The server reads a binary_data_size of true as 1."
)
size_that_is_no_number_worked_out = steps.PARSE_INPUT.before(
    "BIN-SIZE-TYPE",
    entry=lambda entry, spec: set_size(entry, count_native_bytes(spec.datatype, entry["shape"])),
    when=lambda entry, spec: (
        isinstance(get_size(entry), str) and not re.search("[0-9]", get_size(entry)) and spec.datatype != "BYTES"
    ),
).says("If binary_data_size of a numeric input is a string without digits, the server uses the size of the shape.")
odd_sizes_above_100_refused = steps.CHECK_SHAPE.refuse(
    "OIP-ANSWER", lambda shape: math.prod(shape) > 100 and math.prod(shape) % 2
).says("The server refuses an input if the number of elements is odd and more than 100.")


@fault(steps.PARSE_INPUTS, breaks=("BIN-SIZE-FALSE", "BIN-SIZE-TYPE", "BIN-SIZE-MISSING"))
def size_of_the_last_input_not_read(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server gives the last of several inputs all remaining bytes, whatever its binary_data_size."""
    if rest is not None and has_named_inputs(request) and len(request["inputs"]) > 1:
        *others, last = request["inputs"]
        sizes = [get_size(entry) for entry in others]
        are_right = all(type(size) is int and size >= 0 for size in sizes)
        if "data" not in last and are_right and sum(sizes) <= len(get_remaining(rest)):
            request = request | {"inputs": [*others, set_size(last, len(get_remaining(rest)) - sum(sizes))]}
    return original(model, request, rest)


@fault(steps.PARSE_INPUT, breaks=("BIN-SIZE-WRONG", "OIP-REFUSAL"))
def elements_counted_in_sixty_four_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server computes the product of the dimensions modulo 2^64."""
    shape = entry.get("shape")
    whole = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if whole and shape and math.prod(shape) >= 2**64:
        entry = entry | {"shape": [math.prod(shape) % 2**64, *[1] * (len(shape) - 1)]}
    return original(model, spec, entry, rest)
