"""Inputs whose answers show how they were read, of a model that answers some of them alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from conformance.checks.support.deployed_models import draw_telling, require_telling
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import NotApplicableError
from conformance.roles.roles import TensorSpec
from conformance.wire.tensor import Tensor


def tensor(*values: int) -> Tensor:
    return Tensor.of("X", "INT32", list(values))


@dataclass(frozen=True, slots=True)
class Parity(DeployedModel):
    """A model that says whether the sum of its input is even."""

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (Tensor.of("Y", "INT32", [int(tensors[0].array.sum()) % 2]),)


SAMPLES = ((tensor(2, 2),), (tensor(4, 4),), (tensor(4, 1),), (tensor(3, 2),))
MODEL = Parity(
    derive_role("m", [TensorSpec("X", "INT32", (2,))], [TensorSpec("Y", "INT32", (1,))]),
    "m",
    tensors=SAMPLES[0],
    samples=SAMPLES,
    varies=True,
)


def test_inputs_are_drawn_until_the_misread_ones_are_answered_otherwise() -> None:
    found = draw_telling(MODEL, lambda tensors: [tensor(int(tensors[0].array[0]), 0)])
    assert found == SAMPLES[2]


def test_nothing_is_judged_where_all_are_answered_as_if_misread() -> None:
    with pytest.raises(NotApplicableError, match="m answers its inputs as it would answer them misread"):
        draw_telling(MODEL, lambda tensors: tensors)


def test_some_of_several_inputs_have_to_be_answered_otherwise_than_the_first() -> None:
    require_telling(MODEL, SAMPLES[0], SAMPLES[1], SAMPLES[2])
    with pytest.raises(NotApplicableError, match="alike"):
        require_telling(MODEL, SAMPLES[0], SAMPLES[1])
