"""Inputs as checks change them for a model of which nothing is known: wrong in one thing, else ordinary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from conformance.checks.support import changed_tensors as changed
from conformance.wire.tensor import Tensor

FLOATS = Tensor.from_values("F", "FP32", [0.5, 1.125, 0.25, 1.0, 2.0, 0.125], (2, 3))
COUNTS = Tensor.from_values("C", "INT32", [1, 3, 2])
BITS = Tensor.from_values("B", "INT16", [0, 1, 1])
TEXTS = Tensor.from_values("T", "BYTES", ["ab", "", "cdef"])
FLAGS = Tensor.from_values("O", "BOOL", [True, False, False])
HALVES = Tensor.from_values("H", "FP16", [0.5, 1.5])
ALL = (FLOATS, COUNTS, BITS, TEXTS, FLAGS, HALVES)


def values(tensors: Sequence[Tensor]) -> list[object]:
    return [tensor.array.reshape(-1).tolist() for tensor in tensors]


def test_tensors_are_filled_with_the_greatest_or_the_first() -> None:
    filled = changed.fill_with_one_element([*ALL, Tensor.from_values("N", "INT8", [-3, 1])])
    assert values(filled) == [[2.0] * 6, [3] * 3, [1] * 3, [b"ab"] * 3, [True] * 3, [1.5] * 2, [-3] * 2]
    assert [tensor.shape for tensor in filled[:2]] == [(2, 3), (3,)]


def test_elements_are_the_same_in_either_order_where_the_model_takes_any_such() -> None:
    floats, counts, bits, *_ = changed.fill_with_byte_order_neutral_values(ALL)
    assert floats.array.byteswap().tobytes() == floats.array.tobytes()
    assert values([counts, bits]) == [[3, 3, 3], [0, 0, 0]]  # no count was 0
    doubles = changed.fill_with_byte_order_neutral_values([Tensor.from_values("D", "FP64", [0.5])])[0].array
    words = doubles.view("<u4")
    assert doubles.byteswap().tobytes() == doubles.tobytes() == words[::-1].tobytes()


@pytest.mark.parametrize(
    ("elements", "is_swapped"),
    [([0.125], True), ([1.75, 2.0], True), (np.array([0xC1800000, 0xFFFF], "<u4").view("<f4"), False)],
    ids=("small", "several", "no-number"),
)
def test_swapped_bytes_stay_ordinary_numbers(elements: Sequence[float], is_swapped: bool) -> None:
    tensor = Tensor.from_values("F", "FP32", elements)
    plain = changed.fill_with_byte_order_neutral_values([tensor])
    swapped = changed.swap_bytes([tensor], plain)[0].array
    assert (swapped.tobytes() == tensor.array.byteswap().tobytes()) == is_swapped
    assert (swapped.tobytes() == plain[0].array.tobytes()) != is_swapped


def test_no_integer_is_swapped() -> None:
    plain = changed.fill_with_byte_order_neutral_values([COUNTS])
    assert changed.swap_bytes([COUNTS], plain) == plain


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed.shift_elements, [[1.125, 0.25, 1.0, 2.0, 0.125, 0.125], [3, 2, 2]]),
        (changed.reorder_by_columns, [[0.5, 0.25, 2.0, 1.125, 1.0, 0.125], [1, 3, 2]]),
        (changed.invert_booleans, [[0.5, 1.125, 0.25, 1.0, 2.0, 0.125], [1, 3, 2]]),
    ],
)
def test_elements_change_places(
    change: Callable[[Sequence[Tensor]], list[Tensor]], expected: list[list[float]]
) -> None:
    assert values(change([FLOATS, COUNTS])) == expected


def test_what_is_written_by_columns_is_read_by_columns() -> None:
    by_columns = np.ascontiguousarray(FLOATS.array.T).reshape(2, 3)
    assert values(changed.reorder_by_columns([Tensor.from_values("F", "FP32", by_columns)])) == values([FLOATS])


def test_booleans_are_inverted_and_strings_replaced() -> None:
    assert values(changed.invert_booleans([FLAGS])) == [[False, True, True]]
    assert values(changed.fill_strings([TEXTS, FLAGS], [b"x", b""])) == [[b"x", b"", b"x"], [True, False, False]]
    assert values(changed.halve_strings([TEXTS, COUNTS])) == [[b"a", b"", b"cd"], [1, 3, 2]]


@pytest.mark.parametrize("name", changed.LOOKALIKES)
@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_lookalikes_are_numbers_between_0_and_2(name: str, datatype: str) -> None:
    (tensor,) = changed.fill_floats_with_lookalike([Tensor.from_values("F", datatype, [0.5, 0.5])], name)
    assert bytes(tensor.to_bytes()) == changed.LOOKALIKES[name][datatype] * 2
    assert ((tensor.array > 0) & (tensor.array < 2)).all()


def test_fractions_need_every_bit() -> None:
    fractions = changed.fill_floats_with_fractions([FLOATS, COUNTS])
    assert fractions[1] is COUNTS
    assert not (changed.round_floats(fractions)[0].array == fractions[0].array).any()
    assert values(changed.round_floats([FLOATS])) == values([FLOATS])


def test_only_tensors_of_both_are_compared() -> None:
    assert not changed.are_different([FLOATS, COUNTS], [FLOATS])
    assert not changed.are_different([FLOATS], [COUNTS])
    assert changed.are_different([FLOATS, COUNTS], changed.shift_elements([COUNTS]))


@pytest.mark.parametrize(
    ("shape", "has"), [((), False), ((3,), False), ((1, 3), False), ((2, 3), True), ((2, 1, 2), True)]
)
def test_order_of_dimensions_shows_in_two_of_more_than_one(shape: tuple[int, ...], has: bool) -> None:
    assert changed.has_rows_and_columns(Tensor.from_values("F", "FP32", np.zeros(shape))) == has
