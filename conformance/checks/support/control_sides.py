"""Compare binary data with control requests to a deployed model, one direction and a few datatypes at a time.

A control request sends the same tensors to the deployed model as JSON. The inputs of other datatypes are always sent as
JSON, and each output is requested alone, so that a server with a fault in one datatype fails only for that datatype.
Tensors that JSON cannot carry are binary data in the control request as well, so they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.checks.support.changed_tensors import are_different, halve_texts
from conformance.discovery.control_oracle import find_differing_outputs
from conformance.discovery.deployed_model import describe_nondeterminism
from conformance.expect.difference import find_difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
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
    of: Collection[str] = ANY_DATATYPE,
) -> None:
    """Expect a deployed model to answer correctly if its inputs of some datatypes are binary data.

    Args:
        target: the server.
        model: a deployed model.
        tensors: all inputs.
        misread: the inputs as a server with the fault under test reads them.
        plain: inputs that a server with that fault still reads correctly; None if there are no such inputs.
        of: datatypes of the inputs that travel as binary data.

    Raises:
        NotApplicable: JSON carries no input of these datatypes, or the model answers `tensors` and `misread` alike.
        Blocked: the answers to plain inputs, or to inputs of other datatypes, are wrong as well.
    """
    names = [tensor.name for tensor in tensors if tensor.datatype in of and tensor.name not in model.binary_inputs]
    if not names:
        raise NotApplicableError(f"JSON carries no such input of {model.name}, so that nothing shows how it is read")
    require_distinguished_inputs(model, tensors, misread)
    with block_if(lambda: _is_wrong_anyway(target, model, tensors, plain, names), "other inputs are also wrong"):
        _expect_correct_outputs(target, model, tensors, names)


def require_answer(model: Model, tensors: Sequence[Tensor]) -> None:
    """Require that a deployed model gives a readable answer to these inputs.

    Raises:
        NotApplicable: the model refuses the inputs, or JSON cannot carry the answer.
    """
    try:
        model.find_outputs(tensors)
    except BlockedError as error:
        raise NotApplicableError(f"{model.name} gives no answer to such inputs that can be read: {error}") from None


def make_large_inputs(model: Model, count: int = LARGE_COUNT) -> Sequence[Tensor]:
    """Return one-dimensional inputs of a deployed model of more than 64 KiB.

    Raises:
        NotApplicable: the model accepts no such inputs, or has an input of more than one dimension: many batch items
            may be expensive.
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
    return halve_texts(replace(model, salt=(model.salt + 1) % 256).sample())


def find_draw(model: Model, change: Change, length: int | None = None) -> Model:
    """Return the model with a salt for which `change` alters its sample inputs; see `find_inputs`."""
    models = [replace(model, salt=(model.salt + step) % 256) for step in range(MAX_DRAWS)]
    draws = (
        (drawn, drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)) for drawn in models
    )
    return next((drawn for drawn, tensors in draws if are_different(tensors, change(tensors))), model)


def find_inputs(model: Model, change: Change, length: int | None = None) -> Sequence[Tensor]:
    """Return the first of a few draws of inputs that `change` alters; the first draw if `change` alters none.

    Args:
        model: a deployed model.
        change: the change that has to alter the inputs.
        length: number of elements or items; None leaves it to the model.
    """
    drawn = find_draw(model, change, length)
    return drawn.sample() if length is None else drawn.build_salted_inputs(length, drawn.salt)


def require_distinguished_inputs(model: Model, tensors: Sequence[Tensor], misread: Sequence[Tensor]) -> None:
    """Require that the model answers the inputs and the misread inputs differently.

    Raises:
        NotApplicable: the model answers both alike, so a correct answer would prove nothing.
    """
    if not model.can_distinguish(tensors, misread):
        raise NotApplicableError(f"{model.name} answers inputs alike that are read right and wrong")


def _expect_correct_outputs(target: Target, model: Model, tensors: Sequence[Tensor], names: Collection[str]) -> None:
    """Expect the correct answer if the named inputs, and inputs that JSON cannot carry, are binary data."""
    rights = model.expected(tensors)
    reply = target.infer(
        model.request(tensors, send={*names, *model.binary_inputs}, outputs=model.build_outputs_member())
    )
    with excuse_nondeterminism(target, rights):
        expect(reply).tensors(rights)


@contextmanager
def excuse_nondeterminism(target: Target, rights: Sequence[Tensor]) -> Iterator[None]:
    """Excuse an unmet expectation in the `with` block if the repeated request gets a different answer.

    Use this only for claims about a single request: earlier or concurrent requests might cause the difference.

    Raises:
        NotApplicable: the expectation is unmet and the repeated answer differs, so the model is not deterministic.
    """
    try:
        yield
    except UnmetError as unmet:
        names = [right.name for right in rights]
        if unmet.reply is not None and unmet.reply.succeeded:
            again = target.send(unmet.reply.exchange.message, fresh=True)
            if again.succeeded and (found := find_differing_outputs(unmet.reply, again, names)):
                raise NotApplicableError(describe_nondeterminism(found)) from None
        raise


def _is_wrong_anyway(
    target: Target, model: Model, tensors: Sequence[Tensor], plain: Sequence[Tensor] | None, names: Collection[str]
) -> bool:
    """Say whether the answer is also wrong for plain inputs, or with only the other inputs as binary data."""
    others = [tensor.name for tensor in tensors if tensor.name not in (*names, *model.binary_inputs)]
    if others and not is_met(lambda: _expect_correct_outputs(target, model, tensors, others)):
        return True
    return plain is not None and is_wrong(lambda: _expect_correct_outputs(target, model, plain, names))


def is_wrong(expectation: Callable[[], object]) -> bool:
    """Say whether an expectation is unmet; False if the model does not accept the inputs."""
    try:
        return not is_met(expectation)
    except NotApplicableError:
        return False


def expect_written(
    target: Target,
    model: Model,
    tensors: Sequence[Tensor],
    apply_fault: ArrayChange | None = None,
    of: Collection[str] = ANY_DATATYPE,
    free_of: Sequence[str] = (),
) -> None:
    """Expect a deployed model to return correct outputs of some datatypes as binary data.

    Args:
        target: the server.
        model: a deployed model.
        tensors: all inputs.
        apply_fault: applies the fault under test to elements, or undoes it; None if any difference counts as the fault.
        of: datatypes of the outputs.
        free_of: kinds of findings that no answer may have.

    Raises:
        NotApplicable: JSON carries no output of these datatypes, or `apply_fault` changes no output.
        Blocked: an output is wrong, but for another reason than the fault that `apply_fault` applies.
    """
    for right in _find_changed_outputs(model, tensors, apply_fault, of):
        reply = ask_alone(target, model, tensors, right.name)
        try:
            with excuse_nondeterminism(target, [right]):
                expect(reply).free_of(*free_of).tensors([right])
        except UnmetError as unmet:
            if apply_fault is not None and not _is_wrong_by_fault(right, reply, apply_fault):
                raise BlockedError(f"{right.name} is wrong in another way", unmet) from None
            raise


def ask_alone(target: Target, model: Model, tensors: Sequence[Tensor], name: str) -> Reply:
    """Request a single output as binary data; the inputs travel as in a plain request."""
    return target.infer(model.request(tensors, send=model.binary_inputs, outputs=[RequestedOutput(name, True)]))


def _find_changed_outputs(
    model: Model, tensors: Sequence[Tensor], apply_fault: ArrayChange | None, of: Collection[str]
) -> list[Tensor]:
    """Return up to `MAX_OUTPUTS` expected outputs of these datatypes that `apply_fault` changes."""
    rights = model.find_outputs(tensors)
    found = [right for right in rights if right.datatype in of and right.name not in model.binary_outputs]
    if not found:
        raise NotApplicableError(f"JSON carries no such output of {model.name}, so that nothing shows what is right")
    changed = [
        right for right in found if apply_fault is None or not np.array_equal(apply_fault(right.array), right.array)
    ]
    if not changed:
        raise NotApplicableError(f"the outputs of {model.name} are the same, rightly written or not")
    return changed[:MAX_OUTPUTS]


def _is_wrong_by_fault(right: Tensor, reply: Reply, apply_fault: ArrayChange) -> bool:
    output = reply.answer.output(right.name) if reply.succeeded else None
    if output is None or output.array is None or output.array.shape != right.shape:
        return False
    return find_difference(right, replace(output, array=apply_fault(output.array)), reply.body) is None
