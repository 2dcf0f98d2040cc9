"""Helpers for checks on generated tensors: Hypothesis drew them once, and every run sends the same tensors.

A row is blocked if plain elements in a plain shape fail as well. A failure shows the smallest tensor that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from conformance.checks.support.tensor_shrinking import get_plain_element, shrink
from conformance.expect.unmet import BlockedError, UnmetError, is_met
from conformance.roles.generated_tensors import ROLES, Sending, get_shape_pattern, load_tensors
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.transport.exchange import FailureKind
from conformance.wire.tensor import Tensor

Expectation = Callable[[Tensor], object]

# Roles whose tensors have several dimensions.
SEVERAL_DIMENSIONS = ("rank2", "rank3", "rank4", "rank2_bytes", "batching", "weighted_sum")


def make_generated_rows(sending: Sending, answers: Callable[[str], tuple[str, ...]]) -> list[Row]:
    """Return a row for each role that has generated tensors; `answers` maps a role to its requirements."""
    return [Row(role.replace("_", "-"), role=role, requirements=answers(role)) for role in ROLES[sending]]


def expect_generated(model: Model, sending: Sending, expectation: Expectation) -> None:
    """Expect every generated tensor of a model to meet an expectation.

    Raises:
        UnmetError: a tensor fails. The error belongs to the smallest tensor found that breaks the same requirement.
        BlockedError: a tensor of plain elements fails as well, or the failure is not reproducible.
    """
    for tensor in load_tensors(model.role, sending):
        try:
            expectation(tensor)
        except UnmetError as unmet:
            raise _make_smallest_failure(model, sending, tensor, unmet, expectation) from None


def _make_smallest_failure(
    model: Model, sending: Sending, tensor: Tensor, unmet: UnmetError, expectation: Expectation
) -> UnmetError | BlockedError:
    if not is_met(lambda: expectation(make_plain_tensor(model, sending))):
        return BlockedError(f"a tensor of plain {tensor.datatype} elements also fails", unmet)
    if unmet.reply is not None and unmet.reply.has_failed(FailureKind.TIMEOUT):
        return unmet

    def try_tensor(candidate: Tensor) -> UnmetError | None:
        try:
            expectation(candidate)
        except UnmetError as found:
            return found if found.requirement == unmet.requirement else None
        except BlockedError:
            pass
        return None

    again = try_tensor(tensor)
    if again is None:
        return BlockedError("the same tensor gets a correct answer when it is sent again", unmet)
    smallest = shrink(tensor, again, try_tensor, get_shape_pattern(model.role, sending))
    smallest.tensor = None  # a hint that it equals an earlier answer would mislead: the trials before it are alike
    return smallest


def make_plain_tensor(model: Model, sending: Sending) -> Tensor:
    """Return a tensor of plain elements, with size 3 in its last variable dimension and size 2 in the others."""
    spec, pattern = model.role.inputs[0], get_shape_pattern(model.role, sending)
    last = max((axis for axis, size in enumerate(pattern) if size < 0), default=None)
    shape = [size if size >= 0 else 3 if axis == last else 2 for axis, size in enumerate(pattern)]
    if model.role.batching:
        shape[0] = min(shape[0], 2)
    return model.tensor([get_plain_element(spec.datatype, index) for index in range(prod(shape))], shape)
