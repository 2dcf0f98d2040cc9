"""Inputs of a deployed model as a check changes them: what a server makes of them that reads them wrong, and plain ones.

No integer leaves the range of those that the model takes, and every floating-point number is an ordinary one: an index
beyond a table has ended models. Where that keeps an input from being changed it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.wire.datatypes import INTEGERS
from conformance.wire.tensor import Tensor

Array = NDArray[Any]

# Datatypes whose elements have several bytes, and that JSON carries.
WIDE = frozenset({"INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FP32", "FP64"})
WIDE_FLOATS = frozenset({"FP32", "FP64"})
MAX_ORDINARY = 1e6  # the greatest magnitude that is sent to a model of which nothing else is known
# Numbers that are the same in either order of their bytes, and of their words.
_EITHER_ORDER: Mapping[str, Array] = {
    "FP32": np.array([0x3F3F3F3F], "<u4").view("<f4"),
    "FP64": np.array([0x3F40403F3F40403F], "<u8").view("<f8"),
}
# Numbers between 0 and 2 whose bytes mean something to a server that looks into them.
LOOKALIKES: Mapping[str, Mapping[str, bytes]] = {
    "line-end": {"FP32": b"\r\n\r?", "FP64": b"\r\n\r\n\r\n]?"},
    "byte-order-mark": {"FP32": b"\xef\xbb\xbf?", "FP64": b"\xef\xbb\xbf{}}\xe7?"},
    "open-brace": {"FP32": b'{"a?', "FP64": b'{"inp"]?'},
    "closing-braces": {"FP32": b"]}]?", "FP64": b"]}]}]}]?"},
    "blanks": {"FP32": b"  \t?", "FP64": b"      ]?"},
}


def fill_alike(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors all of whose elements are one of their own: the number of the greatest magnitude, or the first."""
    return [_alike(tensor) for tensor in tensors]


def fill_either_order(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors whose elements are all alike, and numbers that are the same in either order of their bytes.

    Integers become 0 where that is between the least and the greatest of them.
    """
    return [_in_either_order(tensor) for tensor in tensors]


def swap_bytes(tensors: Sequence[Tensor], plain: Sequence[Tensor]) -> list[Tensor]:
    """Return what a server makes of tensors that takes the most significant byte for the first.

    Where that is no ordinary number the plain tensor stands for it.
    """
    return [_swapped(tensor, instead) for tensor, instead in zip(tensors, plain, strict=True)]


def move_up(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return what a server makes of tensors that takes each element for the one before it."""
    return [_filled(each, np.concatenate([flat[1:], flat[-1:]])) for each, flat in _flat(tensors)]


def read_by_columns(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return what a server makes of tensors that reads them in column-major order."""
    return [_filled(each, flat.reshape(each.shape, order="F")) for each, flat in _flat(tensors)]


def has_rows_and_columns(tensor: Tensor) -> bool:
    """Say whether the order of dimensions shows in where elements stand."""
    return sum(size > 1 for size in tensor.shape) > 1


def negate(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors with every BOOL element inverted."""
    return [_filled(each, ~flat) if each.datatype == "BOOL" else each for each, flat in _flat(tensors)]


def halve_texts(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors whose strings have lost their second half."""
    return [
        _filled(each, Tensor.of("", "BYTES", [text[: len(text) // 2] for text in flat.tolist()]).array)
        if each.datatype == "BYTES" and flat.size
        else each
        for each, flat in _flat(tensors)
    ]


def differ(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Say whether the elements of tensors of the same names and shapes differ; those that only one has do not count."""
    named = {tensor.name: tensor.array for tensor in tensors}
    return any(not np.array_equal(named.get(other.name, other.array), other.array) for other in others)


def fill_texts(tensors: Sequence[Tensor], texts: Sequence[bytes]) -> list[Tensor]:
    """Return tensors with these strings in every BYTES input, again and again."""
    filling = Tensor.of("", "BYTES", list(texts)).array
    return [
        _filled(each, np.resize(filling, flat.size)) if each.datatype == "BYTES" else each
        for each, flat in _flat(tensors)
    ]


def fill_lookalike(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    """Return tensors with one of `LOOKALIKES` in every FP32 and FP64 input."""
    octets = LOOKALIKES[name]
    return [
        _filled(each, np.resize(np.frombuffer(octets[each.datatype], flat.dtype), flat.size))
        if each.datatype in octets
        else each
        for each, flat in _flat(tensors)
    ]


def fill_fractions(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return tensors with numbers between 1 and 2 that need every bit in every FP32 and FP64 input."""
    return [_filled(each, _fractions(flat)) if each.datatype in WIDE_FLOATS else each for each, flat in _flat(tensors)]


def _fractions(flat: Array) -> Array:
    return np.asarray((1 + (np.arange(flat.size) + 1) % 7 / 7.3).astype(flat.dtype))


def round_off(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return what a server makes of tensors that keeps floating-point numbers in half their bits."""
    return [
        _filled(each, flat.astype(f"<f{flat.itemsize // 2}").astype(flat.dtype))
        if each.datatype in WIDE_FLOATS
        else each
        for each, flat in _flat(tensors)
    ]


def _flat(tensors: Sequence[Tensor]) -> list[tuple[Tensor, Array]]:
    return [(tensor, tensor.array.reshape(-1)) for tensor in tensors]


def _filled(tensor: Tensor, elements: Array) -> Tensor:
    return Tensor.of(tensor.name, tensor.datatype, elements, tensor.shape)


def _alike(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1)
    if not flat.size:
        return tensor
    numbers = flat.dtype.kind not in "Ob"
    return _filled(tensor, np.full_like(flat, flat[int(np.argmax(np.abs(flat.astype("<f8")))) if numbers else 0]))


def _in_either_order(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1)
    if tensor.datatype in _EITHER_ORDER:
        return _filled(tensor, np.resize(_EITHER_ORDER[tensor.datatype], flat.size))
    if tensor.datatype in INTEGERS and flat.size and flat.min() <= 0 <= flat.max():
        return _filled(tensor, np.zeros_like(flat))
    return _alike(tensor)


def _swapped(tensor: Tensor, plain: Tensor) -> Tensor:
    swapped = tensor.array.byteswap() if tensor.datatype in WIDE_FLOATS else None
    if swapped is None or not (np.abs(np.nan_to_num(swapped, nan=np.inf)) <= MAX_ORDINARY).all():
        return plain
    return _filled(tensor, swapped)
