"""A client that does not read at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformance.checks.state.three_forms import FORMS, NEEDS, AnyForm
from conformance.expect.expectation import expect
from conformance.expect.unmet import about, blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# Elements of an answer of four megabytes, which no socket takes at once: in JSON one has three digits and a comma.
LENGTHS: Mapping[AnyForm, int] = {"json": 1_000_000, "binary": 4_000_000, "raw": 4_000_000}


@check("state.answer-is-whole-for-a-slow-reader", answers="HTTP-SLOW-READER", role="identity_uint8")
@rows(*[Row(form, (form,), needs=NEEDS[form], thorough=True) for form in FORMS])
def answer_is_whole_for_a_slow_reader(target: Target, model: Model, form: AnyForm) -> None:
    """A large answer comes whole to a client that leaves it unread for a moment."""
    tensor = model.tensor(np.arange(LENGTHS[form]) % 156 + 100)
    if form == "raw":
        message = model.raw(bytes(tensor.to_bytes()))
    else:
        message = model.request([tensor], send=form, want=form).message()
    with blocked_where(lambda: True, "the same answer, read at once, is wrong"):
        expect(target.send(message)).tensors(model.expected([tensor]))
    with about("HTTP-SLOW-READER"):
        expect(target.send_and_read_late(message)).tensors(model.expected([tensor]))
