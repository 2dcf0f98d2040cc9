"""The model name, id and outputs of an answer over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.checks.grpc_calls.methods import expect_answer
from conformance.checks.support.documents import expect_only_listed_outputs, expect_requested_name
from conformance.checks.support.over_grpc import expect_correct_outputs, find_answer_form
from conformance.checks.support.refusals import require_client_served
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows, rows_for_role
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.spec.fit import ANY, SCORED, SEVERAL_OUTPUTS, Fit
from conformance.spec.text import escape_text
from conformance.transport.client_names import COMMON_NAMES, OWN_CLIENT, ClientName
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.request import Form, RequestedOutput

# suffix of a row's id -> the encoding of the inputs
FORMS: Mapping[str, Form] = {"": "json", "-raw": "binary"}

# --- the client that a call names --------------------------------------------------------------------------------------


@check("grpc.every-client-is-answered-right", answers="OIP-CLIENT-NAME/grpc", over=(GRPC,))
@rows(
    *rows_for_role(
        "identity_int32",
        *[
            Row(f"{name}{suffix}", ([client], send))
            for suffix, send in FORMS.items()
            for name, client in COMMON_NAMES.items()
        ],
    ),
    Row("own", (list(COMMON_NAMES.values()), "json"), fit=ANY),
)
def every_client_is_answered_right(target: GrpcTarget, model: Model, clients: Sequence[ClientName], send: Form) -> None:
    """The server answers a call correctly under the `user-agent` of any common client."""
    tensors = model.sample()
    call = target.message(model.request(tensors, send=send))
    own_call_is_wrong = "the answer to the same call under the suite's own `user-agent` is also wrong"

    def expect_answer_to_client(client: ClientName) -> None:
        """Expect the correct outputs for the call with the `user-agent` of a client."""
        reply = target.send(client.add_user_agent(call))
        require_client_served(target, reply, call)
        expect_correct_outputs(reply, model, tensors)

    with (
        block_if(lambda: not is_met(lambda: expect_answer_to_client(OWN_CLIENT)), own_call_is_wrong),
        attribute_to("OIP-CLIENT-NAME"),
    ):
        for client in clients:
            expect_answer_to_client(client)


# --- the members of an answer -----------------------------------------------------------------------------------------


@check(
    "grpc.answer-names-model-and-outputs",
    answers=("OIP-OUTPUT-MEMBERS/grpc", "OIP-MODEL-NAME-ASKED/grpc"),
    over=(GRPC,),
)
@rows(
    *[Row(role, role=role) for role in ("identity_int32", "identity_bytes", "multi", "batching", "rank3")],
    Row("own", fit=ANY),
)
def answer_names_model_and_outputs(target: GrpcTarget, model: Model) -> None:
    """The answer has the model's name, and a datatype and shape for each output."""
    reply = target.infer(model.request(send=find_answer_form(target, model)))
    message = expect_answer(reply, "ModelInfer")
    if not message.model_name:
        raise UnmetError("the name of the model in model_name", "no model_name", reply)
    for entry in message.outputs:
        if not entry.name or entry.datatype not in DATATYPES or any(size < 0 for size in entry.shape):
            actual = (
                f"name {format_value(entry.name)}, datatype {format_value(entry.datatype)}, shape {list(entry.shape)}"
            )
            raise UnmetError("each output with a name, a datatype of the protocol and a shape", actual, reply)
    for right in model.find_outputs(model.sample()):
        output = expect(reply, "OIP-OUTPUTS-ALL/grpc").output(right.name)
        if (output.datatype, output.shape) != (right.datatype, right.shape):
            wanted = f"{right.name} {right.datatype} with shape {list(right.shape)}"
            raise UnmetError(
                wanted, f"{escape_text(output.datatype, 40)} with shape {format_value(output.shape)}", reply
            )
    expect_requested_name(
        *(target, reply, message.model_name, model, "OIP-OUTPUT-MEMBERS"),
        lambda other: (target.infer(other.request(send="json")).answer.document or {}).get("model_name"),
    )


CLASSES = (RequestedOutput("SCORES", classification=2),)
IDS = {"short": "0042", "beyond-ascii": "Füße-猫", "300-long": "i" * 300}
Outputs = Sequence[RequestedOutput | str]
OutputChooser = Callable[[Model], Outputs]  # chooses the outputs that a request to a deployed model lists


def _list_last_output(model: Model) -> Outputs:
    """Return a list with only the last output of a model."""
    return [model.role.outputs[-1].name]


def _list_classified_output(model: Model) -> Outputs:
    """Return a list with the first output that supports classes, with a request for one class."""
    return [RequestedOutput(model.find_classifiable_outputs()[0], classification=1)]


@check("grpc.id-is-returned", answers="OIP-ID/grpc", over=(GRPC,))
@rows(
    *rows_for_role(
        "identity_int32",
        *[Row(name, ([identity],)) for name, identity in IDS.items()],
        *[Row(f"raw-{name}", ([identity], "binary")) for name, identity in IDS.items()],
    ),
    Row("several-outputs-raw", (["m-1"], "binary"), role="multi"),
    Row("batching-raw", (["b-1"], "binary"), role="batching"),
    Row("listed", (["l-1"], "json", ("OUT_FP32", "OUT_INT64")), role="multi"),
    Row("listed-raw", (["l-2"], "binary", ("OUT_BYTES",)), role="multi"),
    Row("classes", (["c-1"], "json", CLASSES), role="scores", needs=CLASSES_OVER_GRPC),
    Row("classes-raw", (["c-2"], "binary", CLASSES), role="scores", needs=CLASSES_OVER_GRPC),
    Row("own", (list(IDS.values()),), fit=ANY),
    Row("own-listed-raw", (list(IDS.values()), "binary", _list_last_output), fit=ANY),
    Row("own-classes", (["c-3"], "json", _list_classified_output), fit=SCORED, needs=CLASSES_OVER_GRPC),
)
def id_is_returned(
    target: GrpcTarget,
    model: Model,
    ids: Sequence[str],
    send: Form | None = None,
    outputs: Outputs | OutputChooser | None = None,
) -> None:
    """The server returns the id of a request, whatever else the request asks for."""
    send = send or find_answer_form(target, model)
    listed = outputs(model) if callable(outputs) else outputs
    for identity in ids:
        reply = target.infer(model.request(send=send, outputs=listed, request_id=identity))
        if not reply.succeeded and not target.infer(model.request(send=send, outputs=listed)).succeeded:
            raise BlockedError("the call is not answered without an id either")
        found = expect_answer(reply, "ModelInfer").id
        if found != identity:
            raise UnmetError(f"id {format_value(identity)}", f"id {format_value(found)}", reply)


@check("grpc.id-is-not-left-over", answers="OIP-ID/grpc", role="identity_int32", fit=ANY, over=(GRPC,))
def id_is_not_left_over(target: GrpcTarget, model: Model) -> None:
    """The answer to a call without an id does not contain the id of the previous call."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if expect_answer(reply, "ModelInfer").id == "the-one-before":
        raise UnmetError("no id, or an id that the server invented", 'id "the-one-before"', reply)


Names = Sequence[str]
# The outputs that a request lists, and the deployed models that receive this request.
LISTED: Mapping[str, tuple[Callable[[Names], Names] | None, Fit | None]] = {
    "none-listed": (None, ANY),
    "all": (lambda names: names, None),
    "reversed": (lambda names: names[::-1], SEVERAL_OUTPUTS),
    "first": (lambda names: names[:1], None),
    "last": (lambda names: names[-1:], None),
    "two": (lambda names: (names[2], names[0]), None),
    "second": (lambda names: names[1:2], SEVERAL_OUTPUTS),
    "two-neighbours": (lambda names: names[1:3], None),
    "three": (lambda names: names[1:], None),
}
_RAW_FITS = {"last": SEVERAL_OUTPUTS, "two-neighbours": Fit(min_outputs=3)}


def _list_requirements(choose: Callable[[Names], Names] | None) -> tuple[str, ...]:
    """Return the requirements on an answer's outputs, which depend on whether the call lists outputs."""
    return ("OIP-OUTPUTS-ALL/grpc",) if choose is None else ("OIP-OUTPUTS-LISTED/grpc", "OIP-OUTPUTS-ONLY/grpc")


@check(
    "grpc.listed-outputs-and-no-others",
    answers=("OIP-OUTPUTS-LISTED/grpc", "OIP-OUTPUTS-ONLY/grpc"),
    role="multi",
    over=(GRPC,),
)
@rows(
    *[Row(name, (listed, None), answers=_list_requirements(listed), fit=fit) for name, (listed, fit) in LISTED.items()],
    *[
        Row(f"raw-{name}", (listed, "binary"), answers=_list_requirements(listed), fit=_RAW_FITS.get(name))
        for name, (listed, _) in LISTED.items()
    ],
)
def listed_outputs_and_no_others(
    target: GrpcTarget, model: Model, choose: Callable[[Names], Names] | None, send: Form | None
) -> None:
    """The server returns exactly the listed outputs, or all outputs if the call lists none."""
    send = send or find_answer_form(target, model)
    listed = None if choose is None else choose([spec.name for spec in model.role.outputs])
    request = model.request(send=send, outputs=listed)
    reply = target.infer(request)
    if not reply.succeeded and (listed is None or not target.infer(model.request(send=send)).succeeded):
        raise BlockedError("the call is not answered without a list of outputs either")
    expect(reply).answered()
    names, found = sorted(listed or model.declared_outputs), sorted(reply.answer.names())
    if found != names and sorted(target.infer(request).answer.names()) == names:
        raise BlockedError("the same call, sent a second time, is answered correctly")
    if not set(found).issuperset(names):
        raise UnmetError(f"outputs {', '.join(names)}", f"outputs {format_value(found)}", reply)
    if listed is not None:
        expect_only_listed_outputs(reply, listed)
