"""Elements of JSON data read as another value than they spell."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from reference_server.datatypes import NUMPY
from reference_server.errors import InferenceError
from reference_server.faults import fault

Items = list[Any]

# --- decimal numbers -------------------------------------------------------------------------------------------------


@fault("tensors.floats", breaks="OIP-VALUE")
def small_numbers_in_json_read_as_zero(original: Any, items: Items, datatype: str) -> Any:
    """Numbers of JSON data below 1e-15 are read as zero."""
    return original([0.0 if isinstance(item, float) and abs(item) < 1e-15 else item for item in items], datatype)


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def exponents_in_capitals_dropped(original: Any, data: Any) -> Any:
    """A number of JSON data is read up to a capital E."""
    return original(re.sub(rb"([0-9])E[+-]?[0-9]+(?=[,\]])", rb"\1", bytes(data)))


@fault("tensors.floats", breaks="OIP-VALUE")
def whole_numbers_refused_for_floats(original: Any, items: Items, datatype: str) -> Any:
    """JSON data of a floating-point datatype must have a point or an exponent."""
    if any(type(item) is int for item in items):
        raise InferenceError("a floating-point number is expected")
    return original(items, datatype)


@fault("tensors.floats", breaks="OIP-VALUE")
def doubles_in_json_read_in_single_precision(original: Any, items: Items, datatype: str) -> Any:
    """FP64 elements of JSON data are read as FP32."""
    with np.errstate(all="ignore"):
        return original(items, datatype).astype("<f4").astype(NUMPY[datatype])


# --- integers --------------------------------------------------------------------------------------------------------


@fault("tensors.integers", breaks="OIP-VALUE")
def least_integers_in_json_refused(original: Any, items: Items, datatype: str) -> Any:
    """The least integer of a signed datatype is refused in JSON data, its negative being too large."""
    least = int(np.iinfo(NUMPY[datatype]).min)
    if least and least in items:
        raise InferenceError(f"{least} is out of range")
    return original(items, datatype)


@fault("tensors.integers", breaks="OIP-NEG-RANGE")
def integers_in_json_cut_to_their_low_bits(original: Any, items: Items, datatype: str) -> Any:
    """An integer of JSON data that its datatype cannot hold keeps its low bits."""
    limits = np.iinfo(NUMPY[datatype])
    count = int(limits.max) - int(limits.min) + 1
    low = int(limits.min)
    return original([(item - low) % count + low if type(item) is int else item for item in items], datatype)


@fault("tensors.integers", breaks="OIP-NEG-RANGE")
def negative_numbers_in_json_read_as_zero(original: Any, items: Items, datatype: str) -> Any:
    """A negative number for an unsigned datatype is read as 0 in JSON data."""
    is_unsigned = np.iinfo(NUMPY[datatype]).min == 0
    return original([0 if is_unsigned and type(item) is int and item < 0 else item for item in items], datatype)


@fault("tensors.integers", breaks="OIP-VALUE")
def exponents_of_integers_dropped(original: Any, items: Items, datatype: str) -> Any:
    """An integer of JSON data that is written as a decimal number is off by one."""
    return original([int(item) + 1 if type(item) is float else item for item in items], datatype)


# --- strings and truth -----------------------------------------------------------------------------------------------


@fault("tensors.strings", breaks="OIP-VALUE")
def strings_in_json_read_up_to_a_nul(original: Any, items: Items, datatype: str) -> Any:
    """A string of JSON data is read up to its first NUL."""
    return original([item.partition("\0")[0] if isinstance(item, str) else item for item in items], datatype)


@fault("tensors.strings", breaks="OIP-VALUE")
def letters_beyond_sixteen_bits_replaced(original: Any, items: Items, datatype: str) -> Any:
    """A character of JSON data beyond 16 bits becomes two replacement characters."""
    return original([re.sub("[\U00010000-\U0010ffff]", "\ufffd\ufffd", str(item)) for item in items], datatype)


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def escaped_letters_in_json_data_kept(original: Any, data: Any) -> Any:
    r"""An escape \u of a letter of ASCII stays as it is written in strings of JSON data."""
    change = re.compile(rb'"data":\[[^\]]*\]')
    return original(change.sub(lambda found: re.sub(rb"(?<!\\)\\u00([4-7])", rb"\\\\u00\1", found[0]), bytes(data)))


@fault("tensors.bools", breaks="OIP-VALUE")
def truth_in_json_read_for_eight_elements(original: Any, items: Items, datatype: str) -> Any:
    """BOOL elements of JSON data from the ninth on are false."""
    return original(items[:8] + [False] * len(items[8:]) if len(items) > 8 else items, datatype)
