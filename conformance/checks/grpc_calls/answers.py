"""What an answer says of itself: model, id and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.grpc_calls.methods import expect_answer
from conformance.checks.support.over_grpc import form_of
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import GRPC
from conformance.terms.text import safe
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import shown

# --- the frame of an answer --------------------------------------------------------------------------------------------


@check("grpc.answer-names-model-and-outputs", answers="GRPC-RES", over=(GRPC,))
@rows(*[Row(role, role=role) for role in ("identity_int32", "identity_bytes", "multi", "batching", "rank3")])
def answer_names_model_and_outputs(target: GrpcTarget, model: Model) -> None:
    """An answer has the model's name, and of each output a datatype and a shape."""
    reply = target.infer(model.request(send=form_of(target, model)))
    message = expect_answer(reply, "ModelInfer")
    if message.model_name != model.name:
        raise Unmet(f"model_name {shown(model.name)}", f"model_name {shown(message.model_name)}", reply)
    for entry in message.outputs:
        if not entry.name or entry.datatype not in DATATYPES or any(size < 0 for size in entry.shape):
            actual = f"name {shown(entry.name)}, datatype {shown(entry.datatype)}, shape {list(entry.shape)}"
            raise Unmet("each output with a name, a datatype of the protocol and a shape", actual, reply)
    for right in model.expected(model.sample()):
        output = expect(reply, "GRPC-OUT").output(right.name)
        if (output.datatype, output.shape) != (right.datatype, right.shape):
            wanted = f"{right.name} {right.datatype} with shape {list(right.shape)}"
            raise Unmet(wanted, f"{safe(output.datatype, 40)} with shape {shown(output.shape)}", reply)


@check("grpc.id-is-returned", answers="GRPC-ID", role="identity_int32", over=(GRPC,))
@rows(("short", "42"), ("beyond-ascii", "Füße-猫"), ("300-long", "i" * 300))
def id_is_returned(target: GrpcTarget, model: Model, identity: str) -> None:
    """The id of a request comes back."""
    reply = target.infer(model.request(send=form_of(target, model), request_id=identity))
    found = expect_answer(reply, "ModelInfer").id
    if found != identity:
        raise Unmet(f"id {shown(identity)}", f"id {shown(found)}", reply)


@check("grpc.id-is-not-left-over", answers="GRPC-ID", role="identity_int32", over=(GRPC,))
def id_is_not_left_over(target: GrpcTarget, model: Model) -> None:
    """A request without an id is not answered with the id of the one before."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if expect_answer(reply, "ModelInfer").id == "the-one-before":
        raise Unmet("no id, or one of its own", 'id "the-one-before"', reply)


MULTI = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")


@check("grpc.listed-outputs-and-no-others", answers="GRPC-OUT", role="multi", over=(GRPC,))
@rows(
    ("none-listed", None),
    ("all", MULTI),
    ("reversed", MULTI[::-1]),
    ("first", MULTI[:1]),
    ("last", MULTI[3:]),
    ("two", (MULTI[2], MULTI[0])),
)
def listed_outputs_and_no_others(target: GrpcTarget, model: Model, listed: Sequence[str] | None) -> None:
    """An answer has the listed outputs and no others, or all where none is listed."""
    reply = target.infer(model.request(send=form_of(target, model), outputs=listed))
    expect(reply).answered()
    found = sorted(reply.answer.names())
    if found != sorted(listed or MULTI):
        raise Unmet(f"outputs {', '.join(sorted(listed or MULTI))}", f"outputs {shown(found)}", reply)
