"""The generated tensors that every run sends: of each datatype and rank, small, and with corner values.

Nothing here depends on what the installed version of Hypothesis draws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.roles import roles
from conformance.roles.corner_values import get_all_corners, make_corner_tensor
from conformance.roles.generated_tensors import (
    FILE,
    ROLES,
    SHAPED_ROLES,
    TENSORS_PER_ROW,
    THROUGH_JSON,
    Sending,
    get_shape_pattern,
    load_tensors,
)
from conformance.roles.roles import Role
from conformance.wire.datatypes import DATATYPES, INTEGERS
from conformance.wire.tensor import Tensor, find_first_difference
from tests.support.generated_tensors import MAX_BATCH, MAX_BYTES, MAX_ELEMENTS, draw
from tests.support.tables import on_each

Array = NDArray[Any]
ROWS = [(sending, name) for sending, names in ROLES.items() for name in names]
MAX_FILE_BYTES = 48 * 1024
# Ways of sending that carry any bits, and that serve models of any rank.
ANY_BITS: tuple[Sending, ...] = ("both", "raw", "raw-contents")
ANY_RANK: tuple[Sending, ...] = ("read", "written", "both", "typed-contents", "raw-contents")


def tensors_of(*sendings: Sending) -> Iterator[tuple[Role, Tensor]]:
    for sending in sendings:
        for name in ROLES[sending]:
            role = roles.load()[name]
            yield from ((role, tensor) for tensor in load_tensors(role, sending))


def bits_of(datatype: str, *sendings: Sending) -> set[bytes]:
    """Return the distinct elements of identity models."""
    found = [tensor for role, tensor in tensors_of(*sendings) if role.compute == "identity"]
    return {
        element if isinstance(element, bytes) else element.tobytes()
        for tensor in found
        if tensor.datatype == datatype
        for element in tensor.array.reshape(-1)
    }


def test_the_file_has_the_rows_of_the_table_and_is_small() -> None:
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    assert [(sending, name) for sending, names in kept.items() for name in names] == ROWS
    assert FILE.stat().st_size < MAX_FILE_BYTES


def expect_fitting(role: Role, sending: Sending, tensors: tuple[Tensor, ...]) -> None:
    """Assert that tensors are small, differ, and fit the role."""
    assert len(tensors) == TENSORS_PER_ROW == len({(t.shape, bytes(t.to_bytes())) for t in tensors})
    pattern = get_shape_pattern(role, sending)
    for tensor in tensors:
        assert (tensor.name, tensor.datatype) == (role.inputs[0].name, role.inputs[0].datatype)
        assert len(tensor.shape) == len(pattern)
        assert all(want in (-1, have) for want, have in zip(pattern, tensor.shape, strict=True))
        assert 0 < tensor.elements <= MAX_ELEMENTS
        assert tensor.size <= MAX_BYTES
        assert not role.batching or tensor.shape[0] <= MAX_BATCH


@on_each(ROWS)
def test_the_tensors_of_a_row_fit_its_role(sending: Sending, name: str) -> None:
    role = roles.load()[name]
    expect_fitting(role, sending, load_tensors(role, sending))


@pytest.mark.parametrize(("sending", "name"), [("read", "rank2"), ("raw", "raw_batching"), ("both", "cast_fp32_fp16")])
def test_drawing_again_gives_tensors_that_fit(sending: Sending, name: str) -> None:
    role = roles.load()[name]
    expect_fitting(role, sending, tuple(draw(role, sending)))


@pytest.mark.parametrize("sending", ANY_RANK)
def test_every_rank_is_sent(sending: Sending) -> None:
    assert {len(tensor.shape) for _, tensor in tensors_of(sending)} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("sending", ANY_BITS)
def test_every_datatype_is_sent(sending: Sending) -> None:
    assert {tensor.datatype for _, tensor in tensors_of(sending)} == set(DATATYPES)


def test_every_datatype_is_read_alone_and_written_alone() -> None:
    assert {role.inputs[0].datatype for role, _ in tensors_of("read")} == set(DATATYPES)
    assert {role.outputs[0].datatype for role, _ in tensors_of("written")} == set(DATATYPES)


def test_raw_and_other_requests_have_batches() -> None:
    batching = [sending for sending, names in ROLES.items() for name in names if roles.load()[name].batching]
    assert set(batching) == set(ROLES)


@pytest.mark.parametrize("sending", sorted(THROUGH_JSON))
def test_what_goes_through_json_has_a_json_form(sending: Sending) -> None:
    for _, tensor in tensors_of(sending):
        assert len(tensor.to_json()) == tensor.elements
        if DATATYPES[tensor.datatype].is_float:
            assert np.isfinite(tensor.array.astype(np.float64)).all()


def test_tensors_of_several_dimensions_have_a_json_form() -> None:
    shaped = [tensor for role, tensor in tensors_of(*ROLES) if role.name in SHAPED_ROLES]
    assert all(len(tensor.to_json()) == tensor.elements for tensor in shaped)


def test_a_cast_preserves_every_element() -> None:
    casts = [(role, tensor) for role, tensor in tensors_of(*ROLES) if role.compute == "cast"]
    assert casts
    for role, tensor in casts:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            there = tensor.array.astype(DATATYPES[role.outputs[0].datatype].dtype)
            back = there.astype(tensor.array.dtype)
        assert find_first_difference(tensor.array, back, tensor.datatype) is None


@pytest.mark.parametrize("datatype", [*INTEGERS, "FP16", "BF16", "FP32", "FP64"])
def test_corner_values_are_among_the_elements(datatype: str) -> None:
    corners = {element.tobytes() for element in get_all_corners(datatype)}
    assert len(bits_of(datatype, *ROLES) & corners) >= min(len(corners), 8)


@pytest.mark.parametrize("sending", ["read", "written", "both", "typed-contents", "raw-contents"])
@pytest.mark.parametrize("datatype", [name for name in INTEGERS if name not in ("UINT8", "INT8")])
def test_limits_of_integers_are_sent(datatype: str, sending: Sending) -> None:
    limits = {element.tobytes() for element in make_corner_tensor("", datatype, "limits").array}
    assert bits_of(datatype, sending) & limits


def negative_zero(array: Array) -> Array:
    return np.asarray((array == 0) & np.signbit(array))


def subnormal(array: Array) -> Array:
    return np.asarray((array != 0) & (abs(array) < np.finfo(array.dtype).tiny))


@pytest.mark.parametrize("wanted", [np.isnan, np.isinf, negative_zero, subnormal])
@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64"])
def test_nan_infinity_signed_zero_and_subnormals_are_sent(datatype: str, wanted: Callable[[Array], Array]) -> None:
    found = [tensor.array for _, tensor in tensors_of(*ANY_BITS) if tensor.datatype == datatype]
    with np.errstate(invalid="ignore"):
        assert any(wanted(array).any() for array in found)


def is_utf8(element: bytes) -> bool:
    return element.decode(errors="replace").encode() == element


@pytest.mark.parametrize("sending", ["both", "typed-contents", "raw-contents"])
def test_strings_are_empty_with_nul_beyond_ascii_and_not_utf8(sending: Sending) -> None:
    strings = [element for _, t in tensors_of(sending) if t.datatype == "BYTES" for element in t.array.reshape(-1)]
    assert b"" in strings
    assert any(b"\0" in element for element in strings)
    assert any(is_utf8(element) and not element.isascii() for element in strings)
    assert not all(map(is_utf8, strings))
