"""Make inputs without elements for deployed models; no document requires a model to accept such inputs."""

from __future__ import annotations

from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def make_empty_inputs(target: Target, model: Model, name: str = "") -> list[Tensor]:
    """Return inputs in which the input `name` has no elements; without a name, every input that can be empty.

    Raises:
        NotApplicable: the chosen inputs have a fixed size, or the model refuses such inputs in a plain request.
    """
    pairs = zip(model.sample(), model.build_salted_inputs(0, model.salt), strict=True)
    tensors = [empty if name in ("", own.name) else own for own, empty in pairs]
    if all(tensor.elements for tensor in tensors):
        raise NotApplicableError(f"{model.name} accepts only inputs of a fixed size")
    if not target.infer(
        model.request(tensors, send=model.binary_inputs, outputs=model.build_outputs_member())
    ).succeeded:
        raise NotApplicableError(f"{model.name} accepts no inputs without elements")
    return tensors
