"""A client that does not read at once."""

from __future__ import annotations

import numpy as np

from conformance.checks.state.three_forms import NEEDS, AnyForm
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# More than the sockets on both sides take in together before anybody reads; Linux lets the sender's grow to 4 MiB.
ANSWER_BYTES = 5_000_000
TEXT_COUNT = 50


def _tensor(model: Model) -> Tensor:
    """Return a tensor of that size; of few texts where it can be, since each element costs a server time."""
    if model.role.inputs[0].datatype == "BYTES":
        return model.tensor([f"{k:09d} " * (ANSWER_BYTES // TEXT_COUNT // 10) for k in range(TEXT_COUNT)])
    return model.tensor(np.arange(ANSWER_BYTES) % 251)


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
        message = model.request([tensor], send=form, want="binary" if form == "binary" else None).message()
    expected = model.expected([tensor])

    def is_wrong_at_once() -> bool:
        return not is_met(lambda: expect(target.send(message)).tensors(expected))

    reply = target.send_and_read_late(message)  # each exchange of these is large in a recording: no other comes first
    if reply.is_refusal and reply.status not in DECLINED_STATUSES:
        raise NotApplicableError(f"a request of {len(message.body)} bytes is refused: {escape_text(reply.outcome())}")
    with block_if(is_wrong_at_once, "the same answer, read at once, is wrong, too"), attribute_to("HTTP-SLOW-READER"):
        expect(reply).tensors(expected)
