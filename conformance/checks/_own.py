"""Requests that can be told apart, and answers that have to be their own."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Literal

from conformance.checks._framing import WRONG_LENGTH
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model, TensorSpec
from conformance.samples import sample_tensor
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.finding import shown
from conformance.wire.request import INFERENCE_HEADER, InferRequest
from conformance.wire.tensor import Tensor

Form = Literal["json", "binary"]

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


def salted_request(model: Model, form: Form, length: int, salt: int) -> InferRequest:
    want: Form | None = "binary" if form == "binary" else None
    return model.request(salted_tensors(model, length, salt), send=form, want=want, request_id=f"request-{salt}")


def is_own(target: Target, reply: Reply, model: Model, length: int, salt: int, requirement: str) -> None:
    """Expect that an answer carries the tensors of its request, and the id of no other one."""
    if reply.status in DECLINED:
        return
    found = (reply.answer.document or {}).get("id") if reply.succeeded else None
    if isinstance(found, str) and found.startswith("request-") and found != f"request-{salt}":
        raise Unmet(f"id request-{salt}", f"id {shown(found)}", reply, requirement=requirement)
    is_right(target, reply, model.expected(salted_tensors(model, length, salt)), requirement)


def is_right(target: Target, reply: Reply, tensors: Iterable[Tensor], requirement: str) -> None:
    """Expect the right tensors.

    Raises:
        Unmet: the answer is wrong.
        Blocked: it is wrong in the same way when the same request is sent alone and in one piece.
    """
    try:
        expect(reply, requirement).tensors(tensors).free_of(*WRONG_LENGTH)
    except Unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        refused = not (alone.succeeded or reply.succeeded)
        same = (alone.body, alone.header(INFERENCE_HEADER)) == (reply.body, reply.header(INFERENCE_HEADER))
        if alone.status is not None and alone.status == reply.status and (refused or same):
            raise Blocked("the same request is answered as wrongly when it is sent alone and in one piece") from None
        raise
