"""Clients that reset their connection somewhere in an exchange."""

from __future__ import annotations

from conformance.checks.robustness.octets import plain
from conformance.checks.robustness.withstanding import withstanding
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.hostile_sending import End, Octets
from conformance.transport.target import Target

TIMES = 20


@check("robustness.reset-harms-nobody", answers="ROBUST-RESET", role="identity_int32", infers=False)
@rows(
    ("before-a-byte", 0.0),
    ("inside-the-head", 0.3),
    ("inside-the-body", 0.95),
    ("before-the-answer", 1.0),
)
def reset_harms_nobody(target: Target, model: Model, part: float) -> None:
    """Twenty clients that reset their connections, wherever in an exchange, harm no other."""
    message = plain(model)
    octets = target.octets_of(message)
    cut = Octets(octets[: int(len(octets) * part)], "reset", end=End.RESET)
    with withstanding(target, model):
        for _ in range(TIMES):
            target.send_octets(message, cut)
