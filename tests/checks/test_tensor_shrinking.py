"""Shrinking a failing tensor: small, plain, and still failing, in few trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from conformance.checks.support.tensor_shrinking import MAX_TRIALS, get_plain_element, shrink
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

Wrong = Callable[[Any], bool]


class TensorError(UnmetError):
    """The failure of a tensor, which it keeps."""

    def __init__(self, tensor: Tensor, reply: Reply | None = None) -> None:
        super().__init__("right elements", "wrong ones", reply)
        self.sent = tensor


def shrunk(tensor: Tensor, is_wrong: Wrong, pattern: Sequence[int] = (-1,)) -> Tensor:
    """Return what a tensor shrinks to on a server that gets some elements wrong."""
    found, trials = shrink_counted(tensor, lambda candidate: any(map(is_wrong, candidate.array.flat)), pattern)
    assert trials <= MAX_TRIALS
    assert any(map(is_wrong, found.array.flat))
    return found


def shrink_counted(
    tensor: Tensor, fails: Callable[[Tensor], bool], pattern: Sequence[int], reply: Reply | None = None
) -> tuple[Tensor, int]:
    """Return what a tensor shrinks to, and in how many trials."""
    trials: list[Tensor] = []

    def trial(candidate: Tensor) -> UnmetError | None:
        trials.append(candidate)
        return TensorError(candidate, reply) if fails(candidate) else None

    found = shrink(tensor, TensorError(tensor), trial, pattern)
    assert isinstance(found, TensorError)
    return found.sent, len(trials)


@pytest.mark.parametrize(
    ("datatype", "values", "is_wrong", "smallest"),
    [
        ("INT64", [5, 2**60 + 3, -7, 1], lambda x: x > 2**53, [2**53 + 1]),
        ("INT16", [5, -0x7FFF, 300], lambda x: x < -128, [-129]),
        ("UINT64", [2**63, 2**64 - 1, 4], lambda x: x >= 2**63, [2**63]),
        ("INT8", [9, 0, 4], lambda x: x == 0, [0]),
        ("FP32", [1.5, 1e-41, 3.0], lambda x: 0 < abs(x) < 1e-38, None),
        ("FP64", [2.5, 0.1, 3.7], lambda x: x != np.float32(x), None),
        ("FP16", [1, np.inf, 2], np.isinf, [np.inf]),
        ("BYTES", [b"one", b"a\0bc", b"three"], lambda x: b"\0" in x, [b"\0"]),
        ("BYTES", [b"one", "xé猫y".encode()], lambda x: not x.isascii(), None),
        ("BYTES", [b"\xff\xfe ab", b"one"], lambda x: b"\xff" in x, [b"\xff"]),
        ("BYTES", [b"x" * 200, b"one"], lambda x: len(x) > 127, [b"x" * 128]),
        ("BYTES", [b"one", b"", b"two"], lambda x: x == b"", [b""]),
    ],
)
def test_one_element_remains_that_is_as_plain_as_it_can_be(
    datatype: str, values: list[Any], is_wrong: Wrong, smallest: list[Any] | None
) -> None:
    found = shrunk(Tensor.from_values("T", datatype, values), is_wrong)
    assert found.shape == (1,)
    if smallest is not None:
        assert found.array.tolist() == smallest


def test_a_float_keeps_few_bits() -> None:
    found = shrunk(Tensor.from_values("T", "FP32", [1.2345678e-41, 2.0]), lambda x: 0 < abs(x) < 1e-38)
    assert found.array.view("<u4")[0].bit_count() == 1


def test_a_string_of_letters_stays_utf8() -> None:
    found = shrunk(Tensor.from_values("T", "BYTES", ["xé猫y".encode()]), lambda x: not x.isascii())
    assert found.array[0].decode() in ("é", "猫")


def test_fixed_dimensions_stay_and_variable_ones_are_cut() -> None:
    tensor = Tensor.from_values("T", "INT32", np.arange(24) + 7, (4, 2, 3))
    found = shrunk(tensor, lambda x: x == 20, (-1, 2, -1))
    assert found.shape == (1, 2, 1)
    assert sorted(found.array.flat) == [1, 20]


def test_a_failure_of_the_shape_keeps_the_shape_with_plain_elements() -> None:
    tensor = Tensor.from_values("T", "INT32", np.arange(20) + 7, (4, 5))
    found, _ = shrink_counted(tensor, lambda candidate: candidate.shape[0] >= 3, (-1, -1))
    assert found.shape == (3, 1)
    assert found.array.tolist() == [[1]] * 3


def test_rank_0_has_nothing_to_cut() -> None:
    assert shrunk(Tensor.from_values("T", "INT32", 70_000, ()), lambda x: x > 65_535, ()).array == 65_536


def test_what_no_longer_fails_is_not_taken() -> None:
    tensor = Tensor.from_values("T", "INT32", [7, 8])
    found, _ = shrink_counted(tensor, lambda candidate: candidate.array.tolist() == [7, 8], (-1,))
    assert found.array.tolist() == [7, 8]


def test_trials_are_limited() -> None:
    tensor = Tensor.from_values("T", "INT64", [2**62 + 2**k for k in range(24)])
    _, trials = shrink_counted(tensor, lambda candidate: candidate.array.tolist() == tensor.array.tolist(), (-1,))
    assert trials == MAX_TRIALS


def test_no_further_trial_follows_one_that_timed_out() -> None:
    failure = TransportFailure(FailureKind.TIMEOUT, "no answer in 3 s")
    reply = Reply(Exchange(0, Message("/"), "http://127.0.0.1/", failure=failure))
    tensor = Tensor.from_values("T", "INT32", [7, 8])
    found, trials = shrink_counted(tensor, lambda _: True, (-1,), reply)
    assert trials == 1
    assert found.elements == 1


@pytest.mark.parametrize("datatype", list(DATATYPES))
def test_plain_elements_are_of_the_datatype(datatype: str) -> None:
    values = [get_plain_element(datatype, index) for index in range(6)]
    tensor = Tensor.from_values("T", datatype, values)
    assert len(set(map(str, tensor.array))) == (2 if datatype == "BOOL" else 6)
