"""Inputs of which an answer shows whether they were read right: what a deployed model takes may be answered all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.wire.tensor import Tensor

Misread = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def draw_telling(model: Model, misread: Misread) -> Sequence[Tensor]:
    """Return inputs that the model answers otherwise than it answers them misread; of a role its samples.

    Raises:
        NotApplicable: it answers both alike, whatever is drawn.
    """
    for tensors in model.draw_several():
        if model.tells_apart(tensors, misread(tensors)):
            return tensors
    raise NotApplicableError(f"{model.name} answers its inputs as it would answer them misread")


def require_telling(model: Model, one: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Expect that the model answers some of these inputs otherwise than the first.

    Raises:
        NotApplicable: it answers all alike, so that an answer does not show whose it is.
    """
    if not any(model.tells_apart(one, other) for other in others):
        raise NotApplicableError(f"{model.name} answers inputs of this kind alike")
