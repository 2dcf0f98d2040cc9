"""Elements of JSON data read as another value than they spell."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reference_server.datatypes import NUMPY
from reference_server.faults import fault
from reference_server.tensors import Tensor

Change = Callable[[Any], Any]


def _changed(data: Any, change: Change) -> Any:
    """Return JSON data, flat or nested, with each element changed."""
    return [_changed(item, change) for item in data] if isinstance(data, list) else change(data)


def _limits(datatype: str) -> tuple[int, int]:
    """Return the least and the greatest integer of a datatype; the same twice where it has none."""
    if datatype not in NUMPY or np.dtype(NUMPY[datatype]).kind not in "iu":
        return 0, 0
    found = np.iinfo(NUMPY[datatype])
    return int(found.min), int(found.max)


# --- decimal numbers -------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks=("BIN-SAME-AS-JSON-I", "OIP-VALUE", "OIP-ANSWER"))
def doubles_in_json_read_in_single_precision(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """FP64 elements of JSON data are read as FP32."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype != "FP64":
        return tensor
    with np.errstate(all="ignore"):
        return replace(tensor, elements=tensor.elements.astype("<f4").astype("<f8"))


# --- integers --------------------------------------------------------------------------------------------------------


@fault("tensors.decode_json", breaks="OIP-RANGE")
def integers_in_json_cut_to_their_low_bits(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """An integer of JSON data that its datatype cannot hold keeps its low bits."""
    least, most = _limits(datatype)
    if least != most:
        count = most - least + 1
        data = _changed(data, lambda item: (item - least) % count + least if type(item) is int else item)
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


@fault("strict_json.parse_object", breaks="OIP-VALUE")
def escaped_letters_in_json_data_kept(original: Any, data: Any) -> Any:
    r"""An escape \u of a letter of ASCII stays as it is written in strings of JSON data."""
    change = re.compile(rb'(?<="data":\[)[^\]]*')
    return original(change.sub(lambda found: re.sub(rb"(?<!\\)\\u00(4)", rb"\\\\u00\1", found[0]), bytes(data)))
