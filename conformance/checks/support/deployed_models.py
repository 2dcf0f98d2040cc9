"""Helpers for rows on a deployed model: the suite knows only its signature and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.wire.datatypes import INTEGERS
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

Names = tuple[str, ...]
MAX_DRAWS = 8  # sets of inputs that are tried until the model answers one differently


def require_json(model: Model) -> None:
    """Require that JSON can carry every input and output of a deployed model.

    Raises:
        NotApplicableError: JSON cannot represent every tensor of the deployed model. This function never raises for the
            model of a role.
    """
    if model.is_deployed and not model.is_json_capable:
        raise NotApplicableError(f"JSON cannot represent every tensor of {model.name}")


def require_json_outputs(model: Model) -> Names:
    """Return the names of the outputs that JSON can carry. Raises NotApplicableError: JSON can carry no output."""
    names = tuple(spec.name for spec in model.role.outputs if spec.name not in model.binary_outputs)
    if not names:
        raise NotApplicableError(f"JSON cannot represent any output of {model.name}")
    return names


def to_json(model: Model, tensor: Tensor) -> list[Any]:
    """Return the elements of an input as a JSON value.

    Raises NotApplicableError: JSON cannot represent the elements.
    """
    if model.is_deployed and tensor.name in model.binary_inputs:
        raise NotApplicableError(f"JSON cannot represent {tensor.name}")
    return tensor.to_json()


def require_no_lookup_table(model: Model) -> None:
    """Skip a deployed model that may use integers as table indices, since an invalid index can crash the model.

    Raises NotApplicableError: the only input of the model has an integer datatype.
    """
    inputs = model.role.inputs
    if model.is_deployed and len(inputs) == 1 and inputs[0].datatype in INTEGERS:
        raise NotApplicableError(f"{model.name} may use integers as table indices")


def list_half_binary_outputs(model: Model) -> list[RequestedOutput]:
    """Return all outputs; every other one, and each one that JSON cannot represent, is requested as binary data."""
    names = [spec.name for spec in model.role.outputs]
    return [RequestedOutput(name, k % 2 == 0 or name in model.binary_outputs) for k, name in enumerate(names)]


def find_output_sizes(model: Model, tensors: Sequence[Tensor]) -> Mapping[str, int]:
    """Return output name -> expected size in bytes; an empty mapping if the suite cannot predict the outputs."""
    try:
        return {tensor.name: tensor.size for tensor in model.expected(tensors)}
    except NotApplicableError:
        return {}
