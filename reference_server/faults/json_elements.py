"""Elements of JSON data read as another value than they spell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.datatypes import NUMPY
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.tensors import Tensor

Change = Callable[[Any], Any]


def _changed(data: Any, change: Change) -> Any:
    """Return JSON data, flat or nested, with each element changed."""
    return [_changed(item, change) for item in data] if isinstance(data, list) else change(data)


def _in(data: Any, found: Callable[[Any], bool]) -> bool:
    """Whether an element of JSON data, flat or nested, is found."""
    return any(_in(item, found) for item in data) if isinstance(data, list) else found(data)


def _is_float(datatype: str) -> bool:
    return datatype in ("FP32", "FP64")


def _limits(datatype: str) -> tuple[int, int]:
    """Return the least and the greatest integer of a datatype; the same twice where it has none."""
    if datatype not in NUMPY or np.dtype(NUMPY[datatype]).kind not in "iu":
        return 0, 0
    found = np.iinfo(NUMPY[datatype])
    return int(found.min), int(found.max)


# --- decimal numbers -------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks="OIP-VALUE")
def small_numbers_in_json_read_as_zero(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """Numbers of JSON data below 1e-15 are read as zero."""
    tensor: Tensor = original(datatype, shape, data)
    if not _is_float(datatype):
        return tensor
    return replace(tensor, elements=np.where(np.abs(tensor.elements) < 1e-15, tensor.elements * 0, tensor.elements))


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def exponents_in_capitals_dropped(original: Any, data: Any) -> Any:
    """A number of JSON data is read up to a capital E."""
    return original(re.sub(rb"([0-9])E[+-]?[0-9]+(?=[,\]])", rb"\1", bytes(data)))


@fault("tensors.decode_json", breaks="OIP-VALUE")
def whole_numbers_refused_for_floats(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """JSON data of a floating-point datatype must have a point or an exponent."""
    if _is_float(datatype) and _in(data, lambda item: type(item) is int):
        raise InferenceError("a floating-point number is expected")
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"))
def doubles_in_json_read_in_single_precision(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """FP64 elements of JSON data are read as FP32."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP64":
        return tensor
    with np.errstate(all="ignore"):
        return replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))


# --- integers --------------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks="OIP-VALUE")
def least_integers_in_json_refused(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The least integer of a signed datatype is refused in JSON data, its negative being too large."""
    least, _ = _limits(datatype)
    if least and _in(data, lambda item: item == least):
        raise InferenceError(f"{least} is out of range")
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("tensors.decode_json", breaks="OIP-RANGE")
def integers_in_json_cut_to_their_low_bits(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """An integer of JSON data that its datatype cannot hold keeps its low bits."""
    least, most = _limits(datatype)
    if least != most:
        count = most - least + 1
        data = _changed(data, lambda item: (item - least) % count + least if type(item) is int else item)
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("tensors.decode_json", breaks="OIP-RANGE")
def negative_numbers_in_json_read_as_zero(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A negative number for an unsigned datatype is read as 0 in JSON data."""
    if datatype.startswith("UINT"):
        data = _changed(data, lambda item: max(item, 0) if type(item) is int else item)
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("tensors.decode_json", breaks=("OIP-VALUE", "OIP-COERCE"))
def decimal_integers_lose_a_digit(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """An integer of JSON data that is written as a decimal number loses its last digit."""
    if "INT" in datatype:
        data = _changed(data, lambda item: int(item) // 10 if type(item) is float else item)
    tensor: Tensor = original(datatype, shape, data)
    return tensor


# --- strings and truth -----------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks="OIP-VALUE")
def strings_in_json_read_up_to_a_nul(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A string of JSON data is read up to its first NUL."""
    data = _changed(data, lambda item: item.partition("\0")[0] if isinstance(item, str) else item)
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("tensors.decode_json", breaks=("OIP-VALUE", "BIN-SAME-AS-JSON-I"))
def letters_beyond_sixteen_bits_replaced(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A character of JSON data beyond 16 bits becomes two replacement characters."""
    beyond = re.compile("[\U00010000-\U0010ffff]")
    data = _changed(data, lambda item: beyond.sub("\ufffd\ufffd", item) if isinstance(item, str) else item)
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def escaped_letters_in_json_data_kept(original: Any, data: Any) -> Any:
    r"""An escape \u of a letter of ASCII stays as it is written in strings of JSON data."""
    change = re.compile(rb'(?<="data":\[)[^\]]*')
    return original(change.sub(lambda found: re.sub(rb"(?<!\\)\\u00(4)", rb"\\\\u00\1", found[0]), bytes(data)))


@fault("tensors.decode_json", breaks=("OIP-VALUE", "BIN-BOOL-O"))
def truth_in_json_read_for_eight_elements(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """BOOL elements of JSON data from the ninth on are false."""
    if datatype == "BOOL" and isinstance(data, list) and len(data) > 8:
        data = data[:8] + [False] * len(data[8:])
    tensor: Tensor = original(datatype, shape, data)
    return tensor
