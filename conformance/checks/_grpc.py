"""What the checks of gRPC share: the door, refusals, and whom to blame.

Checks and helpers that are about HTTP serve here, too: a request is the same in either form (over HTTP binary data or
JSON, here raw or typed contents), and an answer is taken apart into the same outputs. What they find unmet they name by
the requirements of HTTP; `over_grpc` gives these their names here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

import numpy as np

from conformance.check import Row
from conformance.expect import expect
from conformance.outcome import Blocked, TargetLost, Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.grpc_door import Door
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.grpc_request import Edit, Pb, infer_message
from conformance.wire.request import Message, Output
from conformance.wire.tensor import Tensor

P = ParamSpec("P")
Form = Literal["binary", "json"]

# A requirement of HTTP -> the same one here.
IDS: Mapping[str, str] = {
    "OIP-RES": "GRPC-RES",
    "OIP-SHAPE": "GRPC-TYPED",
    "OIP-OUT": "GRPC-OUT",
    "OIP-OUT-ALL": "GRPC-OUT",
    "OIP-ALIVE": "GRPC-ALIVE",
    "CLS-HTTP-NUM": "GRPC-CLS-PARAM",
    **{
        f"CLS-{name}": f"GRPC-CLS-{name}"
        for name in ("TYPE", "COUNT", "FMT", "VALUE", "INDEX", "LABEL", "TOPN", "BATCH", "CLAMP")
    },
    **dict.fromkeys(("CLS-SHAPE-B", "CLS-SHAPE-NB"), "GRPC-CLS-SHAPE"),
    "CLS-NOLABEL": "GRPC-CLS-LABEL",
}


def over_grpc(body: Callable[Concatenate[Door, P], str | None]) -> Callable[Concatenate[Target, P], str | None]:
    """Make a body of a check out of one that takes the door in place of the target."""

    @wraps(body)
    def judged(target: Target, /, *arguments: P.args, **named: P.kwargs) -> str | None:
        try:
            return body(Door(target), *arguments, **named)
        except Unmet as unmet:
            unmet.requirement = IDS.get(unmet.requirement or "", unmet.requirement)
            raise

    return judged


# --- tensors -----------------------------------------------------------------------------------------------------------


def returns(door: Door, model: Model, tensors: Sequence[Tensor], send: Form) -> Reply:
    """Expect the right outputs for inputs in raw (`binary`) or typed (`json`) contents; return the reply.

    Raises:
        Blocked: the answer is in the other form, in which the same tensors are wrong by themselves.
    """
    reply = door.infer(model.request(tensors, send=send))
    try:
        expect_right(reply, model, tensors)
    except Unmet:
        if _other_form_is_wrong(door, model, tensors, send, reply):
            raise Blocked("the answer is in the other form, and tensors in that are wrong by themselves") from None
        raise
    return reply


def expect_right(reply: Reply, model: Model, tensors: Sequence[Tensor]) -> None:
    """Expect the outputs that the model computes; floats are exact over gRPC, in either form."""
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        expected = model.expected(tensors)
    expect(reply).tensors(expected, through_json=False)


def _other_form_is_wrong(door: Door, model: Model, tensors: Sequence[Tensor], send: Form, reply: Reply) -> bool:
    """Whether the answer came in the other form than the request, and is wrong also where the request has that."""
    came = {output.binary for output in reply.answer.outputs}
    if not model.role.speaks_json or came != {send == "json"}:
        return False
    other: Form = "json" if send == "binary" else "binary"
    try:
        expect_right(door.infer(model.request(tensors, send=other)), model, tensors)
    except Unmet:
        return True
    return False


def form_of(door: Door, model: Model) -> Form:
    """Return the form of contents in which a plain request is answered, typed where both are."""
    typed = model.role.speaks_json and door.infer(model.request(send="json")).succeeded
    return "json" if typed else "binary"


def answered_or_blocked(reply: Reply) -> Reply:
    """Return a reply with an answer.

    Raises:
        Blocked: there is none, which is for the checks of what was sent.
    """
    if not reply.succeeded:
        raise Blocked(f"the request is not answered: {reply.outcome()}")
    return reply


# --- refusals ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call with one fault.

    Attributes:
        fault: names the fault, in words joined by hyphens; the row's id.
        requirement: the ledger id under which it has to be refused.
        role: of the model that it goes to.
        edit: puts the fault into the message of a good request.
        send: the form of the inputs of that request.
        classes: of the first output, asked for in that request.
        body: makes the bytes of the message something else.
        unknown: it names what does not exist, or is no message: codes other than INVALID_ARGUMENT fit as well.
    """

    fault: str
    requirement: str
    role: str
    edit: Edit
    send: Form = "json"
    classes: int | None = None
    body: Callable[[bytes], bytes] = bytes
    unknown: bool = False

    @property
    def told(self) -> str:
        """The fault as a message names it."""
        return self.fault.replace("-", " ")

    def message(self, model: Model) -> Message:
        """Return the call."""
        wanted = None if self.classes is None else [Output(model.role.outputs[0].name, classification=self.classes)]
        made = infer_message(model.request(send=self.send, outputs=wanted), self.edit)
        return made.with_body(self.body(made.body))

    def row(self) -> Row:
        """Return the row of a check that sends it."""
        return Row(self.fault, (self,), role=self.role, answers=(self.requirement,))


def refusal_rows(refusals: Iterable[Refusal], *requirements: str) -> list[Row]:
    """Return a row for each, of these requirements."""
    return [refusal.row() for refusal in refusals if refusal.requirement in requirements]


def refuses(door: Door, model: Model, refusal: Refusal) -> Reply:
    """Expect that a call is refused for its fault, and that the server answers a good one right afterwards."""
    reply = door.send(refusal.message(model))
    expect(reply).refused(refusal.told)
    still_answers(door, model)
    return reply


def still_answers(door: Door, model: Model) -> None:
    """Expect that the model answers a good call, on a fresh connection."""
    try:
        reply = _good(door, model)
    except TargetLost as lost:
        evidence = Reply(door.target.exchanges[-1])
        raise Unmet("a server that goes on answering", str(lost), evidence, requirement="GRPC-ALIVE") from lost
    if not reply.succeeded:
        raise Unmet("a good call answered after the refusal", safe(reply.outcome()), reply, requirement="GRPC-ALIVE")


def _good(door: Door, model: Model) -> Reply:
    """Return the reply to a good call: in typed contents, or in raw ones where those are not answered."""
    if model.role.speaks_json:
        reply = door.send(infer_message(model.request(send="json")))
        if reply.succeeded:
            return reply
    return door.send(infer_message(model.request(send="binary")))


# --- edits: changes of a ModelInferRequest -----------------------------------------------------------------------------


def each_of(*edits: Edit) -> Edit:
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


def nothing(_: Pb) -> None:
    """Change nothing."""
