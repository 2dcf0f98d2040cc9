"""Inputs against the model's metadata where the server takes them: it may convert, reshape or ignore, but alters nothing.

All values are whole and small, so that each datatype has them. What is compared are the values in row-major order,
whatever datatype and shape the server gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import Unmet, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.terms.text import elements
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Contrary:
    """A request in which the first input is not what the metadata say.

    Attributes:
        name: of that input.
        datatype: in which it is sent.
        shape: in which it is sent.
        own: the shape that the model takes, of as many elements.
        binary: the inputs that are binary data, in the order of the request.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    own: tuple[int, ...]
    binary: tuple[str, ...]

    def sent(self, model: Model) -> Message:
        """Return the request."""
        values = list(range(1, 1 + prod(self.shape)))
        return self._message(model, Tensor.of(self.name, self.datatype, values, self.shape))

    def right(self, model: Model) -> tuple[Message, tuple[Tensor, ...]]:
        """Return the same request as the metadata ask for it, and its outputs."""
        spec = next(spec for spec in model.role.inputs if spec.name == self.name)
        own = Tensor.of(self.name, spec.datatype, list(range(1, 1 + prod(self.own))), self.own)
        return self._message(model, own), model.expected(self._inputs(model, own))

    def _inputs(self, model: Model, first: Tensor) -> list[Tensor]:
        order = [*self.binary, *[spec.name for spec in model.role.inputs if spec.name not in self.binary]]
        others = {tensor.name: tensor for tensor in model.sample()} | {first.name: first}
        return [others[name] for name in order]

    def _message(self, model: Model, first: Tensor) -> Message:
        return model.request(self._inputs(model, first), send=self.binary).message()


def _row(name: str, role: str, contrary: Contrary) -> Row:
    return Row(name, (contrary,), role=role, needs=BINARY if contrary.binary else ())


THREE, SIX = (3,), (2, 3)
INPUT = ("INPUT",)
ROWS = (
    _row("binary-floats-for-int32", "cast_int32_fp32", Contrary("INPUT", "FP32", THREE, THREE, INPUT)),
    _row("binary-int32-for-floats", "identity_fp32", Contrary("INPUT", "INT32", THREE, THREE, INPUT)),
    _row("binary-doubles-for-int64", "identity_int64", Contrary("INPUT", "FP64", THREE, THREE, INPUT)),
    _row("floats-for-int32-in-json", "cast_int32_fp32", Contrary("INPUT", "FP32", THREE, THREE, ())),
    _row("doubles-before-booleans", "multi", Contrary("IN_FP32", "FP64", THREE, THREE, ("IN_FP32", "IN_BOOL"))),
    _row("int32-before-booleans", "multi", Contrary("IN_INT64", "INT32", THREE, THREE, ("IN_INT64", "IN_BOOL"))),
    _row("binary-dimensions-exchanged", "fixed", Contrary("INPUT", "INT32", SIX[::-1], SIX, INPUT)),
    _row("binary-dimensions-in-one", "fixed", Contrary("INPUT", "INT32", (6,), SIX, INPUT)),
    _row("dimensions-exchanged-in-json", "fixed", Contrary("INPUT", "INT32", SIX[::-1], SIX, ())),
    _row("binary-batch-dimension-missing", "batching", Contrary("INPUT", "INT32", THREE, (1, 3), INPUT)),
)


@check("errors.input-against-the-metadata-alters-no-tensor", answers="OIP-SIGNATURE-SAFE")
@rows(*ROWS)
def input_against_the_metadata_alters_no_tensor(target: Target, model: Model, contrary: Contrary) -> str:
    """An input of another datatype or shape than the metadata say is refused, or no value of any tensor changes."""
    usual, expected = contrary.right(model)
    reply = target.send(contrary.sent(model), fresh=True)
    if not reply.succeeded:
        expect(reply).refused()
        expect_alive(target, model)
        return "refused"

    def is_wrong_as_usual() -> bool:
        return not holds(lambda: _expect_values(target.send(usual, fresh=True), expected))

    with blocked_where(
        is_wrong_as_usual, "the request is answered wrongly with the model's own datatype and shape, too"
    ):
        _expect_values(reply, expected)
    return "taken, with the same values"


def _expect_values(reply: Reply, expected: Sequence[Tensor]) -> None:
    """Expect the values of these outputs, in whatever datatype and shape."""
    for tensor in expected:
        array = expect(reply).output(tensor.name).array
        right = tensor.array.reshape(-1).tolist()
        if array is None or not _is_same(array.reshape(-1).tolist(), right):
            found = "no values that can be read" if array is None else elements(array)
            raise Unmet(f"{tensor.name} = {elements(tensor.array)}", found, reply)


def _is_same(found: Sequence[object], right: Sequence[object]) -> bool:
    """Whether values are equal; numbers that travelled as JSON are right when they are near."""
    if len(found) != len(right):
        return False
    return all(
        a == b or (isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= 1e-6 * abs(b))
        for a, b in zip(found, right, strict=True)
    )
