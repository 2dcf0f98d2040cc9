"""Tensors that can be told from those of other requests, and how a server declines what is too much for it."""

from __future__ import annotations

from math import prod

from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.roles.sample_values import sample_tensor
from conformance.wire.tensor import Tensor

# Statuses of a server that has too much to do, or takes no large bodies; it keeps requests apart nevertheless.
DECLINED = (413, 429, 503)


def salted_tensors(model: Model, length: int, salt: int) -> list[Tensor]:
    """Return inputs of so many elements, or items for a batching model; other ones for each salt."""
    return [
        _tensor(spec, (length, *spec.shape) if model.role.batching else (length,), salt) for spec in model.role.inputs
    ]


def _tensor(spec: TensorSpec, shape: tuple[int, ...], salt: int) -> Tensor:
    if spec.datatype == "BYTES":  # the samples grow with every element, which a long tensor cannot afford
        return Tensor.of(spec.name, spec.datatype, [f"{salt}:{k}" for k in range(prod(shape))], shape)
    return sample_tensor(spec.name, spec.datatype, shape, (salt * 7) % 256)
