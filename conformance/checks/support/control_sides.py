"""Binary data held against the control requests of a deployed model: one side, and a few datatypes, at a time.

The inputs of other datatypes travel as JSON, and each output is asked for alone, so that a server which errs in one
datatype fails for that. Where the control request itself has binary data, because JSON does not carry a tensor, nothing
is held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.expect.difference import difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import Blocked, NotApplicable, Unmet, blocked_where, holds
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

Array = NDArray[Any]
Turn = Callable[[Array], Array]

FEW = 4  # outputs that are asked for alone: some models have very many
ANY_DATATYPE = frozenset(DATATYPES)


def expect_read(
    target: Target,
    model: Model,
    tensors: Sequence[Tensor],
    misread: Sequence[Tensor],
    plain: Sequence[Tensor] | None = None,
    of: Collection[str] = ANY_DATATYPE,
) -> None:
    """Expect inputs of some datatypes right as binary data, as the answers of the model tell.

    Args:
        target: the server.
        model: a deployed one.
        tensors: all inputs.
        misread: what a server that errs takes them for.
        plain: inputs that it reads right nevertheless; None where there are none.
        of: datatypes of the inputs that travel as binary data.

    Raises:
        NotApplicable: JSON carries no such input, or both get the same answer.
        Blocked: plain inputs are wrong too, or those of other datatypes.
    """
    names = [tensor.name for tensor in tensors if tensor.datatype in of and tensor.name not in model.sends]
    if not names:
        raise NotApplicable(f"JSON carries no such input of {model.name}, so that nothing shows how it is read")
    expect_told(model, tensors, misread)
    with blocked_where(lambda: _is_wrong_anyway(target, model, tensors, plain, names), "other inputs are wrong, too"):
        _expect_right(target, model, tensors, names)


def other_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs other than `model.sample()`, of the same shapes."""
    return replace(model, salt=(model.salt + 1) % 256).sample()


def expect_told(model: Model, tensors: Sequence[Tensor], misread: Sequence[Tensor]) -> None:
    """Expect that a model tells its inputs from what a server that errs takes them for.

    Raises:
        NotApplicable: it answers both alike, so that a right answer would show nothing.
    """
    if not model.tells_apart(tensors, misread):
        raise NotApplicable(f"{model.name} answers inputs alike that are read right and wrong")


def _expect_right(target: Target, model: Model, tensors: Sequence[Tensor], names: Collection[str]) -> None:
    """Expect the right answer where the inputs of these names are binary data, and no others that JSON carries."""
    reply = target.infer(model.request(tensors, send={*names, *model.sends}, outputs=model.listed()))
    expect(reply).tensors(model.expected(tensors))


def _is_wrong_anyway(
    target: Target, model: Model, tensors: Sequence[Tensor], plain: Sequence[Tensor] | None, names: Collection[str]
) -> bool:
    """Say whether plain inputs are wrong as well, or those of other names."""
    others = [tensor.name for tensor in tensors if tensor.name not in (*names, *model.sends)]
    if others and not holds(lambda: _expect_right(target, model, tensors, others)):
        return True
    try:
        return plain is not None and not holds(lambda: _expect_right(target, model, plain, names))
    except NotApplicable:  # the model takes no such inputs
        return False


def expect_written(
    target: Target,
    model: Model,
    tensors: Sequence[Tensor],
    turn: Turn | None = None,
    of: Collection[str] = ANY_DATATYPE,
    free_of: Sequence[str] = (),
) -> None:
    """Expect outputs of some datatypes right as binary data.

    Args:
        target: the server.
        model: a deployed one.
        tensors: all inputs.
        turn: makes right elements of those that a server which errs writes, and wrong ones of right ones; None where
            any output that differs is meant.
        of: datatypes of the outputs.
        free_of: findings that no answer may show.

    Raises:
        NotApplicable: JSON carries no such output, or `turn` changes none.
        Blocked: an output is wrong, and not as `turn` has it.
    """
    for right in _outputs(model, tensors, turn, of):
        reply = ask_alone(target, model, tensors, right.name)
        try:
            expect(reply).free_of(*free_of).tensors([right])
        except Unmet as unmet:
            if turn is not None and not _is_turned(right, reply, turn):
                raise Blocked(f"{right.name} is wrong in another way", unmet) from None
            raise


def ask_alone(target: Target, model: Model, tensors: Sequence[Tensor], name: str) -> Reply:
    """Ask for one output as binary data, and for no other; the inputs travel as in a plain request."""
    return target.infer(model.request(tensors, send=model.sends, outputs=[Output(name, True)]))


def _outputs(model: Model, tensors: Sequence[Tensor], turn: Turn | None, of: Collection[str]) -> list[Tensor]:
    """Return a few right outputs that show what is judged."""
    rights = model.plain_outputs(tensors)
    found = [right for right in rights if right.datatype in of and right.name not in model.kept_binary]
    if not found:
        raise NotApplicable(f"JSON carries no such output of {model.name}, so that nothing shows what is right")
    told = [right for right in found if turn is None or not np.array_equal(turn(right.array), right.array)]
    if not told:
        raise NotApplicable(f"the outputs of {model.name} are the same, rightly written or not")
    return told[:FEW]


def _is_turned(right: Tensor, reply: Reply, turn: Turn) -> bool:
    output = reply.answer.output(right.name) if reply.succeeded else None
    if output is None or output.array is None or output.array.shape != right.shape:
        return False
    return difference(right, replace(output, array=turn(output.array)), reply.body) is None
