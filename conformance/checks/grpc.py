"""gRPC: the methods of the service, tensors in both of their forms, refusals, and the same answers as over HTTP.

Typed `contents` are to gRPC what JSON is to HTTP, and raw contents what binary data are. A server chooses the form of
its answers, so a check looks at an answer in whichever it came, and the form is judged by itself.

The checks of tensors stand in `_grpc_tensors` and `_grpc_order`, those of classification in `_grpc_classes`,
`_grpc_class_texts` and `_grpc_class_limits`, those of refusals in `_grpc_refusals`, the golden calls in `_grpc_golden`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.check import Row, check, rows
from conformance.checks import (
    _grpc_class_limits,
    _grpc_class_texts,
    _grpc_classes,
    _grpc_golden,
    _grpc_order,
    _grpc_refusals,
    _grpc_tensors,
)
from conformance.checks._grpc import answered_or_blocked, form_of, over_grpc
from conformance.checks.metadata import fits
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model, TensorSpec, load
from conformance.target.exchange import Reply
from conformance.target.grpc_door import Door
from conformance.text import safe
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import shown
from conformance.wire.grpc_answer import response
from conformance.wire.grpc_request import Pb
from conformance.wire.tensor import Tensor

TYPICAL = ("identity_int32", "identity_bytes", "multi", "fixed", "batching", "rank4")


def _answer(reply: Reply, method: str) -> Pb:
    """Return the response message of a call that has to be answered."""
    expect(reply).answered()
    message = response(reply.body, method)
    if message is None:
        raise Unmet(f"a {method}Response", f"{len(reply.body)} bytes that are none", reply)
    return message


# --- methods and metadata ----------------------------------------------------------------------------------------------


@check("grpc.methods-are-served", answers="GRPC-EP", infers=False)
@over_grpc
@rows(
    ("ServerLive", "ServerLive", "live"),
    ("ServerReady", "ServerReady", "ready"),
    ("ServerMetadata", "ServerMetadata", ""),
)
def methods_are_served(door: Door, method: str, flag: str) -> None:
    """The methods about the server answer, and say that it is live and ready."""
    reply = door.call(method)
    message = _answer(reply, method)
    if flag and not getattr(message, flag):
        raise Unmet(f"{flag}: true", f"{flag}: false", reply)


@check("grpc.model-is-ready", answers="GRPC-EP", role="identity_int32", infers=False)
@over_grpc
def model_is_ready(door: Door, model: Model) -> None:
    """ModelReady says of a model that answers that it is ready."""
    reply = door.call("ModelReady", name=model.name, version=model.version)
    if not _answer(reply, "ModelReady").ready:
        raise Unmet("ready: true", "ready: false", reply)


@check("grpc.classification-is-listed", answers="GRPC-CLS-META", infers=False)
@over_grpc
def classification_is_listed(door: Door) -> None:
    """ServerMetadata lists the extension classification."""
    reply = door.call("ServerMetadata")
    listed = list(_answer(reply, "ServerMetadata").extensions)
    if "classification" not in listed:
        raise Unmet("classification among the extensions of ServerMetadata", f"extensions {shown(listed)}", reply)


@check("grpc.model-metadata-describes-the-model", answers="GRPC-MODEL-META", infers=False)
@over_grpc
@rows(*[Row(name, role=name, thorough=name not in TYPICAL) for name in load()])
def model_metadata_describes_the_model(door: Door, model: Model) -> None:
    """ModelMetadata gives name, datatype and shape of each input and output."""
    reply = door.call("ModelMetadata", name=model.name, version=model.version)
    message = _answer(reply, "ModelMetadata")
    if message.name != model.name:
        raise Unmet(f"name {shown(model.name)}", f"name {shown(message.name)}", reply)
    for entries, specs, names in (
        (message.inputs, model.role.inputs, model.names.inputs),
        (message.outputs, model.role.outputs, model.names.outputs),
    ):
        described = {entry.name: entry for entry in entries}
        for spec in specs:
            _describes(reply, spec, names.get(spec.name, spec.name), described, batching=model.role.batching)


def _describes(reply: Reply, spec: TensorSpec, name: str, described: dict[str, Any], *, batching: bool) -> None:
    if name not in described:
        raise Unmet(f"{name} in ModelMetadata", f"the tensors {shown(list(described))}", reply)
    entry = described[name]
    if entry.datatype != spec.datatype:
        raise Unmet(f"{name} with datatype {spec.datatype}", f"datatype {shown(entry.datatype)}", reply)
    shape = list(entry.shape)
    if not (fits(spec.shape, shape) or (batching and shape and fits(spec.shape, shape[1:]))):
        wanted = f"{list(spec.shape)}" + (f" or {[-1, *spec.shape]}" if batching else "")
        raise Unmet(f"{name} with shape {wanted}", f"shape {shape}", reply)


# --- the frame of an answer --------------------------------------------------------------------------------------------


@check("grpc.answer-names-model-and-outputs", answers="GRPC-RES")
@over_grpc
@rows(*[Row(role, role=role) for role in ("identity_int32", "identity_bytes", "multi", "batching", "rank3")])
def answer_names_model_and_outputs(door: Door, model: Model) -> None:
    """An answer has the model's name, and of each output a datatype and a shape."""
    reply = door.infer(model.request(send=form_of(door, model)))
    message = _answer(reply, "ModelInfer")
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


@check("grpc.id-is-returned", answers="GRPC-ID", role="identity_int32")
@over_grpc
@rows(("short", "42"), ("beyond-ascii", "Füße-猫"), ("300-long", "i" * 300))
def id_is_returned(door: Door, model: Model, identity: str) -> None:
    """The id of a request comes back."""
    reply = door.infer(model.request(send=form_of(door, model), request_id=identity))
    found = _answer(reply, "ModelInfer").id
    if found != identity:
        raise Unmet(f"id {shown(identity)}", f"id {shown(found)}", reply)


@check("grpc.id-is-not-left-over", answers="GRPC-ID", role="identity_int32")
@over_grpc
def id_is_not_left_over(door: Door, model: Model) -> None:
    """A request without an id is not answered with the id of the one before."""
    door.infer(model.request(send="json", request_id="the-one-before"))
    reply = door.infer(model.request(send="json"))
    if _answer(reply, "ModelInfer").id == "the-one-before":
        raise Unmet("no id, or one of its own", 'id "the-one-before"', reply)


MULTI = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")


@check("grpc.listed-outputs-and-no-others", answers="GRPC-OUT", role="multi")
@over_grpc
@rows(
    ("none-listed", None),
    ("all", MULTI),
    ("reversed", MULTI[::-1]),
    ("first", MULTI[:1]),
    ("last", MULTI[3:]),
    ("two", (MULTI[2], MULTI[0])),
)
def listed_outputs_and_no_others(door: Door, model: Model, listed: Sequence[str] | None) -> None:
    """An answer has the listed outputs and no others, or all where none is listed."""
    reply = door.infer(model.request(send=form_of(door, model), outputs=listed))
    expect(reply).answered()
    found = sorted(reply.answer.names())
    if found != sorted(listed or MULTI):
        raise Unmet(f"outputs {', '.join(sorted(listed or MULTI))}", f"outputs {shown(found)}", reply)


# --- HTTP and gRPC -----------------------------------------------------------------------------------------------------


@check("grpc.answers-are-those-of-http", answers="GRPC-DOORS")
@over_grpc
@rows(
    *[
        Row(name, role=name, needs=("http",) if role.speaks_json else ("http", "binary_tensor_data"))
        for name, role in load().items()
    ]
)
def answers_are_those_of_http(door: Door, model: Model) -> None:
    """The same tensors give the same outputs over gRPC as over HTTP."""
    spoken = model.role.speaks_json
    request = model.request(send="json" if spoken else "binary", want=None if spoken else "binary")
    over_http = door.target.infer(request)
    if not over_http.succeeded:
        raise Blocked(f"over HTTP the request is not answered: {over_http.outcome()}")
    usual = [
        Tensor(output.name, output.datatype, output.array.shape, output.array)
        for output in over_http.answer.outputs
        if output.array is not None
    ]
    if {tensor.name for tensor in usual} != {spec.name for spec in model.role.outputs}:
        raise Blocked("over HTTP the answer cannot be read")
    reply = answered_or_blocked(door.infer(model.request(send=form_of(door, model))))
    expect(reply).tensors(usual, through_json=spoken)


# --- what stands in other modules --------------------------------------------------------------------------------------

raw_tensors_come_back = _grpc_tensors.raw_tensors_come_back
typed_tensors_come_back = _grpc_tensors.typed_tensors_come_back
raw_strings_come_back = _grpc_tensors.raw_strings_come_back
fp16_is_raw = _grpc_tensors.fp16_is_raw
bf16_is_raw = _grpc_tensors.bf16_is_raw
raw_entries_follow_the_inputs = _grpc_order.raw_entries_follow_the_inputs
raw_entries_follow_the_outputs = _grpc_order.raw_entries_follow_the_outputs
answer_has_one_form = _grpc_order.answer_has_one_form
forms_give_one_answer = _grpc_order.forms_give_one_answer

golden_call_is_answered = _grpc_golden.golden_call_is_answered
golden_call_is_refused = _grpc_golden.golden_call_is_refused

contents_of_a_wrong_size_are_refused = _grpc_refusals.contents_of_a_wrong_size_are_refused
contents_that_make_no_tensor_are_refused = _grpc_refusals.contents_that_make_no_tensor_are_refused
another_field_is_refused_or_read = _grpc_refusals.another_field_is_refused_or_read
impossible_calls_are_refused = _grpc_refusals.impossible_calls_are_refused
input_against_the_metadata_is_refused = _grpc_refusals.input_against_the_metadata_is_refused
refusal_says_that_the_request_is_wrong = _grpc_refusals.refusal_says_that_the_request_is_wrong
good_call_after_a_refusal_is_answered_right = _grpc_refusals.good_call_after_a_refusal_is_answered_right
server_outlives_what_has_ended_others = _grpc_refusals.server_outlives_what_has_ended_others

parameter_is_taken = _grpc_classes.parameter_is_taken
classes_are_bytes = _grpc_classes.classes_are_bytes
classes_have_their_shape = _grpc_classes.classes_have_their_shape
as_many_classes_as_asked = _grpc_classes.as_many_classes_as_asked
highest_classes_come_first = _grpc_classes.highest_classes_come_first
items_are_ranked_apart = _grpc_classes.items_are_ranked_apart
class_is_value_index_label = _grpc_class_texts.class_is_value_index_label
class_value_is_the_score = _grpc_class_texts.class_value_is_the_score
class_index_counts_from_0 = _grpc_class_texts.class_index_counts_from_0
class_label_is_that_of_its_index = _grpc_class_texts.class_label_is_that_of_its_index
other_outputs_stay = _grpc_classes.other_outputs_stay
no_class_is_made_up = _grpc_class_limits.no_class_is_made_up
wrong_parameter_is_refused = _grpc_class_limits.wrong_parameter_is_refused
number_0 = _grpc_class_limits.number_0
classes_are_those_of_http = _grpc_class_limits.classes_are_those_of_http
