"""Inputs whose answer shows how the server read them: of a role with the property under test, of a deployed model.

A deployed model receives only inputs that it accepts, with the samples' elements or ordinary changes of them
(`changed_tensors`). A row does not apply if the model answers all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from conformance.checks.support.changed_tensors import are_different, halve_strings
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.corner_values import PALINDROMES
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_shape
from conformance.transport.any_target import AnyTarget
from conformance.wire.datatypes import DATATYPES, INTEGERS
from conformance.wire.tensor import Tensor

Change = Callable[[Sequence[Tensor]], Sequence[Tensor]]
InputsBuilder = Callable[[Model], Sequence[Tensor]]
# Returns the inputs as a faulty server reads them; None if no server can read them so.
MisreadInputs = Callable[[Sequence[Tensor]], Sequence[Tensor] | None]

LARGE_COUNT = 16_385  # elements of four bytes or more: above 64 KiB
MAX_DRAWS = 8  # sets of inputs that are tried until one shows what a row is about


def sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the sample inputs of a model."""
    return model.sample()


# --- tensors of a role ------------------------------------------------------------------------------------------------


def make_distinct_tensor(model: Model, shape: Sequence[int]) -> Tensor:
    """Return a tensor of distinct elements without whitespace bytes; integers read the same in either byte order."""
    count = prod(shape)
    if model.role.inputs[0].datatype == "BYTES":
        return model.tensor([f"{model.salt:03}-x" + "four" * k for k in range(count)], shape)
    unit = 0x0101 if model.role.inputs[0].datatype == "INT16" else 0x010100
    return model.tensor([(33 + model.salt % 32 + k) * unit for k in range(count)], shape)


def make_symmetric_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs that read the same in either byte order, and in row-major and column-major order.

    FP16 and BF16 are not supported.
    """
    return tuple(
        _make_symmetric_tensor(
            spec.name, spec.datatype, make_sample_shape(spec.shape, 2 if model.role.batching else None)
        )
        for spec in model.role.inputs
    )


def _make_symmetric_tensor(name: str, datatype: str, shape: tuple[int, ...]) -> Tensor:
    dtype = DATATYPES[datatype].dtype
    if datatype == "BYTES":
        several = np.array([b'q"\\', "é😀".encode(), b""], object)
    elif datatype == "BOOL":
        several = np.array([True, False, False])
    else:
        several = np.array(PALINDROMES[datatype], dtype=f"<u{dtype.itemsize}").view(dtype)
    return Tensor.from_values(name, datatype, np.resize(several[:1] if len(shape) > 1 else several, prod(shape)), shape)


# --- inputs of a deployed model ---------------------------------------------------------------------------------------


def make_other_inputs(model: Model) -> list[Tensor]:
    """Return inputs that differ from `model.sample()` but have the same shapes; strings also differ in length."""
    return halve_strings(replace(model, salt=(model.salt + 1) % 256).sample())


def make_large_inputs(model: Model, count: int = LARGE_COUNT) -> Sequence[Tensor]:
    """Return one-dimensional inputs of more than 64 KiB for a deployed model.

    Raises NotApplicableError: the model accepts no such inputs, or has an input of more than one dimension, which might
    make the request an expensive large batch.
    """
    if any(len(tensor.shape) != 1 for tensor in model.sample()):
        raise NotApplicableError(f"{model.name} has an input of more than one dimension")
    return model.build_salted_inputs(count, model.salt)


def make_empty_inputs(target: AnyTarget, model: Model, name: str = "") -> list[Tensor]:
    """Return inputs in which the input `name` has no elements; without a name, every input that can be empty.

    No document requires a model to accept such inputs.

    Raises NotApplicableError: the chosen inputs have a fixed size, or the model refuses such inputs in a plain request.
    """
    pairs = zip(model.sample(), model.build_salted_inputs(0, model.salt), strict=True)
    tensors = [empty if name in ("", own.name) else own for own, empty in pairs]
    if all(tensor.elements for tensor in tensors):
        raise NotApplicableError(f"{model.name} accepts only inputs of a fixed size")
    if not target.infer(model.request(tensors, send="json", outputs=model.build_outputs_member())).succeeded:
        raise NotApplicableError(f"{model.name} accepts no inputs without elements")
    return tensors


def require_several_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return the sample inputs of a model, and require at least two.

    Raises NotApplicableError: the suite sends one input to this model; if the model has more inputs, they are optional.
    """
    tensors = model.sample()
    if len(tensors) < 2:
        raise NotApplicableError(f"the suite sends only one input to {model.name}")
    return tensors


def require_answer(model: Model, tensors: Sequence[Tensor]) -> None:
    """Require that a model answers these inputs, and that the suite can read the answer.

    Raises NotApplicableError: the model refuses the inputs, or JSON cannot represent the answer.
    """
    try:
        model.find_outputs(tensors)
    except BlockedError as error:
        raise NotApplicableError(f"{model.name} gives no readable answer to the inputs of this row: {error}") from None


# --- inputs that show how they were read ------------------------------------------------------------------------------


def choose_revealing_inputs(model: Model, misread: MisreadInputs | None = None) -> Sequence[Tensor]:
    """Return inputs that get another answer if a server misreads them; the sample inputs of a role always do.

    `misread`: see `MisreadInputs`; by default, the server reads other sample inputs of the model.

    Raises:
        NotApplicableError: for all sets of inputs that were tried, the model gives the same answer to misread inputs.
    """
    others = replace(model, salt=model.salt + 97).sample() if misread is None else None
    for tensors in model.draw_several():
        read = misread(tensors) if misread else others
        if read is None or model.can_distinguish(tensors, read):
            return tensors
    raise NotApplicableError(f"{model.name} gives the same answer whether its inputs are read correctly or wrongly")


def require_distinguished_inputs(model: Model, tensors: Sequence[Tensor], misread: Sequence[Tensor]) -> None:
    """Require that the model answers the inputs and the misread inputs differently.

    Raises NotApplicableError: the model gives the same answer to both, so a correct answer would prove nothing.
    """
    if not model.can_distinguish(tensors, misread):
        raise NotApplicableError(f"{model.name} gives the same answer whether its inputs are read correctly or wrongly")


def require_distinct_answers(model: Model, one: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Require that the model answers `one` and at least one of `others` differently.

    Raises NotApplicableError: the model gives the same answer to all, so an answer cannot be matched to its request.
    """
    if not any(model.can_distinguish(one, other) for other in others):
        raise NotApplicableError(f"{model.name} gives the same answer to different inputs")


def choose_inputs_of_distinct_outputs(model: Model) -> Sequence[Tensor]:
    """Return sample inputs; for a deployed model, inputs for which not all outputs have the same bytes.

    Raises NotApplicableError: for all sets of inputs that were tried, all outputs have the same bytes.
    """
    for tensors in model.draw_several():
        if not model.is_deployed or len({bytes(output.to_bytes()) for output in model.find_outputs(tensors)}) > 1:
            return tensors
    raise NotApplicableError(f"{model.name} has equal outputs for all drawn inputs")


def find_distinct_model(model: Model) -> Model:
    """Return the deployed model with sample inputs that it answers differently from those of `model`.

    Raises NotApplicableError: the model gives the same answer to all sets of inputs that were tried.
    """
    for step in range(1, MAX_DRAWS):
        other = replace(model, salt=(model.salt + step) % 256)
        if model.can_distinguish(model.sample(), other.sample()):
            return other
    raise NotApplicableError(f"{model.name} gives the same answer to different inputs")


def find_model_with_alterable_inputs(model: Model, change: Change, length: int | None = None) -> Model:
    """Return a copy of the model whose salt gives sample inputs that `change` alters; else the model itself."""
    models = [replace(model, salt=(model.salt + increment) % 256) for increment in range(MAX_DRAWS)]
    draws = (
        (drawn, drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)) for drawn in models
    )
    return next((drawn for drawn, tensors in draws if are_different(tensors, change(tensors))), model)


def find_alterable_inputs(model: Model, change: Change, length: int | None = None) -> Sequence[Tensor]:
    """Return inputs that `change` alters; several salts are tried, and the first one is used if none gives such inputs.

    `change`: returns changed inputs.
    `length`: the number of elements or batch items; None for the sample inputs of the model.
    """
    drawn = find_model_with_alterable_inputs(model, change, length)
    return drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)


# --- inputs in another order ------------------------------------------------------------------------------------------


def reassign_by_position(declared: Sequence[Tensor], sent: Sequence[Tensor]) -> list[Tensor] | None:
    """Return the inputs as read by a server that assigns the sent tensors to the declared inputs by position.

    Returns None if datatypes or shapes differ, or if an integer is outside the range of the declared input, which can
    crash a model.
    """
    pairs = list(zip(declared, sent, strict=True))
    if not all((a.datatype, a.shape) == (b.datatype, b.shape) and _is_within_range(b, a) for a, b in pairs):
        return None
    return [Tensor(own.name, own.datatype, own.shape, other.array) for own, other in pairs]


def _is_within_range(tensor: Tensor, other: Tensor) -> bool:
    """Say whether the integers of a tensor lie within the range of another tensor; True for other datatypes."""
    if tensor.datatype not in INTEGERS or not other.elements:
        return True
    return bool(other.array.min() <= tensor.array.min() and tensor.array.max() <= other.array.max())


def reverse_similar_inputs(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return inputs as read by a server that reverses the order of inputs with equal datatype and shape.

    An integer input keeps its elements if it would get integers that it did not contain: such integers can crash a
    server.
    """
    read = []
    for tensor in tensors:
        similar = [one for one in tensors if (one.datatype, one.shape) == (tensor.datatype, tensor.shape)]
        other = similar[::-1][[one is tensor for one in similar].index(True)]
        is_safe = tensor.datatype not in INTEGERS or set(np.unique(other.array)) <= set(np.unique(tensor.array))
        read.append(replace(tensor, array=other.array) if is_safe else tensor)
    return read
