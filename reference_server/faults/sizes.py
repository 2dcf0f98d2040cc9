"""Faults in `binary_data_size` of inputs: sizes read wrongly, and wrong sizes accepted."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.errors import InferenceError
from reference_server.faults import fault
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


def get_binary_data_size(entry: Object) -> Any:
    """Return the binary_data_size of an input, whatever its type; None if absent."""
    return (entry.get("parameters") or {}).get("binary_data_size")


def set_binary_data_size(entry: Object, size: object) -> Object:
    """Return an input whose only parameter is this binary_data_size; None makes the size absent."""
    return entry | {"parameters": {"binary_data_size": size}}


def has_named_inputs(request: Object) -> bool:
    """Say whether `inputs` is an array of objects with names, for faults that run before the server checks this."""
    inputs = request.get("inputs")
    return isinstance(inputs, list) and all(isinstance(item, dict) and "name" in item for item in inputs)


@fault("framing.BinaryData.take", breaks=("BIN-SIZE-I", "OIP-ANSWER"))
def tensors_looked_for_at_multiples_of_eight(original: Any, rest: Any, size: int) -> Any:
    """The server expects padding to a multiple of eight bytes between the binary data of inputs."""
    taken = original(rest, size)
    padding = -size % 8
    if len(get_remaining(rest)) > padding:
        original(rest, padding)
    return taken


@fault("request.parse_input", breaks=("BIN-SIZE-I", "OIP-ANSWER"))
def size_with_a_point_is_no_size(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server reads the elements of an input as zeros if binary_data_size has a decimal point, such as 12.0."""
    size = get_binary_data_size(entry)
    if type(size) is not float or not size.is_integer():
        return original(model, spec, entry, rest)
    tensor = original(model, spec, set_binary_data_size(entry, int(size)), rest)
    return replace(tensor, elements=np.zeros_like(tensor.elements))


@fault("framing.BinaryData.take", breaks="BIN-BODY-SHORT")
def last_word_filled_up_with_zeros(original: Any, rest: Any, size: int) -> Any:
    """The server reads words of four bytes, and sets up to three missing bytes of the last word to zero."""
    if len(get_remaining(rest)) < size < len(get_remaining(rest)) + 4:
        rest._remaining = memoryview(bytes(get_remaining(rest)) + bytes(size - len(get_remaining(rest))))
    return original(rest, size)


@fault("request.parse_input", breaks=("BIN-BODY-SHORT", "BIN-HEADER-MISSING-SAFE"))
def declared_bytes_without_a_tail_are_zero(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Any:
    """Without an inference header, the server fills a numeric input that declares binary data with zeros."""
    size = get_binary_data_size(entry)
    if rest is None and type(size) is int and spec.datatype != "BYTES" and "data" not in entry:
        rest = BinaryData(memoryview(bytes(min(max(size, 0), 2**20))))
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-FALSE")
def size_of_strings_clipped_to_the_body(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """If binary_data_size of a BYTES input exceeds the body, the server uses the remaining bytes."""
    size = get_binary_data_size(entry)
    over = rest and spec.datatype == "BYTES" and type(size) is int and size > len(get_remaining(rest))
    return original(model, spec, set_binary_data_size(entry, len(get_remaining(rest))) if over else entry, rest)


_received = bytearray(2**16)


@fault("framing.BinaryData.take", breaks="BIN-BODY-SHORT")
def missing_bytes_are_those_of_the_request_before(original: Any, rest: Any, size: int) -> Any:
    """If all bytes of an input are missing, the server uses bytes that an earlier request left in a buffer."""
    data = bytes(get_remaining(rest))[: len(_received)]
    _received[: len(data)] = data
    if not data and size <= len(_received):
        return memoryview(bytes(_received[:size]))
    return original(rest, size)


@fault("request.parse_input", breaks="BIN-SIZE-FALSE")
def size_of_thirty_two_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server keeps binary_data_size of an input in 32 unsigned bits, so larger sizes wrap around."""
    size = get_binary_data_size(entry)
    return original(model, spec, set_binary_data_size(entry, size % 2**32) if type(size) is int else entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-WRONG")
def size_not_held_against_the_shape(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server takes as many bytes as an input declares, and drops those that the shape does not need."""
    size = get_binary_data_size(entry)
    if type(size) is int and rest and spec.datatype != "BYTES" and "data" not in entry:
        need = count_native_bytes(spec.datatype, entry["shape"])
        if need < size <= len(get_remaining(rest)):
            taken = rest.take(size)
            return original(model, spec, set_binary_data_size(entry, need), BinaryData(taken[:need]))
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-WRONG")
def shape_filled_up_with_zeros(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server adds zeros to a numeric input that has fewer bytes than its shape needs."""
    size = get_binary_data_size(entry)
    if type(size) is int and rest and spec.datatype != "BYTES" and "data" not in entry:
        need = count_native_bytes(spec.datatype, entry["shape"])
        if 0 <= size < min(need, 2**20):
            taken = bytes(rest.take(size)) + bytes(need - size)
            return original(model, spec, set_binary_data_size(entry, need), BinaryData(memoryview(taken)))
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks=("BIN-SIZE-WRONG", "OIP-SIGNATURE", "OIP-DIMENSION-NEGATIVE"))
def shape_made_to_fit_the_size(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """For an input of one variable dimension, the server computes the shape from binary_data_size."""
    size = get_binary_data_size(entry)
    if type(size) is int and 0 <= size <= 2**20 and spec.shape == (-1,) and spec.datatype != "BYTES":
        count, odd = divmod(size, NUMPY[spec.datatype].itemsize)
        entry = entry if odd else entry | {"shape": [count]}
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-WRONG")
def booleans_read_from_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server reads a BOOL input as packed bits if binary_data_size is an eighth of the number of elements."""
    size = get_binary_data_size(entry)
    shape = entry.get("shape")
    count = math.prod(shape) if isinstance(shape, list) and all(type(one) is int for one in shape) else 0
    if spec.datatype == "BOOL" and rest and type(size) is int and count > size == -(-count // 8):
        bits = np.unpackbits(np.frombuffer(rest.take(size), np.uint8), count=count, bitorder="little")
        rest = BinaryData(memoryview(bits.tobytes() + bytes(get_remaining(rest))))
        entry = set_binary_data_size(entry, count)
    return original(model, spec, entry, rest)


@fault("request.parse_inputs", breaks="BIN-SIZE-FALSE")
def sizes_checked_in_sum_alone(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server checks only the sum of all binary_data_size values against the shapes."""
    entries = request.get("inputs") or []
    if not all(isinstance(entry, dict) for entry in entries):
        return original(model, request, rest)
    sizes = [get_binary_data_size(entry) for entry in entries]
    if len(entries) > 1 and all(type(size) is int and size >= 0 for size in sizes) and rest:
        return original(model, request | {"inputs": set_sizes_from_shapes(entries, sum(sizes))}, rest)
    return original(model, request, rest)


def set_sizes_from_shapes(entries: list[Object], total: int) -> list[Object]:
    """Return inputs with sizes computed from their shapes if these add up to `total`, otherwise unchanged.

    BYTES inputs always keep their binary_data_size.
    """
    plain = [
        get_binary_data_size(e) if e["datatype"] == "BYTES" else count_native_bytes(e["datatype"], e["shape"])
        for e in entries
    ]
    return (
        [set_binary_data_size(e, size) for e, size in zip(entries, plain, strict=True)]
        if sum(plain) == total
        else entries
    )


@fault("request.parse_input", breaks="BIN-SIZE-FALSE")
def fraction_of_a_size_dropped(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server rounds down a binary_data_size that is not an integer."""
    size = get_binary_data_size(entry)
    return original(model, spec, set_binary_data_size(entry, int(size)) if type(size) is float else entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-FALSE")
def size_of_minus_one_takes_the_rest(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server reads a binary_data_size of -1 as all remaining bytes."""
    return original(
        model,
        spec,
        set_binary_data_size(entry, len(get_remaining(rest))) if get_binary_data_size(entry) == -1 else entry,
        rest,
    )


@fault("request.parse_input", breaks="BIN-SIZE-FALSE-SAFE")
def input_of_negative_size_is_ones(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """If binary_data_size of a numeric input is negative, the server skips its bytes and sets its elements to 1."""
    size = get_binary_data_size(entry)
    if rest is None or type(size) is not int or size >= 0 or spec.datatype == "BYTES":
        return original(model, spec, entry, rest)
    tensor = original(model, spec, set_binary_data_size(entry, count_native_bytes(spec.datatype, entry["shape"])), rest)
    return replace(tensor, elements=np.ones_like(tensor.elements))


@fault("request.parse_input", breaks="BIN-SIZE-TYPE")
def size_read_from_a_string(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server accepts a string of digits as binary_data_size."""
    size = get_binary_data_size(entry)
    digits = isinstance(size, str) and size.isdecimal()
    return original(model, spec, set_binary_data_size(entry, int(size)) if digits else entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-TYPE")
def true_taken_for_one_byte(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server reads a binary_data_size of true as 1."""
    return original(model, spec, set_binary_data_size(entry, 1) if get_binary_data_size(entry) is True else entry, rest)


@fault("request.parse_input", breaks="BIN-SIZE-TYPE")
def size_that_is_no_number_worked_out(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """If binary_data_size of a numeric input is a string without digits, the server uses the size of the shape."""
    size = get_binary_data_size(entry)
    word = isinstance(size, str) and not re.search("[0-9]", size) and spec.datatype != "BYTES"
    return original(
        model,
        spec,
        set_binary_data_size(entry, count_native_bytes(spec.datatype, entry["shape"])) if word else entry,
        rest,
    )


@fault("models.Model.check_shape", breaks=("BIN-DATATYPES-I", "BIN-BOOL-I", "BIN-BOOL-O", "OIP-VALUE"))
def odd_sizes_above_100_refused(original: Any, model: Any, spec: Any, shape: Any) -> None:
    """The server refuses an input if the number of elements is odd and more than 100."""
    if math.prod(shape) > 100 and math.prod(shape) % 2:
        raise InferenceError("no such shape")
    original(model, spec, shape)


@fault("request.parse_inputs", breaks=("BIN-SIZE-FALSE", "BIN-SIZE-TYPE", "BIN-SIZE-MISSING"))
def size_of_the_last_input_not_read(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server gives the last of several inputs all remaining bytes, whatever its binary_data_size."""
    if (
        has_named_inputs(request)
        and rest is not None
        and len(request["inputs"]) > 1
        and "data" not in request["inputs"][-1]
    ):
        *others, last = request["inputs"]
        sizes = [get_binary_data_size(entry) for entry in others]
        if all(type(size) is int and size >= 0 for size in sizes) and sum(sizes) <= len(get_remaining(rest)):
            request = request | {"inputs": [*others, set_binary_data_size(last, len(get_remaining(rest)) - sum(sizes))]}
    return original(model, request, rest)


@fault("request.parse_input", breaks=("BIN-SIZE-WRONG", "OIP-REFUSAL"))
def elements_counted_in_sixty_four_bits(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server computes the product of the dimensions modulo 2^64."""
    shape = entry.get("shape")
    whole = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if whole and shape and math.prod(shape) >= 2**64:
        entry = entry | {"shape": [math.prod(shape) % 2**64, *[1] * (len(shape) - 1)]}
    return original(model, spec, entry, rest)
