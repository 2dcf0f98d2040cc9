"""What the strategies draw: every datatype, shapes within limits, corner values, and only what JSON carries."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance.checks.support.exploring import explore
from conformance.expect.unmet import UnmetError
from conformance.roles.tensor_strategies import MAX_ELEMENTS, MAX_STRINGS, byte_strings, shapes, tensors
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor, decode

STEADY = settings(
    max_examples=40, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
SEARCH = settings(STEADY, max_examples=2000, phases=[Phase.generate])
FLOATS = ("FP16", "FP32", "FP64", "BF16")


@pytest.mark.parametrize("datatype", list(DATATYPES))
def test_tensors_are_of_the_datatype_and_decode_to_themselves(datatype: str) -> None:
    limit = MAX_STRINGS if datatype == "BYTES" else MAX_ELEMENTS

    @STEADY
    @given(tensors("T", datatype))
    def holds(tensor: Tensor) -> None:
        assert (tensor.name, tensor.datatype) == ("T", datatype)
        assert len(tensor.shape) <= 4
        assert tensor.elements <= limit
        again = Tensor("T", datatype, tensor.shape, decode(datatype, tensor.shape, bytes(tensor.to_bytes())))
        assert bytes(again.to_bytes()) == bytes(tensor.to_bytes())

    holds()


@pytest.mark.parametrize("datatype", list(DATATYPES))
def test_tensors_for_json_are_what_json_carries(datatype: str) -> None:
    @STEADY
    @given(tensors("T", datatype, [-1], json=True))
    def holds(tensor: Tensor) -> None:
        assert len(tensor.to_json()) == tensor.elements
        if datatype in FLOATS:
            assert np.isfinite(tensor.array.astype(np.float64)).all()

    holds()


@pytest.mark.parametrize("pattern", [[], [-1], [-1, -1], [2, -1, 3], [-1, -1, -1, -1], [2, 3]])
def test_shapes_fit_their_pattern(pattern: list[int]) -> None:
    @STEADY
    @given(shapes(pattern, 100))
    def holds(shape: tuple[int, ...]) -> None:
        assert len(shape) == len(pattern)
        assert all(want in (-1, have) for want, have in zip(pattern, shape, strict=True))
        assert prod(shape) <= 100

    holds()


@pytest.mark.parametrize("rank", range(5))
def test_every_rank_is_drawn(rank: int) -> None:
    assert len(find(shapes(), lambda shape: len(shape) == rank, settings=SEARCH)) == rank


def test_empty_and_large_tensors_are_drawn() -> None:
    assert prod(find(shapes([-1]), lambda shape: prod(shape) == 0, settings=SEARCH)) == 0
    assert prod(find(shapes([-1]), lambda shape: prod(shape) >= 1024, settings=SEARCH)) >= 1024


def negative_zero(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((array == 0) & np.signbit(array))


@pytest.mark.parametrize("wanted", [np.isnan, np.isinf, negative_zero])
@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64"])
def test_signed_zero_nan_and_infinity_are_drawn(datatype: str, wanted: Callable[[NDArray[Any]], Any]) -> None:
    found = find(tensors("T", datatype, [-1]), lambda tensor: bool(wanted(tensor.array).any()), settings=SEARCH)
    assert wanted(found.array).any()


def test_strings_that_are_not_utf8_are_drawn_unless_json_is_to_carry_them() -> None:
    def broken(element: bytes) -> bool:
        return element.decode("utf-8", "replace").encode() != element

    assert broken(find(byte_strings(), broken, settings=SEARCH))

    @STEADY
    @given(byte_strings(json=True))
    def holds(element: bytes) -> None:
        assert not broken(element)

    holds()


def test_exploring_raises_the_plain_unmet_of_the_smallest_example() -> None:
    def small(number: int) -> None:
        if number > 10:
            raise UnmetError("at most 10", str(number))

    with pytest.raises(UnmetError, match="got 11"):
        explore(st.integers(0, 1000), small)


def test_exploring_raises_unmet_when_the_same_example_fails_only_once() -> None:
    failed: list[int] = []

    def moody(number: int) -> None:
        if not failed:
            failed.append(number)
            raise UnmetError("an answer", "none")

    with pytest.raises(UnmetError, match="got none"):
        explore(st.integers(), moody)
