"""What relations share: answers held against the plain answer of a deployed model, and when that says nothing.

A relation fails only where the server gave two answers to one question. So an output that differs between two equal
requests is left out, and before anything is said to differ, the plain request is sent once more. Floating-point
elements may be off by as much as JSON leaves open everywhere: a server that computes requests together, or on several
processors, is not exact to the last bit and yet right.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from conformance.expect.expectation import expect
from conformance.expect.unmet import Blocked, NotApplicable, Unmet, holds
from conformance.survey.deployed import Deployed, as_tensor
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Output
from conformance.wire.tensor import Tensor

Names = tuple[str, ...]

# How many outputs are asked for alone, or classified: some models have very many.
FEW = 4


def expect_same(
    target: Target,
    model: Deployed,
    reply: Reply,
    requirement: str | None = None,
    names: Sequence[str] | None = None,
    right: Reply | None = None,
) -> None:
    """Expect the outputs, or those of these names, as the plain answer has them, or as `right` does.

    Raises:
        Unmet: one differs.
        NotApplicable: the model is not deterministic.
        Blocked: the plain answer cannot be read.
    """
    compared = model.steady(names)
    tensors = [model.reference(target, name) for name in compared] if right is None else tensors_of(right, compared)
    try:
        expect(reply, requirement).tensors(tensors, through_json=True)
    except Unmet:
        model.require_steady(target, compared, reply, *([right] if right else []))
        raise


def tensors_of(reply: Reply, names: Sequence[str]) -> list[Tensor]:
    """Return those of the named outputs that an answer has, and that can be read."""
    outputs = reply.answer.outputs if reply.succeeded else ()
    return [tensor for output in outputs if output.name in names and (tensor := as_tensor(output))]


def is_same(target: Target, model: Deployed, reply: Reply, names: Sequence[str] | None = None) -> bool:
    """Say whether `expect_same` is met."""
    return holds(lambda: expect_same(target, model, reply, names=names))


# --- forms --------------------------------------------------------------------------------------------------------


def expect_json_answers(model: Deployed) -> None:
    """Expect that the model answers in JSON.

    Raises:
        Blocked: it does not.
    """
    if model.json_trouble:
        raise Blocked(f"{model.name} answers no plain JSON request: {model.json_trouble}")


def expect_json_capable_outputs(model: Deployed) -> Names:
    """Return the outputs that have a JSON form.

    Raises:
        NotApplicable: there are none.
        Blocked: the model does not answer in JSON.
    """
    expect_json_answers(model)
    if not model.json_capable:
        raise NotApplicable("JSON carries no output")
    return model.json_capable


def form(model: Deployed, binary: Sequence[str]) -> list[Output]:
    """Return all outputs as a request lists them: these as binary data, and the others as JSON, as far as it goes."""
    return [Output(name, True if name in (*binary, *model.kept_binary) else ABSENT) for name in model.outputs]


# --- choices ------------------------------------------------------------------------------------------------------


def several(names: Sequence[str], kind: str, json_capable: Sequence[str] | None = None) -> Names:
    """Return the names, or those that JSON carries.

    Raises:
        NotApplicable: there are not at least two.
    """
    if len(names) < 2:
        raise NotApplicable(f"there is one {kind}")
    if json_capable is not None and len(json_capable) < 2:
        raise NotApplicable(f"JSON does not carry more than one {kind}")
    return tuple(names if json_capable is None else json_capable)


def orders(names: Names) -> list[Names]:
    """Return other orders of the names: every one of up to three, and a few of more."""
    if len(names) <= 3:
        return list(permutations(names))[1:]
    return [names[::-1], (*names[1:], names[0]), (names[1], names[0], *names[2:])]


def some(names: Names) -> list[Names]:
    """Return choices of at least one name and not of all: all that there are of up to three names, else a few."""
    if len(names) <= 2:
        return [(name,) for name in names]
    if len(names) == 3:
        return [(name,) for name in names] + [tuple(n for n in names if n != name) for name in names]
    return [names[::2], names[1::2], names[:1], names[-1:]]


def in_order(model: Deployed, order: Sequence[str]) -> list[Tensor]:
    """Return the model's inputs in an order."""
    tensors = {tensor.name: tensor for tensor in model.tensors}
    return [tensors[name] for name in order]


def ask(
    target: Target,
    model: Deployed,
    tensors: Sequence[Tensor] | None = None,
    *,
    send: Sequence[str] | None = None,
    outputs: Sequence[Output] | None = None,
) -> Reply:
    """Send the plain request with other inputs as binary data, another order of them, or other outputs.

    Inputs that JSON does not carry are binary data in any case.
    """
    names: Any = model.sends if send is None else {*send, *model.sends}
    return target.infer(model.request(tensors, send=names, outputs=model.listed() if outputs is None else outputs))
