"""Calls of ModelInfer with one fault: edits of a good message, and what makes a refusal of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.checks.support.classes import find_scored_output
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.checks.support.refusals import Refusal
from conformance.roles.model import Model
from conformance.spec.extensions import CLASSES_OVER_GRPC
from conformance.spec.fit import Fit
from conformance.wire.datatypes import DATATYPES
from conformance.wire.grpc_request import Edit, Pb, make_infer_message
from conformance.wire.request import Form, Message, RequestedOutput

# Deployed models whose first input is of elements of one size.
NUMBERS = Fit(inputs=frozenset(DATATYPES) - {"BYTES"})


def make_faulty_call(
    fault: str,
    requirement: str,
    role: str | None,
    edit: Edit,
    send: Form = "json",
    *,
    classes: int | None = None,
    body: Callable[[bytes], bytes] = bytes,
    unknown: bool = False,
    fit: Fit | None = None,
) -> Refusal:
    """Return a call with one fault, which has to be refused.

    Args:
        fault: names the fault, in words joined by hyphens; the row's id.
        requirement: the ledger id under which it has to be refused.
        role: of the model that it goes to; None where that is a deployed one alone.
        edit: puts the fault into the message of a good request.
        send: the form of the inputs of that request.
        classes: of the first output, asked for in that request.
        body: makes the bytes of the message something else.
        unknown: see `Refusal.unknown`.
        fit: see `Refusal.fit`.
    """

    def message(model: Model) -> Message:
        tensors, wanted = None, None
        if classes is not None:
            name = find_scored_output(model)
            tensors, wanted = choose_inputs(model, name)[0], [RequestedOutput(name, classification=classes)]
        made = make_infer_message(model.request(tensors, send=send, outputs=wanted), edit)
        return made.with_body(body(made.body))

    return Refusal(fault, requirement, role, message, CLASSES_OVER_GRPC if classes else (), unknown, fit=fit)


# --- edits: changes of a ModelInferRequest -----------------------------------------------------------------------------


def chain_edits(*edits: Edit) -> Edit:
    """Return an edit that makes all of these."""

    def edit(request: Pb) -> None:
        for one in edits:
            one(request)

    return edit


def set_shape(*shape: int) -> Edit:
    """Return an edit that gives the first input another shape."""

    def edit(request: Pb) -> None:
        request.inputs[0].shape[:] = shape

    return edit


def cut_raw(request: Pb) -> None:
    """Take the last byte off the raw contents of the first input."""
    request.raw_input_contents[0] = request.raw_input_contents[0][:-1]


def lengthen_raw(request: Pb) -> None:
    """Put a byte behind the raw contents of the first input."""
    request.raw_input_contents[0] += b"\0"


def set_raw(*entries: bytes) -> Edit:
    """Return an edit that sets raw_input_contents."""

    def edit(request: Pb) -> None:
        request.raw_input_contents[:] = entries

    return edit


def set_typed(field: str, *values: Any) -> Edit:
    """Return an edit that replaces the contents of the first input, in whatever field."""

    def edit(request: Pb) -> None:
        request.inputs[0].ClearField("contents")
        getattr(request.inputs[0].contents, field).extend(values)

    return edit


def change_nothing(_: Pb) -> None:
    """Change nothing."""
