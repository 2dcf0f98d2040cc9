"""Converts the `data` member of a tensor from JSON values to numpy arrays.

`data` has the elements in row-major order, flat or nested (Open Inference Protocol, REST, "Tensor Data"). The number of
elements is checked, their nesting is not checked. Integers are never converted to floats, so that 2^53 + 1 and the
largest UINT64 stay exact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.wire.datatypes import Datatype, Kind, lookup
from conformance.wire.finding import DecodeError, Finding, format_value

Reader = Callable[[Any], Any]


def from_json(datatype: str, shape: Sequence[int], data: Any) -> NDArray[Any]:
    """Convert `data` to an array of this shape.

    `data` is a flat or nested list; for rank 0 also a single value. Integer datatypes accept 1, 1.0 and 1e0. Float
    datatypes accept integers, decimals (rounded to the nearest value), NaN and Infinity. BOOL accepts booleans, 0 and
    1; `find_number_in_bool` reports 0 and 1. BYTES accepts only strings.

    Raises:
        DecodeError: an element has the wrong type or is out of range (data-value), or the number of elements does not
            match the shape (data-count).
        ValueError: the datatype is unknown, or numpy does not support the shape.
    """
    info = lookup(datatype)
    flat = flatten(data, shape)
    count = math.prod(shape)
    if len(flat) != count:
        expected = f"{format_value(count)} elements for the shape {format_value(list(shape))}"
        raise DecodeError(Finding("data-count", "data", None, expected, f"{len(flat)} elements"))
    elements = _convert_elements(info, flat)
    array = _build_array(info, elements)
    _refuse_overflow(info, array, flat, elements)
    return array.reshape(tuple(shape))


def find_number_in_bool(data: Any) -> str | None:
    """Return the first element of BOOL data that is not a boolean, formatted for a message, or None."""
    flat = flatten(data, ()) if isinstance(data, list) else [data]
    if set(map(type, flat)) == {bool}:
        return None
    return next((format_value(value) for value in flat if not isinstance(value, bool)), None)


def read_integer_strings(data: Any) -> list[int] | None:
    """Return the integers of data whose elements are all strings of digits, as proto3 writes 64 bits; else None."""
    flat = flatten(data, ())
    is_written = all(isinstance(text, str) and re.fullmatch("-?(0|[1-9][0-9]{0,19})", text) for text in flat)
    return list(map(int, flat)) if is_written else None


def _convert_elements(info: Datatype, flat: Sequence[Any]) -> list[Any]:
    if _need_no_conversion(info, flat):
        return list(flat)
    read, elements = _find_reader(info), list[Any]()
    try:
        for value in flat:
            elements.append(read(value))
    except (ValueError, OverflowError):
        raise _build_value_error(info, len(elements), flat[len(elements)]) from None
    return elements


def _need_no_conversion(info: Datatype, flat: Sequence[Any]) -> bool:
    """Return whether all elements have the Python type and the range of the datatype."""
    types = set(map(type, flat))
    if info.is_integer and types == {int}:
        limits = np.iinfo(info.dtype)
        return bool(min(flat) >= limits.min and max(flat) <= limits.max)
    return (info.is_float and types == {float}) or (info.name == "BOOL" and types == {bool})


def flatten(data: Any, shape: Sequence[int]) -> list[Any]:
    """Return the elements of nested lists in row-major order, without recursion, because the depth is untrusted.

    Raises DecodeError: `data` is not a list, unless `shape` has rank 0.
    """
    if not isinstance(data, list):
        if len(shape) == 0 and not isinstance(data, dict):
            return [data]
        raise DecodeError(Finding("data-value", "data", None, "an array", format_value(data)))
    level: list[Any] = data
    types = set(map(type, level))
    while types == {list}:  # flatten one level at once if every element is a list
        level = list(chain.from_iterable(level))
        types = set(map(type, level))
    if list not in types:
        return level
    flat: list[Any] = []
    rest = [iter(level)]
    while rest:
        for value in rest[-1]:
            if isinstance(value, list):
                rest.append(iter(value))
                break
            flat.append(value)
        else:
            rest.pop()
    return flat


def _build_array(info: Datatype, elements: list[Any]) -> NDArray[Any]:
    if info.size is None:
        array = np.empty(len(elements), dtype=object)
        array[:] = elements
        return array
    with np.errstate(over="ignore"):
        return (
            np.array(elements, dtype=np.float64).astype(info.dtype) if info.is_float else np.array(elements, info.dtype)
        )


def _refuse_overflow(info: Datatype, array: NDArray[Any], flat: list[Any], elements: list[Any]) -> None:
    """Raise a `DecodeError` if a finite number became infinite in the array; Infinity in the JSON is allowed."""
    if not info.is_float:
        return
    for index in np.flatnonzero(np.isinf(array)).tolist():
        if math.isfinite(elements[index]):
            raise _build_value_error(info, index, flat[index])


def _build_value_error(info: Datatype, index: int, value: Any) -> DecodeError:
    return DecodeError(
        Finding("data-value", f"data element {index}", None, _describe_expected(info), format_value(value))
    )


def _describe_expected(info: Datatype) -> str:
    if info.is_integer:
        limits = np.iinfo(info.dtype)
        return f"{info.name}: an integer from {limits.min} to {limits.max}"
    return f"{info.name}: {_EXPECTATIONS.get(info.name, 'a number within its range')}"


_EXPECTATIONS: Mapping[str, str] = {"BOOL": "true or false", "BYTES": "a string that can be encoded as UTF-8"}


# --- a reader for each kind of datatype: converts a JSON value to an element, or raises ValueError or OverflowError ---


def _read_bool(value: Any) -> bool:
    if value in (True, False) and isinstance(value, int | float):
        return bool(value)
    raise ValueError


def _read_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError
    # json_text decodes bytes that are not UTF-8 as lone surrogates; restore the original bytes.
    return value.encode("utf-8", "surrogateescape")


def _read_float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise ValueError


def _build_integer_reader(name: str) -> Reader:
    limits = np.iinfo(lookup(name).dtype)
    low, high = int(limits.min), int(limits.max)

    def read_integer(value: Any) -> int:
        integer = value if type(value) is int else int(value) if type(value) is float else None
        if integer is None or integer != value or not low <= integer <= high:
            raise ValueError
        return integer

    return read_integer


_READERS: Mapping[Kind, Reader] = {"bool": _read_bool, "text": _read_text, "float": _read_float}


def _find_reader(info: Datatype) -> Reader:
    return _build_integer_reader(info.name) if info.is_integer else _READERS[info.kind]
