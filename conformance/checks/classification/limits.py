"""Limits of classification: counts that are too large, wrong types, other datatypes, misplaced parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.classes import (
    PARAMETER_REQUIREMENT,
    ClassifiedAnswer,
    ask,
    describe_class_count,
    describe_classes,
    expect_each_class_once,
    find_scored_output,
    rank_classes,
    read_classes,
    read_texts,
)
from conformance.checks.support.controls import is_right
from conformance.checks.support.ranked_inputs import ITEMS, OWN, SCORES, choose_class_count, choose_inputs
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, WrongRequest, make_call_refusals, make_refusals
from conformance.expect import attribution, class_texts
from conformance.expect.class_texts import CLASS_DATATYPES, ClassText, Scores
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive, expect_refusal, is_refused
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.roles import BINARY_ONLY
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import BINARY, CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.fit import SCORED, Fit
from conformance.spec.text import format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.edits import Drop, Set, update
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

# --- counts that are too large, or no numbers -----------------------------------------------------------------------


@claim("classification.no-class-is-made-up", requirements="CLS-COUNT-ABOVE")
@rows(
    Row("5-of-4", (SCORES, 5), role="scores"),
    Row("100-of-4", (SCORES, 100), role="scores_labelled"),
    Row("1000000-of-4", (SCORES, 1_000_000), role="scores"),
    Row("2^32+2-of-4", (SCORES, 2**32 + 2), role="scores"),  # 2 if the server reads only 32 bits
    Row("2^63-1-of-4", (SCORES, 2**63 - 1), role="scores", only=Only(GRPC, "JSON may be read as floats")),
    Row("2-of-1", ((5,), 2), role="identity_int32"),
    Row("batch", (ITEMS, 5), role="scores_batching"),
    OWN,
    Row("deployed-2^32+2", (None, 2**32 + 2), fit=SCORED),
)
def no_class_is_made_up(target: AnyTarget, model: Model, values: Any = None, count: int | None = None) -> None:
    """The server refuses a count above the number of classes, or returns each class once."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name, values)
    reply = ask(target, model, tensors, RequestedOutput(name, classification=count or right.elements + 1))
    if not is_refused(target, model, reply):
        expect_each_class_once(reply, model, right)


@claim("classification.number-0", requirements="CLS-COUNT-ZERO", role="scores", fit=SCORED)
def number_0(target: AnyTarget, model: Model) -> str:
    """The suite records what the server does when asked for 0 classes."""
    name = find_scored_output(model)
    reply = ask(target, model, model.sample(), RequestedOutput(name, classification=0))
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    output = expect(reply, attribution.attribute_missing_answer(reply)).output(name)
    if output.datatype not in CLASS_DATATYPES:
        return "the plain output"
    size = 0 if output.array is None else output.array.size
    return f"{size} classes, {format_shape(output.shape)}" if size else f"no classes, {format_shape(output.shape)}"


@check("classification.number-with-a-point", requirements="CLS-COUNT-AS-FLOAT")
@rows(Row("", (SCORES,), role="scores"), Row("deployed", (None,), fit=SCORED))
def number_with_a_point(target: Target, model: Model, values: Any) -> str:
    """The server reads the count 2.0 as 2, or refuses it."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name, values)
    count = choose_class_count(model, right)
    reply = ask(target, model, tensors, RequestedOutput(name, classification=float(count)))
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    found = len(read_texts(reply, name))
    usual = len(read_texts(ask(target, model, tensors, RequestedOutput(name, classification=count)), name))
    if found != usual:
        raise UnmetError(
            f"{describe_class_count(usual)}, or a refusal with a 4xx status",
            describe_class_count(found),
            reply,
            requirement=PARAMETER_REQUIREMENT,
        )
    return f"taken for {count}"


def _request_two_classes(model: Model) -> InferRequest:
    """Return a JSON request for two classes."""
    name = find_scored_output(model)
    tensors, _ = choose_inputs(model, name)
    return model.request(tensors, send="json", outputs=[RequestedOutput(name, classification=2)])


_COUNT = "outputs.0.parameters.classification"
WRONG_COUNTS = (
    Fault("negative-number-of-classes", "scores", Set(_COUNT, -1), SCORED),
    Fault("fraction-of-a-class", "scores", Set(_COUNT, 2.5), SCORED),
    Fault("number-of-classes-as-string", "scores", Set(_COUNT, "2"), SCORED),
    Fault("number-of-classes-true", "scores", Set(_COUNT, True), SCORED),
)
REFUSALS: tuple[Refusal, ...] = make_refusals("CLS-COUNT-WRONG", _request_two_classes, WRONG_COUNTS)


WRONG_COUNTS_OVER_GRPC = (
    Fault("count-of-minus-1", "scores", Set(f"{_COUNT}.int64_param", -1), SCORED),
    Fault("count-right-only-modulo-2-to-the-32", "scores", Set(f"{_COUNT}.int64_param", 2 - 2**32)),
    Fault("count-as-string", "scores", Set(f"{_COUNT}.string_param", "2"), SCORED),
    Fault("count-as-boolean", "scores", Set(f"{_COUNT}.bool_param", True)),
    Fault("count-as-double", "scores", Set(f"{_COUNT}.double_param", 2.0)),
    Fault("count-as-unsigned", "scores", Set(f"{_COUNT}.uint64_param", 2)),
    Fault("count-without-a-kind", "scores", Drop(f"{_COUNT}.int64_param")),
)
REFUSALS_OVER_GRPC: tuple[Refusal, ...] = make_call_refusals(
    "CLS-COUNT-WRONG/grpc",
    _request_two_classes,
    [replace(fault, needs=CLASSES_OVER_GRPC) for fault in WRONG_COUNTS_OVER_GRPC],
)


@check("classification.what-is-no-number-is-refused", requirements="CLS-COUNT-WRONG")
@rows(*make_refusal_rows(REFUSALS))
@check("grpc.wrong-parameter-is-refused", requirements="CLS-COUNT-WRONG/grpc", over=(GRPC,))
@rows(*make_refusal_rows(REFUSALS_OVER_GRPC))
def what_is_no_number_is_refused(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses a count that is negative, a fraction, a string or a boolean."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


# --- datatypes that a server need not classify ----------------------------------------------------------------------


@claim("classification.short-floats-right-or-refused", requirements="CLS-FP16")
@rows(
    Row("fp16", ((1.5, -2.0, 0.25, 3.0),), role="identity_fp16"),
    Row("fp16-order", ((2048.0, 2050.0, 0.5, 2046.0, -2048.0),), role="identity_fp16"),
    Row("bf16", ((1.5, -2.0, 0.25, 3.0),), role="identity_bf16"),
    Row("deployed", fit=Fit(outputs=BINARY_ONLY), needs=BINARY),
)
def short_floats_right_or_refused(target: AnyTarget, model: Model, values: Any = None) -> None:
    """The server classifies scores of 16 bits correctly, or refuses to classify them."""
    if values is None:
        _expect_deployed_right_or_refused(target, model, BINARY_ONLY)
    else:
        _expect_right_or_refused(target, model, values, "binary")


@claim("classification.bool-right-or-refused", requirements="CLS-BOOL")
@rows(
    Row("", ((False, True, False, True),), role="identity_bool"),
    Row("deployed", (None,), fit=Fit(outputs=frozenset({"BOOL"}))),
)
def bool_right_or_refused(target: AnyTarget, model: Model, values: Any) -> None:
    """The server ranks BOOL scores, or refuses to classify them."""
    if values is None:
        _expect_deployed_right_or_refused(target, model, {"BOOL"})
    else:
        _expect_right_or_refused(target, model, values, "json")


def _expect_deployed_right_or_refused(target: AnyTarget, model: Model, datatypes: Collection[str]) -> None:
    """Expect a refusal, or correctly ranked classes, for a deployed model's output of these datatypes.

    Raises NotApplicableError: the output has no elements, or differs between two equal requests.
    """
    tensors = model.sample()
    right = next((one for one in model.find_outputs(tensors) if one.datatype in datatypes and one.elements), None)
    if right is None:
        raise NotApplicableError(
            f"{model.name} has no deterministic {' or '.join(sorted(datatypes))} output with elements"
        )
    count = model.limit_classes(right, None)
    wanted = [RequestedOutput(right.name, classification=count)]
    reply = target.infer(model.request(tensors, send="json", outputs=wanted))
    if is_refused(target, model, reply):
        return
    case = ClassifiedAnswer(target, model, tuple(tensors), "json", right.name, count, reply, right)
    if reply.is_over_grpc and all(_are_classes_right(*item) for item in case.split_items(right.array.byteswap())):
        raise BlockedError("the server returns raw contents in big-endian order")
    for listed, scores in case.split_items():
        if not _are_classes_right(listed, scores):
            raise UnmetError(
                f"a refusal, or {describe_classes(rank_classes(scores, len(listed)))}", describe_classes(listed), reply
            )


def _are_classes_right(listed: Sequence[ClassText], scores: Scores) -> bool:
    """Say whether classes have the order and the values of these scores."""
    return class_texts.is_in_order(listed, scores) and class_texts.has_right_values(listed, scores)


def _has_same_classes_in_fp32(target: AnyTarget, listed: Sequence[ClassText], values: Sequence[Any]) -> bool:
    """Say whether the same scores sent as FP32 get the same classes, so that the datatype is not the cause."""
    model = target.model("identity_fp32")
    if model is None:
        return False
    wanted = RequestedOutput(find_scored_output(model), classification=len(values))
    return read_classes(ask(target, model, [model.tensor(values)], wanted), wanted.name) == listed


def _block_if_misread(target: AnyTarget, tensor: Tensor) -> None:
    """Raise `BlockedError` if the server also casts these scores wrongly, so that classification is not the cause."""
    casting = target.model(f"cast_{tensor.datatype.lower()}_fp32")
    if casting is not None and not is_right(target, casting, [tensor]):
        raise BlockedError(f"the server also casts binary {tensor.datatype} elements wrongly")


def _read_classes_with_attribution(reply: Reply, name: str) -> list[ClassText]:
    """Return the classes of an output; report unreadable classes under the requirement that the output breaks."""
    with attribute_to(attribution.attribute_unreadable_output(reply, name)):
        return read_classes(reply, name)


def _expect_right_or_refused(target: AnyTarget, model: Model, values: Sequence[Any], send: Form) -> None:
    """Expect the server to rank these scores correctly, or to refuse to classify them."""
    tensor = model.tensor(values)
    scores = model.expected([tensor])[0].array
    wanted = [RequestedOutput(find_scored_output(model), classification=len(values))]
    reply = target.infer(model.request([tensor], send=send, outputs=wanted))
    if is_refused(target, model, reply):  # the reason does not matter
        return
    listed = _read_classes_with_attribution(reply, find_scored_output(model))
    if not _are_classes_right(listed, scores) and not _has_same_classes_in_fp32(target, listed, values):
        _block_if_misread(target, tensor)
        raise UnmetError(
            f"a refusal, or {describe_classes(rank_classes(scores, len(values)))}", describe_classes(listed), reply
        )


_NAN_SCORES = {"first": (math.nan, 1.0, 2.0, 3.0), "amid": (3.0, math.nan, 2.0, 5.0), "last": (3.0, 1.0, 2.0, math.nan)}


@claim("classification.nan-somewhere", requirements="CLS-NAN", role="scores")
@rows(*[Row(name, (values,), needs=BINARY) for name, values in _NAN_SCORES.items()])
def nan_somewhere(target: AnyTarget, model: Model, values: tuple[float, ...]) -> str:
    """The server places a NaN score anywhere in the ranking, or refuses the request."""
    wanted = [RequestedOutput("SCORES", classification=4)]
    reply = target.infer(model.request([model.tensor(values)], send="binary", outputs=wanted))
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    found = read_texts(reply, "SCORES")
    expect_alive(target, model)
    return str(found)


# --- misplaced parameters ---------------------------------------------------------------------------------------------

_SCORED_IN_JSON = replace(SCORED, is_json=True)
CLASSES: Mapping[str, Any] = {"classification": 2}


def _send_scores(model: Model) -> InferRequest:
    """Return a JSON request that lists no output."""
    return model.request(choose_inputs(model, find_scored_output(model))[0], send="json")


def _list_scores(model: Model) -> InferRequest:
    """Return a JSON request that lists the scored output."""
    name = find_scored_output(model)
    return model.request(choose_inputs(model, name)[0], send="json", outputs=[name])


# The same over gRPC, where a parameter names the kind of its value.
_ON_THE_CALL = Set("parameters.classification.int64_param", CLASSES["classification"])
_ON_AN_INPUT = Set("inputs.0.parameters.classification.int64_param", CLASSES["classification"])


@claim("classification.parameter-at-another-place-classifies-nothing", requirements="CLS-ONLY", role="scores")
@rows(
    Row(
        "on-the-request", (WrongRequest(_send_scores, (Set("parameters", CLASSES),)), _ON_THE_CALL), fit=_SCORED_IN_JSON
    ),
    ("on-the-request-of-a-listed-output", WrongRequest(_list_scores, (Set("parameters", CLASSES),)), _ON_THE_CALL),
    ("on-an-input", WrongRequest(_send_scores, (Set("inputs.0.parameters", CLASSES),)), _ON_AN_INPUT),
    Row(
        "beside-the-parameters",
        (WrongRequest(_list_scores, (update("outputs.0", **CLASSES),)), None),
        fit=_SCORED_IN_JSON,
        only=Only(HTTP, "a message of protobuf has no other fields than its own"),
    ),
)
def parameter_at_another_place_classifies_nothing(
    target: AnyTarget, model: Model, request: WrongRequest, edit_call: Set | None
) -> str:
    """The server ignores or refuses a misplaced parameter `classification`, or obeys it correctly."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name)
    start, valid, wrong = request.start(model), request.build_valid(model), request(model)
    if isinstance(target, GrpcTarget) and isinstance(start, InferRequest):
        valid, wrong = make_infer_message(start), make_infer_message(start, edit_call)
    reply = target.send(wrong, fresh=True)
    if is_refused(target, model, reply, advises_status=True):
        return f"refused: {reply.outcome()}" if reply.is_over_grpc else f"refused with {reply.status}"
    if is_met(lambda: expect(reply).tensors([right])):
        return "passed over"
    output = reply.answer.output(name)
    if output is not None and output.array is not None:
        classified = target.infer(model.request(tensors, send="json", outputs=[RequestedOutput(name, **CLASSES)]))
        same = Tensor(output.name, output.datatype, output.array.shape, output.array)
        if is_met(lambda: expect(classified).tensors([same])):
            return "classified by the misplaced parameter"

    def is_wrong_without_parameter() -> bool:
        return not is_met(lambda: expect(target.send(valid, fresh=True)).tensors([right]))

    with block_if(is_wrong_without_parameter, "the output is also wrong without the misplaced parameter"):
        expect(reply).tensors([right])
    return "passed over"
