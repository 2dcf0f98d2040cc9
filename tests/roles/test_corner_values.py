"""The corner tables hold what their names say, bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance.checks.support.inputs import make_symmetric_inputs
from conformance.roles.corner_values import (
    BINARY_ONLY_CORNERS,
    BYTE_STRINGS,
    FLOAT_CORNERS,
    INTEGER_CORNERS,
    PALINDROMES,
    TEXTS,
    get_all_corners,
    get_bit_groups,
    make_corner_tensor,
)
from conformance.roles.model import Model
from conformance.roles.roles import load as load_roles
from conformance.roles.sample_values import PERIOD, make_ramp, make_sample_tensor
from conformance.wire.datatypes import DATATYPES, INTEGERS

FLOATS = ("FP16", "BF16", "FP32", "FP64")


@pytest.mark.parametrize("datatype", INTEGERS)
def test_integer_corners_reach_both_limits(datatype: str) -> None:
    limits = np.iinfo(DATATYPES[datatype].dtype)
    corners = get_all_corners(datatype).tolist()
    assert (min(corners), max(corners)) == (limits.min, limits.max)


@pytest.mark.parametrize("datatype", ["UINT64", "INT64"])
def test_a_double_loses_a_corner(datatype: str) -> None:
    assert 2**53 + 1 in INTEGER_CORNERS[datatype]["past-fp64"]


@pytest.mark.parametrize("datatype", ["UINT64", "INT64"])
def test_a_double_holds_each_sample(datatype: str) -> None:
    samples = [make_sample_tensor("T", datatype, [PERIOD], 255).array, make_ramp(datatype, PERIOD, 255)]
    assert max(abs(one.astype(object)).max() for one in samples) < 2**53


@pytest.mark.parametrize("datatype", FLOATS)
def test_values_for_json_are_finite_and_not_zero(datatype: str) -> None:
    values = get_all_corners(datatype, json=True).astype(np.float64)
    assert np.isfinite(values).all()
    assert (values != 0).all()


@pytest.mark.parametrize(
    ("datatype", "group", "text"),
    [
        ("FP16", "zeros", "0000 0080"),
        ("FP32", "zeros", "00000000 00000080"),
        ("FP64", "infinities", "000000000000f07f 000000000000f0ff"),
        ("BF16", "infinities", "807f 80ff"),
        ("FP32", "smallest-normal", "00008000 00008080 01008000"),
        ("INT32", "single-bytes", "ff000000 00ff0000 0000ff00 000000ff"),
    ],
)
def test_a_group_is_these_bytes(datatype: str, group: str, text: str) -> None:
    assert bytes(make_corner_tensor("T", datatype, group).to_bytes()) == bytes.fromhex(text)


@pytest.mark.parametrize("datatype", FLOATS)
def test_subnormals_are_below_the_smallest_normal(datatype: str) -> None:
    values = make_corner_tensor("T", datatype, "subnormal").array.astype(np.float64)
    smallest = {"FP16": 2.0**-14, "BF16": 2.0**-126, "FP32": 2.0**-126, "FP64": 2.0**-1022}[datatype]
    assert ((np.abs(values) < smallest) & (values != 0)).all()


@pytest.mark.parametrize("datatype", FLOATS)
def test_nan_group_is_nan(datatype: str) -> None:
    width = DATATYPES[datatype].size or 0
    mantissa = {"FP16": 10, "BF16": 7, "FP32": 23, "FP64": 52}[datatype]
    for bits in get_bit_groups(datatype)["nan"]:
        exponent = bits >> mantissa & (1 << (8 * width - 1 - mantissa)) - 1
        assert exponent == (1 << (8 * width - 1 - mantissa)) - 1
        assert bits & (1 << mantissa) - 1


@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_extremes_reach_the_largest_and_the_smallest_number(datatype: str) -> None:
    values = make_corner_tensor("T", datatype, "extremes").array
    limits = np.finfo(values.dtype)
    assert limits.max in values
    assert limits.min in values
    assert limits.smallest_subnormal in values


def test_groups_with_and_without_json_have_different_names() -> None:
    assert [d for d in FLOATS if set(FLOAT_CORNERS[d]) & set(BINARY_ONLY_CORNERS[d])] == []


def test_texts_are_utf8_and_octets_are_not() -> None:
    for elements in TEXTS.values():
        assert [element.decode().encode() for element in elements] == list(elements)
    for group, elements in BYTE_STRINGS.items():
        assert any(element.decode("utf-8", "replace").encode() != element for element in elements), group


def test_texts_hold_the_lengths_at_which_a_prefix_gains_a_byte() -> None:
    lengths = {len(element) for elements in TEXTS.values() for element in elements}
    assert {0, 255, 256, 65_535, 65_536} <= lengths


@pytest.mark.parametrize("datatype", list(PALINDROMES))
def test_palindromes_read_the_same_from_either_end(datatype: str) -> None:
    size = DATATYPES[datatype].size or 0
    for bits in PALINDROMES[datatype]:
        assert bits.to_bytes(size, "little") == bits.to_bytes(size, "big")


def test_inputs_in_one_order_are_finite() -> None:
    for tensor in make_symmetric_inputs(Model(load_roles()["multi"], "multi")):
        if tensor.datatype == "FP32":
            assert all(math.isfinite(value) for value in tensor.array.tolist())
