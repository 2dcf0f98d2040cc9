"""Detects whether a wrong tensor is the expected tensor, transformed: byte-swapped, reordered, rounded, truncated.

The phrases are only hints for developers of servers, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Narrower types through which a server may have converted elements, with a description.
NARROWER_TYPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "FP64": (("<f4", "rounded to 32 bits"), ("<f2", "rounded to 16 bits")),
    "FP32": (("<f2", "rounded to 16 bits"),),
    "INT64": (("<f8", "rounded to double precision"), ("<i4", "truncated to 32 bits")),
    "UINT64": (("<f8", "rounded to double precision"), ("<u4", "truncated to 32 bits"), ("<i8", "read as signed")),
    "INT32": (("<f4", "rounded to single precision"), ("<i2", "truncated to 16 bits")),
    "UINT32": (("<f4", "rounded to single precision"), ("<u2", "truncated to 16 bits"), ("<i4", "read as signed")),
}
MAX_SHIFT_ELEMENTS = 16  # maximum shift of a tensor, in elements
MIN_DISTINCT_ELEMENTS = (
    4  # different non-zero elements that show a wrong place: fewer are there by chance, as classes are
)
MIN_SEARCHED_BYTES = 4  # minimum length of a search in an answer: shorter sequences occur by chance


def describe_transform(expected: Array, actual: Array, datatype: str) -> str:
    """Return a phrase for the transformation of the expected tensor into the actual one; empty if unknown.

    `actual`: the received elements, of the same type and shape.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return ""
    with np.errstate(all="ignore"):
        for words, made in _apply_transforms(expected, datatype):
            if not _is_same_array(made, expected) and _is_same_array(made, actual):
                return words
        return _describe_trailing_zeros(expected, actual)


def describe_misplacement(expected: bytes, body: bytes, start: int) -> str:
    """Return a phrase for the offset of a tensor's bytes in an answer; empty if the bytes are at `start`, or absent."""
    if len(expected) < MIN_SEARCHED_BYTES:
        return ""
    place = body.find(expected)
    return "" if place in (-1, start) else f"its bytes are at offset {place} of the answer, not at {start}"


def is_byte_swapped(expected: Array, actual: Array) -> bool:
    """Return whether a tensor is the expected one with the bytes of each element reversed."""
    if expected.dtype.kind == "O" or (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return False
    swapped = expected.byteswap()
    return _is_same_array(swapped, actual) and not _is_same_array(swapped, expected)


def _apply_transforms(expected: Array, datatype: str) -> Iterator[tuple[str, Array]]:
    """Yield possible transformations of a tensor: a description and the result."""
    flat, shape = expected.reshape(-1), expected.shape
    if datatype == "BYTES":
        yield from ((words, _transform_elements(flat, change).reshape(shape)) for words, change in _TEXT_TRANSFORMS)
    elif expected.dtype.itemsize > 1:
        yield "with the bytes of each element reversed (big-endian)", expected.byteswap()
    for narrower, words in NARROWER_TYPES.get(datatype, ()):
        yield words, expected.astype(narrower).astype(expected.dtype)
    if not _has_distinct_elements(flat):
        return
    if expected.ndim > 1:
        yield "in column-major order", expected.ravel(order="F").reshape(shape)
    yield "in reverse order", flat[::-1].reshape(shape)
    for by in range(1, min(MAX_SHIFT_ELEMENTS, expected.size - 1) + 1):
        yield f"shifted by {_format_element_count(by)} towards the end", np.roll(flat, by).reshape(shape)
        yield f"shifted by {_format_element_count(by)} towards the beginning", np.roll(flat, -by).reshape(shape)


def _has_distinct_elements(elements: Array) -> bool:
    return len({element for element in elements.tolist() if element}) >= MIN_DISTINCT_ELEMENTS


def _is_same_array(a: Array, b: Array) -> bool:
    if a.dtype.kind == "O":
        return bool(a.reshape(-1).tolist() == b.reshape(-1).tolist())
    return a.tobytes() == b.tobytes()


def _transform_elements(flat: Array, change: Callable[[bytes], bytes]) -> Array:
    made = np.empty(flat.shape, dtype=object)
    made[:] = [change(bytes(element)) for element in flat]
    return made


# Transformations of strings.
_TEXT_TRANSFORMS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("with each string truncated at its first NUL", lambda text: text.partition(b"\0")[0]),
    ("decoded as Latin-1 instead of UTF-8 and encoded again", lambda text: text.decode("latin-1").encode()),
    ("with non-ASCII characters replaced", lambda text: text.decode("ascii", "replace").encode("ascii", "replace")),
    ("without leading and trailing white space", lambda text: text.strip()),
)


def _describe_trailing_zeros(expected: Array, actual: Array) -> str:
    """Return a phrase with the number of correct elements if all later elements are zero; otherwise an empty text."""
    right, came = expected.reshape(-1), actual.reshape(-1)
    if right.size < 2 or right.dtype.kind == "O":
        return ""
    same = int(np.argmin(right == came)) if not (right == came).all() else right.size
    # `any` of numpy warns of a signalling NaN.
    rest_is_zero = same < right.size and not np.count_nonzero(came[same:]) and np.count_nonzero(right[same:]) > 0
    if not (rest_is_zero and _has_distinct_elements(right[:same] if same else right)):
        return ""
    return f"truncated after {_format_element_count(same)} and filled with zeros" if same else "with all elements zero"


def _format_element_count(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
