"""A client that does not read at once."""

from __future__ import annotations

import numpy as np

from conformance.checks.state.three_forms import NEEDS, AnyForm
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicable, about, blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.text import safe
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# More than the sockets on both sides take in together before anybody reads; Linux lets the sender's grow to 4 MiB.
SIZE = 6_000_000
TEXTS = 60


def _tensor(model: Model) -> Tensor:
    """Return a tensor of that size; of few texts where it can be, since each element costs a server time."""
    if model.role.inputs[0].datatype == "BYTES":
        return model.tensor([f"{k:09d} " * (SIZE // TEXTS // 10) for k in range(TEXTS)])
    return model.tensor(np.arange(SIZE) % 251)


def _row(form: AnyForm, role: str) -> Row:
    return Row(form, (form,), role=role, needs=NEEDS[form], thorough=True)


@check("state.answer-is-whole-for-a-slow-reader", answers="HTTP-SLOW-READER")
@rows(_row("json", "identity_bytes"), _row("binary", "identity_bytes"), _row("raw", "identity_uint8"))
def answer_is_whole_for_a_slow_reader(target: Target, model: Model, form: AnyForm) -> None:
    """A large answer comes whole to a client that leaves it unread for a moment."""
    tensor = _tensor(model)
    if form == "raw":
        message = model.raw(bytes(tensor.to_bytes()))
    else:
        message = model.request([tensor], send=form, want=form).message()
    at_once = target.send(message)
    if at_once.is_refusal:
        raise NotApplicable(f"a request of {len(message.body)} bytes is refused: {safe(at_once.outcome())}")
    with blocked_where(lambda: True, "the same answer, read at once, is wrong"):
        expect(at_once).tensors(model.expected([tensor]))
    with about("HTTP-SLOW-READER"):
        expect(target.send_and_read_late(message)).tensors(model.expected([tensor]))
