"""Clients that reset their connection somewhere in an exchange."""

from __future__ import annotations

from conformance.checks.robustness.octets import make_plain_request
from conformance.checks.robustness.survival import expect_still_serving
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.hostile_sending import ConnectionEnd, Octets
from conformance.transport.target import Target

RESET_COUNT = 20


@check("robustness.reset-harms-nobody", answers="ROBUST-RESET", role="identity_int32", infers=False)
@rows(
    ("before-a-byte", 0.0),
    ("inside-the-head", 0.3),
    ("inside-the-body", 0.95),
    ("before-the-answer", 1.0),
)
def reset_harms_nobody(target: Target, model: Model, part: float) -> None:
    """Twenty clients that reset their connections, wherever in an exchange, harm no other."""
    message = make_plain_request(model)
    octets = target.render_octets(message)
    cut = Octets(octets[: int(len(octets) * part)], "reset", end=ConnectionEnd.RESET)
    with expect_still_serving(target, model):
        for _ in range(RESET_COUNT):
            target.send_octets(message, cut)
