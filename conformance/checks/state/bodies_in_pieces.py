"""A body is one, wherever TCP segments or chunks cut it."""

from __future__ import annotations

from conformance.checks.state.own_answers import expect_right
from conformance.checks.state.pieces import CUTS, WHOLE, Cut, cut_rows
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target

LENGTH_REQUIRED = 411


# --- bodies in pieces --------------------------------------------------------------------------------------------------


@check("state.body-in-segments-is-one-body", answers="HTTP-SEGMENTS")
@rows(*cut_rows(CUTS))
def body_in_segments_is_one_body(target: Target, model: Model, cut: Cut) -> None:
    """A body is read as a whole, wherever TCP cuts it."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message))
    expect_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-SEGMENTS")


@check("state.chunked-body-is-decoded", answers="HTTP-CHUNKED")
@rows(*cut_rows((*WHOLE, *CUTS)))
def chunked_body_is_decoded(target: Target, model: Model, cut: Cut) -> None:
    """A chunked body is decoded, wherever its chunks begin, or declined with 411."""
    request = cut.request(model)
    message = request.message()
    reply = target.send_in_pieces(message, cut.places(message), chunked=True)
    if reply.status != LENGTH_REQUIRED:
        expect_right(target, reply, model.expected([item.tensor for item in request.inputs]), "HTTP-CHUNKED")
