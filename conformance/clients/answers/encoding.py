"""Tensors as an answer carries them: binary data, JSON elements, and the shape of an output's entry.

Little-endian, row-major, packed; an element of BYTES behind its length in four bytes (Triton, Binary Tensor Data
Extension, "Data Representation").
"""

from __future__ import annotations

from typing import Any

from conformance.wire.datatypes import lookup
from conformance.wire.tensor import Tensor


def encode_binary(one: Tensor) -> bytes:
    """Return the binary form of a tensor."""
    flat = one.array.reshape(-1)
    if one.datatype == "BYTES":
        return b"".join(len(element).to_bytes(4, "little") + element for element in flat.tolist())
    return bytes(flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes())


def encode_elements(one: Tensor, *, nested: bool = False) -> list[Any]:
    """Return the elements as values of JSON, flat or nested as the shape is; rank 0 is a list of one.

    Raises:
        ValueError: a datatype or an element that JSON cannot carry.
    """
    if not lookup(one.datatype).has_json_form:
        raise ValueError(f"{one.datatype} has no JSON form")
    values = one.array.tolist() if nested and one.array.ndim else one.array.reshape(-1).tolist()
    texts: list[Any] = _as_texts(values) if one.datatype == "BYTES" else values
    return texts


def _as_texts(values: Any) -> Any:
    return [_as_texts(value) for value in values] if isinstance(values, list) else values.decode()
