"""Hypothesis strategies: tensors of every datatype and any shape.

Elements are drawn as bit patterns, not as values, so that every pattern can occur. Small tensors are drawn byte by
byte, which shrinks well; larger ones are computed from one drawn seed, which is fast at any size. Corner values are
inserted, because neither of these methods generates them often. All randomness comes from Hypothesis: the same seed
gives the same tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.roles.corner_values import BYTE_STRINGS, TEXTS, get_all_corners
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

Array = np.ndarray[Any, Any]
Shape = Sequence[int]

MAX_RANK = 4
MAX_ELEMENTS = 4096
MAX_STRINGS = 48  # elements of a BYTES tensor
_MAX_BYTEWISE_BYTES = 64
_MAX_CORNERS = 4
# Lengths for a variable dimension in addition to small ones: boundaries of buffers and length fields.
_EDGES = (0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 1023, 1024, 1025)


def shapes(pattern: Shape | None = None, max_elements: int = MAX_ELEMENTS) -> SearchStrategy[tuple[int, ...]]:
    """Return a strategy for shapes of at most `max_elements` elements.

    Args:
        pattern: a model's shape, in which each -1 is drawn; None also draws the rank, 0 to 4.
        max_elements: the maximum number of elements; the fixed dimensions of `pattern` must not exceed it.
    """
    if pattern is None:
        return st.integers(0, MAX_RANK).flatmap(lambda rank: shapes((-1,) * rank, max_elements))
    variable = sum(size < 0 for size in pattern)
    room = max_elements // max(1, math.prod(size for size in pattern if size > 0))
    if not variable:
        return st.just(tuple(pattern))
    limit = max(1, int(room ** (1 / variable) + 1e-9))
    small = st.integers(0, min(limit, 6))
    edge = st.sampled_from([size for size in _EDGES if size <= limit])
    sizes = st.lists(small | edge, min_size=variable, max_size=variable)
    return sizes.map(lambda drawn: _fill_shape(pattern, drawn))


def _fill_shape(pattern: Shape, sizes: Sequence[int]) -> tuple[int, ...]:
    remaining = iter(sizes)
    return tuple(next(remaining) if size < 0 else size for size in pattern)


@st.composite
def tensors(draw: st.DrawFn, name: str, datatype: str, shape: Shape | None = None, *, json: bool = False) -> Tensor:
    """Return a strategy for tensors of a datatype.

    `datatype`: a key of `DATATYPES`.
    `shape`: the `pattern` of `shapes`.
    `json`: whether to draw only values that JSON can represent: finite numbers, UTF-8 texts.
    """
    dimensions = draw(shapes(shape, MAX_STRINGS if datatype == "BYTES" else MAX_ELEMENTS))
    count = math.prod(dimensions)
    if datatype == "BYTES":
        elements = draw(st.lists(byte_strings(json=json), min_size=count, max_size=count))
        return Tensor.from_values(name, datatype, elements, dimensions)
    array = _from_octets(datatype, draw(_draw_octets(count * (DATATYPES[datatype].size or 0))), json=json)
    return Tensor(name, datatype, dimensions, draw(_insert_corners(datatype, array, json=json)).reshape(dimensions))


def byte_strings(*, json: bool = False) -> SearchStrategy[bytes]:
    """Return a strategy for BYTES elements: any bytes, UTF-8 texts and corner values; with `json` only UTF-8."""
    letters = st.characters(exclude_categories=["Cs"])
    texts = st.text(letters, max_size=20).map(str.encode)
    corners = st.sampled_from([element for group in TEXTS.values() for element in group if len(element) <= 257])
    if json:
        return texts | corners
    octets = st.sampled_from([element for group in BYTE_STRINGS.values() for element in group])
    return st.binary(max_size=40) | texts | corners | octets


def _draw_octets(size: int) -> SearchStrategy[bytes]:
    if size <= _MAX_BYTEWISE_BYTES:
        return st.binary(min_size=size, max_size=size)
    return st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).bytes(size))


def _from_octets(datatype: str, octets: bytes, *, json: bool) -> Array:
    """Convert bytes to a writable array; with `json`, replace each NaN or infinity by the number 1."""
    if datatype == "BOOL":
        return (np.frombuffer(octets, dtype=np.uint8) & 1).astype(bool)
    array = np.frombuffer(octets, dtype=DATATYPES[datatype].dtype).copy()
    if json and DATATYPES[datatype].is_float:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            array[~np.isfinite(array.astype(np.float64))] = 1
    return array


def _insert_corners(datatype: str, array: Array, *, json: bool) -> SearchStrategy[Array]:
    """Return a strategy that replaces up to four elements of an array by corner values."""
    if not array.size:
        return st.just(array)
    corners = get_all_corners(datatype, json=json)
    one = st.tuples(st.integers(0, array.size - 1), st.integers(0, len(corners) - 1))

    def insert_corners(positions: list[tuple[int, int]]) -> Array:
        result = array.copy()
        for index, corner in positions:
            result[index : index + 1] = corners[corner : corner + 1]
        return result

    return st.lists(one, max_size=_MAX_CORNERS).map(insert_corners)
