"""Helpers for rows on any deployed model, of which only the signature and the answers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

NO_BINARY_REQUEST = "no binary request is answered"


def require_json(model: Model) -> None:
    """Expect that a plain request to a model travels as JSON both ways.

    Raises:
        NotApplicable: it does not; a role that has no JSON form is not asked.
    """
    if model.is_own_oracle and not model.is_json_capable:
        raise NotApplicableError(f"JSON does not carry every tensor of {model.name}")


def require_json_outputs(model: Model) -> Names:
    """Return the outputs that come as JSON where a request asks for that.

    Raises:
        NotApplicable: there are none.
    """
    names = tuple(spec.name for spec in model.role.outputs if spec.name not in model.kept_binary)
    if not names:
        raise NotApplicableError(f"JSON carries no output of {model.name}")
    return names


def require_several(model: Model) -> tuple[Tensor, ...]:
    """Return the inputs of a model that is sent several.

    Raises:
        NotApplicable: it is sent one; others may be optional.
    """
    tensors = model.sample()
    if len(tensors) < 2:
        raise NotApplicableError(f"{model.name} is sent one input")
    return tensors


def to_json(model: Model, tensor: Tensor) -> list[Any]:
    """Return the elements of an input as JSON has them.

    Raises:
        NotApplicable: JSON does not carry them.
    """
    if model.is_own_oracle and tensor.name in model.sends:
        raise NotApplicableError(f"JSON does not carry {tensor.name}")
    return tensor.to_json()


def spare_tables(model: Model) -> None:
    """Keep a request from a model to which any octets may become indices of a table, for which models have ended.

    Raises:
        NotApplicable: it has one input, of integers.
    """
    inputs = model.role.inputs
    if model.is_own_oracle and len(inputs) == 1 and inputs[0].datatype in INTEGERS:
        raise NotApplicableError(f"{model.name} may look up its integers in a table")


def list_half_binary(model: Model) -> list[RequestedOutput]:
    """Return all outputs as listed: every other one as binary data, from the first, and those that JSON does not carry."""
    names = [spec.name for spec in model.role.outputs]
    return [RequestedOutput(name, k % 2 == 0 or name in model.kept_binary) for k, name in enumerate(names)]


def find_sizes(model: Model, tensors: Sequence[Tensor]) -> Mapping[str, int]:
    """Return the bytes of each output, by its name, where it is known for these inputs."""
    try:
        return {tensor.name: tensor.size for tensor in model.expected(tensors)}
    except NotApplicableError:
        return {}


def read_in_turn(declared: Sequence[Tensor], sent: Sequence[Tensor]) -> list[Tensor] | None:
    """Return what inputs are to a server that takes those sent for the declared ones, each at its place.

    None where they are no such inputs, or might not be: integers beyond those that an input takes have ended models.
    """
    pairs = list(zip(declared, sent, strict=True))
    if not all((a.datatype, a.shape) == (b.datatype, b.shape) and _is_within(b, a) for a, b in pairs):
        return None
    return [Tensor(own.name, own.datatype, own.shape, other.array) for own, other in pairs]


def _is_within(tensor: Tensor, own: Tensor) -> bool:
    """Say whether the elements of a tensor lie between the least and the greatest of another one, where they are integers."""
    if tensor.datatype not in INTEGERS or not own.elements:
        return True
    return bool(own.array.min() <= tensor.array.min() and tensor.array.max() <= own.array.max())


@contextmanager
def not_applicable_where(is_open: Callable[[], bool], reason: str) -> Iterator[None]:
    """Judge what stands inside, unless nobody can say what is right, which is asked only when it matters.

    Raises:
        NotApplicable: what stands inside is unmet or blocked, and nobody can say what is right.
    """
    try:
        yield
    except (UnmetError, BlockedError):
        if is_open():
            raise NotApplicableError(reason) from None
        raise


def refuses_binary(target: Target, model: Model) -> bool:
    """Say whether a model that is its own oracle answers no binary request at all; a role is not asked."""
    return model.is_own_oracle and not target.infer(model.request(outputs=model.listed())).succeeded


def misreads_binary(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether a model that is its own oracle gets inputs wrong as plain binary data; a role is not asked."""
    return model.is_own_oracle and not _is_read(target, model, tensors)


def is_right_sorted(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether inputs are right as plain binary data in the order of their names, which is that of no request."""
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return [t.name for t in ordered] != [t.name for t in tensors] and _is_read(target, model, ordered)


def _is_read(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether a model gets inputs right as plain binary data."""
    request = model.request(tensors, outputs=model.listed())
    return is_met(lambda: expect(target.infer(request)).tensors(model.expected(tensors)))


def is_read_alone(target: Target, model: Model, tensors: Sequence[Tensor], name: str) -> bool:
    """Say whether a model gets inputs right where the named one is the only binary data, as far as JSON goes."""
    request = model.request(tensors, send={name, *model.sends}, outputs=model.listed())
    return is_met(lambda: expect(target.infer(request)).tensors(model.expected(tensors)))


def is_written_alone(target: Target, model: Model, tensors: Sequence[Tensor], output: Tensor) -> bool:
    """Say whether a model gets an output right as the only one of a request, and as binary data."""
    request = model.request(tensors, send=model.sends, outputs=[RequestedOutput(output.name, True)])
    return is_met(lambda: expect(target.infer(request)).tensors([output]))


# --- inputs that show how they were read ------------------------------------------------------------------------------

Misread = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def draw_telling(model: Model, misread: Misread) -> Sequence[Tensor]:
    """Return inputs that the model answers otherwise than it answers them misread; of a role its samples.

    Raises:
        NotApplicable: it answers both alike, whatever is drawn.
    """
    for tensors in model.draw_several():
        if model.tells_apart(tensors, misread(tensors)):
            return tensors
    raise NotApplicableError(f"{model.name} answers its inputs as it would answer them misread")


def require_telling(model: Model, one: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Expect that the model answers some of these inputs otherwise than the first.

    Raises:
        NotApplicable: it answers all alike, so that an answer does not show whose it is.
    """
    if not any(model.tells_apart(one, other) for other in others):
        raise NotApplicableError(f"{model.name} answers inputs of this kind alike")


# --- the same request once more ---------------------------------------------------------------------------------------

ISOLATION = "OIP-ISOLATION"


def attribute_to_isolation(target: Peer, unmet: UnmetError, right: Callable[[Reply], object]) -> None:
    """Name OIP-ISOLATION where a good answer over HTTP is wrong, and the answer to the same request once more is right.

    Args:
        target: is asked again, on a connection of its own.
        unmet: what the first answer does not meet; its requirement is changed.
        right: raises `UnmetError` where an answer is wrong.
    """
    reply = unmet.reply
    if reply is None or not reply.succeeded or reply.is_over_grpc:
        return
    if is_met(lambda: right(target.send(reply.exchange.message, fresh=True))):
        unmet.requirement = ISOLATION


def expect_or_blame_isolation(target: Peer, reply: Reply, right: Callable[[Reply], object]) -> None:
    """Expect that an answer is right; where the same request is answered right once more, isolation is to blame."""
    try:
        right(reply)
    except UnmetError as unmet:
        attribute_to_isolation(target, unmet, right)
        raise
