"""Requests that cannot be executed, or that contradict a model's metadata, are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conformance.checks.errors.impossible_requests import (
    MISNAMED_INPUTS,
    ONE_INPUT,
    REFUSALS,
    SPECIAL_CHARACTERS,
    list_first_output,
)
from conformance.checks.errors.tolerated_inputs import MODEL_TOLERANCE, are_values_equal
from conformance.checks.support.inputs import find_distinct_model, sample_inputs
from conformance.checks.support.refusals import Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_call_refusals, send_typed_contents, with_own_names
from conformance.expect.refusals import expect_refusal, expect_refusal_or_right
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import JSON
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.edits import Drop, Repeat, Set, cut, plus, update
from conformance.wire.json_data import flatten
from conformance.wire.message_edits import Body
from conformance.wire.tensor import Tensor

# --- calls with one fault ---------------------------------------------------------------------------------------------


# A server may assign the misnamed input to the only input that is missing.
_MISNAMED_INPUTS = (
    Fault(
        "needed-input-under-an-unknown-name",
        "identity_int32",
        Set("inputs.0.name", "THERE_IS_NO_SUCH_INPUT"),
        ONE_INPUT,
        unknown=True,
    ),
    Fault(
        "input-in-lower-case",
        "identity_int32",
        Set("inputs.0.name", str.lower),
        start=with_own_names(send_typed_contents),
        unknown=True,
    ),
    Fault(
        "further-input-in-lower-case",
        "add_sub",
        (
            Repeat("inputs.0"),
            Set("inputs.-1.name", str.lower),
            Set("inputs.-1.contents", {"int_contents": [70, 80, 90]}),
        ),
        start=with_own_names(send_typed_contents),
        unknown=True,
    ),
)
IMPOSSIBLE_CALLS = (
    Fault("unknown-model", "identity_int32", Set("model_name", "there-is-no-such-model"), JSON, unknown=True),
    Fault("unknown-model-with-signs", "identity_int32", Set("model_name", SPECIAL_CHARACTERS), unknown=True),
    Fault(
        "unknown-output", "identity_int32", Set("outputs", [{"name": "THERE_IS_NO_SUCH_OUTPUT"}]), JSON, unknown=True
    ),
    Fault(
        "output-in-lower-case",
        "identity_int32",
        Set("outputs.0.name", str.lower),
        start=with_own_names(list_first_output),
        unknown=True,
    ),
    Fault("no-inputs", "identity_int32", Drop("inputs")),  # those of a deployed model may be optional
    Fault("needed-input-missing", "add_sub", Drop("inputs.-1")),
    Fault("cut-message", "identity_int32", Body(cut(2)), unknown=True),
    Fault("no-message", "identity_int32", Body(b"\xff\xff\xff"), JSON, unknown=True),
    Fault("json-for-a-message", "identity_int32", Body(b'{"inputs":[]}'), unknown=True),
)
_FLOATS = {"fp32_contents": [1.0, 2.0, 3.0]}
_FURTHER_INPUT = {"name": "FURTHER", "datatype": "INT32", "shape": [1], "contents": {"int_contents": [1]}}
METADATA_CONFLICTS = (
    Fault("another-datatype", "identity_int32", update("inputs.0", datatype="FP32", contents=_FLOATS)),
    Fault("unknown-datatype", "identity_int32", Set("inputs.0.datatype", "INT33"), JSON),
    Fault("another-shape", "fixed", Set("inputs.0.shape", [3, 2])),
    Fault("another-rank", "fixed", Set("inputs.0.shape", [6])),
    Fault("negative-shape", "identity_int32", Set("inputs.0.shape", [-3])),
    Fault("further-input", "identity_int32", Set("inputs", plus([_FURTHER_INPUT])), unknown=True),
)
MISNAMED_INPUTS_OVER_GRPC = make_call_refusals(
    "OIP-SIGNATURE/grpc", send_typed_contents, _MISNAMED_INPUTS, sample_inputs
)
REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (
    *MISNAMED_INPUTS_OVER_GRPC,
    *make_call_refusals("OIP-REFUSAL/grpc", send_typed_contents, IMPOSSIBLE_CALLS),
    *make_call_refusals("OIP-SIGNATURE/grpc", send_typed_contents, METADATA_CONFLICTS),
)


# --- refusals ---------------------------------------------------------------------------------------------------------


@check("errors.impossible-request-has-an-error-status", requirements="OIP-REFUSAL")
@rows(*make_refusal_rows(REFUSALS, "OIP-REFUSAL"))
@check("grpc.impossible-calls-are-refused", requirements="OIP-REFUSAL/grpc", over=(GRPC,))
@rows(*make_refusal_rows(REFUSALS_OVER_GRPC, "OIP-REFUSAL/grpc"))
def impossible_request_has_an_error_status(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses a request that it cannot carry out."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check(
    "errors.word-for-an-integer-is-refused",
    requirements="OIP-RANGE",
    only=Only(HTTP, "typed contents of integers have no words"),
)
@rows(*make_refusal_rows(REFUSALS, "OIP-RANGE"))
def word_for_an_integer_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a word or null in place of an element, and an integer beyond the range of its datatype."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


def _list_refused_or_intended_rows(refusals: Iterable[Refusal], *requirements: str) -> list[Row]:
    """Return rows for requests that a server should refuse, but may also answer as intended."""
    return [replace(row, requirements=()) for row in make_refusal_rows(refusals, *requirements)]


@check(
    "errors.text-beyond-json-is-refused",
    requirements=("OIP-REFUSAL", "OIP-JSON-STRICT"),
    only=Only(HTTP, "text beyond JSON is a spelling of JSON"),
)
@rows(*_list_refused_or_intended_rows(REFUSALS, "OIP-JSON-STRICT"))
def text_beyond_json_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses text that is almost JSON, or reads it as the client intends."""
    _expect_refusal_or_intended(target, model, refusal)


@check("errors.misnamed-input-is-refused", requirements=("OIP-REFUSAL", "OIP-SIGNATURE"))
@rows(*_list_refused_or_intended_rows(MISNAMED_INPUTS))
@check("grpc.misnamed-input-is-refused", requirements=("OIP-REFUSAL/grpc", "OIP-SIGNATURE/grpc"), over=(GRPC,))
@rows(*_list_refused_or_intended_rows(MISNAMED_INPUTS_OVER_GRPC))
def misnamed_input_is_refused(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses an input with a wrong name, or reads it as the client intends."""
    _expect_refusal_or_intended(target, model, refusal)


def _expect_refusal_or_intended(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """Expect a refusal, or the correct answer for the tensors that the request intends.

    A server that ignores the tensors may give one correct answer by chance, so a deployed model is asked again with
    tensors of another answer.
    """
    must, should = "OIP-REFUSAL", refusal.requirement

    def expect_with(tried: Model) -> None:
        message, carried = refusal.message(tried), refusal.list_tensors(tried)
        expect_refusal_or_right(target, tried, message, carried, refusal.described, must=must, should=should)

    try:
        expect_with(model)
    except UnmetError as unmet:
        if not model.is_deployed or unmet.requirement != should:
            raise
        expect_with(find_distinct_model(model))
        raise


@check("errors.input-against-the-metadata-is-refused", requirements="OIP-SIGNATURE")
@rows(*make_refusal_rows([one for one in REFUSALS if one not in MISNAMED_INPUTS], "OIP-SIGNATURE"))
@check("grpc.input-against-the-metadata-is-refused", requirements="OIP-SIGNATURE/grpc", over=(GRPC,))
@rows(
    *make_refusal_rows(
        [one for one in REFUSALS_OVER_GRPC if one not in MISNAMED_INPUTS_OVER_GRPC], "OIP-SIGNATURE/grpc"
    )
)
def input_against_the_metadata_is_refused(target: AnyTarget, model: Model, refusal: Refusal) -> None:
    """The server refuses an input that the model's metadata do not declare, or declare differently."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("errors.negative-dimension-is-refused", requirements=("OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"))
@rows(*_list_refused_or_intended_rows(REFUSALS, "OIP-DIMENSION-NEGATIVE"))
def negative_dimension_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses an input with a negative dimension, or at least reads its elements correctly."""
    carried = refusal.list_tensors(model)
    must, should = "OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"
    message = refusal.message(model)
    try:
        expect_refusal_or_right(target, model, message, carried, refusal.described, must=must, should=should)
    except UnmetError as unmet:
        if unmet.requirement != should and unmet.reply and _has_elements(unmet.reply, model.expected(carried)):
            unmet.requirement = should  # the answer repeats the shape of the request
        raise


def _has_elements(reply: Reply, tensors: Iterable[Tensor]) -> bool:
    """Return whether the JSON data of an answer are the elements of these tensors, whatever their shapes are."""
    listed = (reply.answer.document or {}).get("outputs", ())
    data = {output.name: listed[output.index].get("data") for output in reply.answer.outputs}
    return all(
        isinstance(found := data.get(tensor.name), list)
        and are_values_equal(flatten(found, ()), tensor.array.reshape(-1).tolist(), MODEL_TOLERANCE, tensor.tolerance)
        for tensor in tensors
    )


@check("errors.data-nested-otherwise-are-refused", requirements=("OIP-NESTING-SAFE", "OIP-NESTING"))
@rows(*make_refusal_rows(REFUSALS, "OIP-NESTING"))
def data_nested_otherwise_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses data nested differently from the shape, or at least reads the elements in order."""
    expect_fault_refused(target, model, refusal)


@check("errors.incomplete-request-is-refused", requirements="OIP-MEMBER-MISSING")
@rows(*make_refusal_rows(REFUSALS, "OIP-MEMBER-MISSING"))
def incomplete_request_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request whose members are missing or have another type than their object defines."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("errors.repeated-tensor-is-refused", requirements="OIP-TWICE")
@rows(*make_refusal_rows(REFUSALS, "OIP-TWICE"))
def repeated_tensor_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request that gives an input twice or lists an output twice."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
