"""Change the inputs of a deployed model: simplify the values, or apply the mistake of a faulty server.

Integers stay within the range of the original input, since an index outside a lookup table can crash a model. Floats
have ordinary magnitudes. An input that cannot be changed within these limits stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.wire.datatypes import DATATYPES, INTEGERS
from conformance.wire.tensor import Tensor

Array = NDArray[Any]

# Datatypes that JSON carries and whose elements have several bytes.
WIDE = frozenset({"INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FP32", "FP64"})
WIDE_FLOATS = frozenset({"FP32", "FP64"})
LARGE_NUMBER = 1e16
MAX_ORDINARY = 1e6  # the greatest magnitude of a float that is sent to an unknown model
# Numbers that read the same in either byte order and either word order.
_BYTE_ORDER_NEUTRAL: Mapping[str, Array] = {
    "FP32": np.array([0x3F3F3F3F], "<u4").view("<f4"),
    "FP64": np.array([0x3F40403F3F40403F], "<u8").view("<f8"),
}
# Numbers between 0 and 2 whose bytes look like JSON or whitespace to a server that parses them as text.
LOOKALIKES: Mapping[str, Mapping[str, bytes]] = {
    "line-end": {"FP32": b"\r\n\r?", "FP64": b"\r\n\r\n\r\n]?"},
    "byte-order-mark": {"FP32": b"\xef\xbb\xbf?", "FP64": b"\xef\xbb\xbf{}}\xe7?"},
    "open-brace": {"FP32": b'{"a?', "FP64": b'{"inp"]?'},
    "closing-braces": {"FP32": b"]}]?", "FP64": b"]}]}]}]?"},
    "ampersands": {"FP32": b"&a=?", "FP64": b"&a=1&b=?"},
    "blanks": {"FP32": b"  \t?", "FP64": b"      ]?"},
}


def fill_with_one_element(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return each tensor filled with its number of greatest magnitude, or its first element for BYTES and BOOL."""
    return [_fill_with_greatest_number(tensor) for tensor in tensors]


def fill_with_byte_order_neutral_values(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return each tensor filled with one value; an FP32 or FP64 value has the same bytes in either byte order.

    Integers become 0 if 0 lies within the range of the tensor. Other tensors are filled as in `fill_with_one_element`.
    """
    return [_fill_with_byte_order_neutral_value(tensor) for tensor in tensors]


def swap_bytes(tensors: Sequence[Tensor], plain: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with the bytes of each FP32 and FP64 element swapped, as a big-endian server reads them.

    The tensor of the same position in `plain` replaces each tensor of another datatype. It also replaces a tensor in
    which a swapped element is larger than `MAX_ORDINARY` or not a number.
    """
    return [_swap_float_bytes(tensor, instead) for tensor, instead in zip(tensors, plain, strict=True)]


def shift_elements(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with each element replaced by the next element; the last element stays."""
    return _change_elements(tensors, lambda flat: np.concatenate([flat[1:], flat[-1:]]))


def reorder_by_columns(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors as read by a server that takes row-major data for column-major data."""
    return [_replace_elements(each, each.array.reshape(-1).reshape(each.shape, order="F")) for each in tensors]


def has_rows_and_columns(tensor: Tensor) -> bool:
    """Say whether at least two dimensions are larger than 1, so that row-major and column-major order differ."""
    return sum(size > 1 for size in tensor.shape) > 1


def invert_booleans(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with every BOOL element inverted."""
    return _change_elements(tensors, np.invert, ("BOOL",))


def halve_strings(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with every string cut to its first half."""
    return _change_elements(
        tensors, lambda flat: _make_strings([text[: len(text) // 2] for text in flat.tolist()]), ("BYTES",)
    )


def are_different(tensors: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Say whether any two tensors of the same name differ; names that occur on one side only are ignored."""
    named = {tensor.name: tensor.array for tensor in tensors}
    return any(not np.array_equal(named.get(other.name, other.array), other.array) for other in others)


def fill_strings(tensors: Sequence[Tensor], texts: Sequence[bytes]) -> list[Tensor]:
    """Return the tensors with every BYTES input filled with these strings, repeated as needed."""
    return _change_elements(tensors, lambda flat: np.resize(_make_strings(texts), flat.size), ("BYTES",))


def fill_floats_with_lookalike(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    """Return the tensors with every FP32 and FP64 input filled with the number that `LOOKALIKES` lists under `name`."""
    octets = LOOKALIKES[name]
    return [
        _replace_elements(each, np.resize(np.frombuffer(octets[each.datatype], each.array.dtype), each.elements))
        if each.datatype in octets
        else each
        for each in tensors
    ]


def fill_floats_with_fractions(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 and FP64 inputs filled with fractions between 1 and 2 that use all bits."""
    return _change_elements(tensors, _make_fractions, WIDE_FLOATS)


def _make_fractions(flat: Array) -> Array:
    return np.asarray((1 + (np.arange(flat.size) + 1) % 7 / 7.3).astype(flat.dtype))


def fill_floats_with_subnormals(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 and FP64 inputs filled with different subnormal numbers."""
    return _change_elements(tensors, lambda flat: _make_fractions(flat) * np.finfo(flat.dtype).tiny / 4, WIDE_FLOATS)


def fill_floats_with_zeros(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 and FP64 inputs filled with zeros."""
    return _change_elements(tensors, np.zeros_like, WIDE_FLOATS)


def fill_floats_with_large_numbers(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 and FP64 inputs filled with numbers above 2^53, which JSON can carry."""
    return _change_elements(
        tensors, lambda flat: (_make_fractions(flat) * LARGE_NUMBER).astype(flat.dtype), WIDE_FLOATS
    )


def fill_floats_with_non_finite_numbers(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 and FP64 inputs filled with NaN and both infinities."""
    return _change_elements(
        tensors, lambda flat: np.resize(np.array([np.nan, np.inf, -np.inf], flat.dtype), flat.size), WIDE_FLOATS
    )


def round_floats(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors with FP32 elements rounded to FP16, and FP64 elements rounded to FP32."""
    return _change_elements(
        tensors, lambda flat: flat.astype(f"<f{flat.itemsize // 2}").astype(flat.dtype), WIDE_FLOATS
    )


def _change_elements(
    tensors: Sequence[Tensor], change: Callable[[Array], Array], datatypes: Collection[str] = DATATYPES
) -> list[Tensor]:
    """Return the tensors; `change` has replaced the elements, as a flat array, of those of the given datatypes."""
    return [
        _replace_elements(each, change(each.array.reshape(-1))) if each.datatype in datatypes else each
        for each in tensors
    ]


def _make_strings(texts: Sequence[bytes]) -> Array:
    return Tensor.from_values("", "BYTES", list(texts)).array


def _replace_elements(tensor: Tensor, elements: Array) -> Tensor:
    return Tensor.from_values(tensor.name, tensor.datatype, elements, tensor.shape)


def _fill_with_greatest_number(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1)
    if not flat.size:
        return tensor
    numbers = flat.dtype.kind not in "Ob"
    return _replace_elements(
        tensor, np.full_like(flat, flat[int(np.argmax(np.abs(flat.astype("<f8")))) if numbers else 0])
    )


def _fill_with_byte_order_neutral_value(tensor: Tensor) -> Tensor:
    flat = tensor.array.reshape(-1)
    if tensor.datatype in _BYTE_ORDER_NEUTRAL:
        return _replace_elements(tensor, np.resize(_BYTE_ORDER_NEUTRAL[tensor.datatype], flat.size))
    if tensor.datatype in INTEGERS and flat.size and flat.min() <= 0 <= flat.max():
        return _replace_elements(tensor, np.zeros_like(flat))
    return _fill_with_greatest_number(tensor)


def _swap_float_bytes(tensor: Tensor, plain: Tensor) -> Tensor:
    swapped = tensor.array.byteswap() if tensor.datatype in WIDE_FLOATS else None
    if swapped is None or not (np.abs(np.nan_to_num(swapped, nan=np.inf)) <= MAX_ORDINARY).all():
        return plain
    return _replace_elements(tensor, swapped)
