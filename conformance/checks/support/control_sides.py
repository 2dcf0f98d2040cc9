"""Judge binary data of a deployed model against control requests, one direction and a few datatypes at a time.

A control request sends the same tensors to the deployed model as JSON. The inputs of other datatypes are always sent as
JSON, and each output is requested alone, so that a server with a fault in one datatype fails only for that datatype.
Tensors that JSON cannot represent are binary data in the control request as well, so they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from conformance.checks.support.changed_tensors import are_different, halve_strings
from conformance.expect.difference import are_distinct, find_difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

Array = NDArray[Any]
ArrayChange = Callable[[Array], Array]
Change = Callable[[Sequence[Tensor]], Sequence[Tensor]]

LARGE_COUNT = 16_385  # elements of four bytes or more: above 64 KiB
MAX_DRAWS = 8  # draws of inputs, until `change` alters one
MAX_OUTPUTS = 4  # outputs that are requested one by one: some models have very many
ANY_DATATYPE = frozenset(DATATYPES)


def expect_read(
    target: Target,
    model: Model,
    tensors: Sequence[Tensor],
    misread: Sequence[Tensor],
    plain: Sequence[Tensor] | None = None,
    datatypes: Collection[str] = ANY_DATATYPE,
) -> None:
    """Expect a deployed model to answer correctly if its inputs of some datatypes are binary data.

    Args:
        target: the server.
        model: a deployed model.
        tensors: all inputs.
        misread: the inputs as a server with the fault under test reads them.
        plain: inputs that a server with that fault still reads correctly; None if there are no such inputs.
        datatypes: the datatypes of the inputs that are sent as binary data.

    Raises:
        NotApplicable: JSON carries no input of these datatypes, or the model gives the same answer to `tensors` and
            `misread`.
        Blocked: the answer to `plain` is wrong as well, or the answer is wrong if only inputs of other datatypes are
            binary data.
    """
    names = [
        tensor.name for tensor in tensors if tensor.datatype in datatypes and tensor.name not in model.binary_inputs
    ]
    if not names:
        raise NotApplicableError(
            f"no control request is possible: JSON cannot represent the inputs of {model.name} with a tested datatype"
        )
    require_distinguished_inputs(model, tensors, misread)
    with block_if(
        lambda: _are_other_inputs_wrong(target, model, tensors, plain, names),
        "the server also misreads inputs without the property under test",
    ):
        _expect_correct_outputs(target, model, tensors, names)


def require_answer(model: Model, tensors: Sequence[Tensor]) -> None:
    """Require that a deployed model answers these inputs, and that the suite can read the answer.

    Raises:
        NotApplicable: the model refuses the inputs, or JSON cannot represent the answer.
    """
    try:
        model.find_outputs(tensors)
    except BlockedError as error:
        raise NotApplicableError(f"{model.name} gives no readable answer to the inputs of this row: {error}") from None


def make_large_inputs(model: Model, count: int = LARGE_COUNT) -> Sequence[Tensor]:
    """Return one-dimensional inputs of more than 64 KiB for a deployed model.

    Raises:
        NotApplicable: the model accepts no such inputs, or has an input of more than one dimension, which might make
            the request an expensive large batch.
    """
    if any(len(tensor.shape) != 1 for tensor in model.sample()):
        raise NotApplicableError(f"{model.name} has an input of more than one dimension")
    return model.build_salted_inputs(count, model.salt)


def is_read_right(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the server reads the inputs correctly if all are binary data; False if the model rejects them."""
    try:
        return is_met(lambda: _expect_correct_outputs(target, model, tensors, [tensor.name for tensor in tensors]))
    except NotApplicableError:
        return False


def make_other_inputs(model: Model) -> list[Tensor]:
    """Return inputs that differ from `model.sample()` but have the same shapes; strings also differ in length."""
    return halve_strings(replace(model, salt=(model.salt + 1) % 256).sample())


def find_model_with_alterable_inputs(model: Model, change: Change, length: int | None = None) -> Model:
    """Return a copy of the model whose salt gives sample inputs that `change` alters; else the model itself."""
    models = [replace(model, salt=(model.salt + increment) % 256) for increment in range(MAX_DRAWS)]
    draws = (
        (drawn, drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)) for drawn in models
    )
    return next((drawn for drawn, tensors in draws if are_different(tensors, change(tensors))), model)


def find_alterable_inputs(model: Model, change: Change, length: int | None = None) -> Sequence[Tensor]:
    """Return inputs that `change` alters; several salts are tried, and the first one is used if none gives such inputs.

    Args:
        model: a deployed model.
        change: returns changed inputs.
        length: the number of elements or batch items; None for the sample inputs of the model.
    """
    drawn = find_model_with_alterable_inputs(model, change, length)
    return drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)


def require_distinguished_inputs(model: Model, tensors: Sequence[Tensor], misread: Sequence[Tensor]) -> None:
    """Require that the model answers the inputs and the misread inputs differently.

    Raises:
        NotApplicable: the model gives the same answer to both, so a correct answer would prove nothing.
    """
    if not model.can_distinguish(tensors, misread):
        raise NotApplicableError(f"{model.name} gives the same answer whether its inputs are read correctly or wrongly")


def _expect_correct_outputs(target: Target, model: Model, tensors: Sequence[Tensor], names: Collection[str]) -> None:
    """Send the named inputs, and those that JSON cannot represent, as binary data; expect the correct answer."""
    expected = model.expected(tensors)
    reply = target.infer(
        model.request(tensors, send={*names, *model.binary_inputs}, outputs=model.build_outputs_member())
    )
    expect(reply).tensors(expected)


def _are_other_inputs_wrong(
    target: Target, model: Model, tensors: Sequence[Tensor], plain: Sequence[Tensor] | None, names: Collection[str]
) -> bool:
    """Say whether the answer to `plain` is wrong, or the answer if only inputs outside `names` are binary data."""
    others = [tensor.name for tensor in tensors if tensor.name not in (*names, *model.binary_inputs)]
    if others and not is_met(lambda: _expect_correct_outputs(target, model, tensors, others)):
        return True
    return plain is not None and is_expectation_unmet(lambda: _expect_correct_outputs(target, model, plain, names))


def is_expectation_unmet(expectation: Callable[[], object]) -> bool:
    """Say whether an expectation is unmet; return False if the model does not accept the inputs."""
    try:
        return not is_met(expectation)
    except NotApplicableError:
        return False


def expect_written(
    target: Target,
    model: Model,
    tensors: Sequence[Tensor],
    apply_fault: ArrayChange | None = None,
    datatypes: Collection[str] = ANY_DATATYPE,
    free_of: Sequence[str] = (),
) -> None:
    """Expect a deployed model to return correct outputs of some datatypes as binary data.

    Args:
        target: the server.
        model: a deployed model.
        tensors: all inputs.
        apply_fault: changes elements as the fault under test does, or undoes this change; None if any difference counts
            as the fault.
        datatypes: the datatypes of the outputs that are requested as binary data.
        free_of: kinds of faults that no answer may have: keys of `wire.finding.KINDS`.

    Raises:
        NotApplicable: JSON carries no output of these datatypes, or `apply_fault` changes no output.
        Blocked: an output is wrong, but not in the way that `apply_fault` describes.
    """
    for right in _find_changed_outputs(model, tensors, apply_fault, datatypes):
        reply = request_single_output(target, model, tensors, right.name)
        try:
            expect(reply).free_of(*free_of).tensors([right])
        except UnmetError as unmet:
            if apply_fault is not None and not _is_wrong_as_described(right, reply, apply_fault):
                raise BlockedError(
                    f"{right.name} is wrong for another reason than the fault under test", unmet
                ) from None
            raise


def request_single_output(target: Peer, model: Model, tensors: Sequence[Tensor], name: str) -> Reply:
    """Request a single output as binary data; the inputs are JSON if JSON can carry them."""
    return target.infer(model.request(tensors, send=model.binary_inputs, outputs=[RequestedOutput(name, True)]))


def _find_changed_outputs(
    model: Model, tensors: Sequence[Tensor], apply_fault: ArrayChange | None, datatypes: Collection[str]
) -> list[Tensor]:
    """Return up to `MAX_OUTPUTS` expected outputs of these datatypes that `apply_fault` changes."""
    expected = model.find_outputs(tensors)
    found = [right for right in expected if right.datatype in datatypes and right.name not in model.binary_outputs]
    if not found:
        raise NotApplicableError(
            f"no control request is possible: JSON cannot represent the outputs of {model.name} with a tested datatype"
        )
    changed = [
        right
        for right in found
        if apply_fault is None or are_distinct(right, replace(right, array=apply_fault(right.array)))
    ]
    if not changed:
        raise NotApplicableError(f"the outputs of {model.name} are the same with and without the fault under test")
    return changed[:MAX_OUTPUTS]


def _is_wrong_as_described(right: Tensor, reply: Reply, apply_fault: ArrayChange) -> bool:
    output = reply.answer.output(right.name) if reply.succeeded else None
    if output is None or output.array is None or output.array.shape != right.shape:
        return False
    return find_difference(right, replace(output, array=apply_fault(output.array)), reply.body) is None
