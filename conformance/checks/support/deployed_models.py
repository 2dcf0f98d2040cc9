"""Helpers for rows on a deployed model: the suite knows only its signature and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.datatypes import INTEGERS
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

Names = tuple[str, ...]
MAX_DRAWS = 8  # sets of inputs that are tried until the model answers one differently

NO_BINARY_REQUEST = "the server answers no request with binary data"


def require_json(model: Model) -> None:
    """Require that JSON can carry every input and output of a deployed model.

    Raises:
        NotApplicable: JSON cannot represent every tensor of the deployed model. This function never raises for the
            model of a role.
    """
    if model.is_own_oracle and not model.is_json_capable:
        raise NotApplicableError(f"JSON cannot represent every tensor of {model.name}")


def require_json_outputs(model: Model) -> Names:
    """Return the names of the outputs that JSON can carry.

    Raises:
        NotApplicable: JSON can carry no output.
    """
    names = tuple(spec.name for spec in model.role.outputs if spec.name not in model.binary_outputs)
    if not names:
        raise NotApplicableError(f"JSON cannot represent any output of {model.name}")
    return names


def require_several_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return the sample inputs of a model, and require at least two.

    Raises:
        NotApplicable: the suite sends one input to this model; if the model has more inputs, they are optional.
    """
    tensors = model.sample()
    if len(tensors) < 2:
        raise NotApplicableError(f"the suite sends only one input to {model.name}")
    return tensors


def to_json(model: Model, tensor: Tensor) -> list[Any]:
    """Return the elements of an input as a JSON value.

    Raises:
        NotApplicable: JSON cannot represent the elements.
    """
    if model.is_own_oracle and tensor.name in model.binary_inputs:
        raise NotApplicableError(f"JSON cannot represent {tensor.name}")
    return tensor.to_json()


def require_no_lookup_table(model: Model) -> None:
    """Skip a deployed model that may use integers as table indices, since an invalid index can crash the model.

    Raises:
        NotApplicable: the only input of the model has an integer datatype.
    """
    inputs = model.role.inputs
    if model.is_own_oracle and len(inputs) == 1 and inputs[0].datatype in INTEGERS:
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


@contextmanager
def mark_not_applicable_if(is_undecided: Callable[[], bool], reason: str) -> Iterator[None]:
    """Turn an unmet or blocked expectation in the `with` block into NotApplicable if `is_undecided` returns True.

    Raises:
        NotApplicable: the expectation failed, and `is_undecided` says that the correct result is unknown.
    """
    try:
        yield
    except (UnmetError, BlockedError):
        if is_undecided():
            raise NotApplicableError(reason) from None
        raise


def is_binary_refused(target: Target, model: Model) -> bool:
    """Say whether a deployed model refuses a plain binary request; False for the model of a role."""
    return model.is_own_oracle and not target.infer(model.request(outputs=model.build_outputs_member())).succeeded


def is_binary_misread(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether a deployed model misreads these inputs as binary data; False for the model of a role."""
    return model.is_own_oracle and not _is_read_as_binary(target, model, tensors)


def is_right_in_name_order(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the server reads binary inputs correctly if they are sorted by name; False if already sorted."""
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return [t.name for t in ordered] != [t.name for t in tensors] and _is_read_as_binary(target, model, ordered)


def _is_read_as_binary(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the server answers correctly if all inputs are binary data."""
    request = model.request(tensors, outputs=model.build_outputs_member())
    return is_met(lambda: expect(target.infer(request)).tensors(model.expected(tensors)))


def is_input_read_alone(target: Target, model: Model, tensors: Sequence[Tensor], name: str) -> bool:
    """Say whether the server answers correctly if only the input `name` is binary data.

    Inputs that JSON cannot represent are always binary data.
    """
    request = model.request(tensors, send={name, *model.binary_inputs}, outputs=model.build_outputs_member())
    return is_met(lambda: expect(target.infer(request)).tensors(model.expected(tensors)))


def is_output_written_alone(target: Target, model: Model, tensors: Sequence[Tensor], output: Tensor) -> bool:
    """Say whether the server returns the correct output if only this output is requested, as binary data."""
    request = model.request(tensors, send=model.binary_inputs, outputs=[RequestedOutput(output.name, True)])
    return is_met(lambda: expect(target.infer(request)).tensors([output]))


# --- inputs that show how they were read ------------------------------------------------------------------------------

MisreadInputs = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def draw_distinguishing_inputs(model: Model, misread: MisreadInputs) -> Sequence[Tensor]:
    """Return inputs that get another answer if a server misreads them as `misread` describes.

    Raises:
        NotApplicable: for all sets of inputs that were tried, the model gives the same answer to the misread inputs.
    """
    for tensors in model.draw_several():
        if model.can_distinguish(tensors, misread(tensors)):
            return tensors
    raise NotApplicableError(f"{model.name} gives the same answer to its inputs and to misread inputs")


def find_distinct_model(model: Model) -> Model:
    """Return the deployed model with sample inputs that it answers differently from those of `model`.

    Raises:
        NotApplicable: the model gives the same answer to all sets of inputs that were tried.
    """
    for step in range(1, MAX_DRAWS):
        other = replace(model, salt=(model.salt + step) % 256)
        if model.can_distinguish(model.sample(), other.sample()):
            return other
    raise NotApplicableError(f"{model.name} gives the same answer to different inputs")


def require_distinct_answers(model: Model, one: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Require that the model answers `one` and at least one of `others` differently.

    Raises:
        NotApplicable: the model gives the same answer to all, so an answer cannot be matched to its request.
    """
    if not any(model.can_distinguish(one, other) for other in others):
        raise NotApplicableError(f"{model.name} gives the same answer to different inputs")


# --- the same request once more ---------------------------------------------------------------------------------------

ISOLATION = "OIP-ISOLATION"


def attribute_to_isolation(target: Peer, unmet: UnmetError, expect_correct: Callable[[Reply], object]) -> None:
    """Attribute a wrong HTTP answer to OIP-ISOLATION if the server answers the repeated request correctly.

    Args:
        target: receives the request again, on a new connection.
        unmet: the failure of the first answer; its requirement is changed.
        expect_correct: raises `UnmetError` if an answer is wrong.
    """
    reply = unmet.reply
    if reply is None or not reply.succeeded or reply.is_over_grpc:
        return
    if is_met(lambda: expect_correct(target.send(reply.exchange.message, fresh=True))):
        unmet.requirement = ISOLATION


def expect_or_attribute_to_isolation(target: Peer, reply: Reply, expect_correct: Callable[[Reply], object]) -> None:
    """Expect a correct answer; report OIP-ISOLATION if only the repeated request gets a correct answer."""
    try:
        expect_correct(reply)
    except UnmetError as unmet:
        attribute_to_isolation(target, unmet, expect_correct)
        raise
