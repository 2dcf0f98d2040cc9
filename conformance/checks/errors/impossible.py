"""Requests that cannot be executed, or that contradict a model's metadata, are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conformance.checks.errors.impossible_requests import MISNAMED_INPUTS, REFUSALS, SPECIAL_CHARACTERS
from conformance.checks.support.deployed_models import find_distinct_model
from conformance.checks.support.over_grpc import change_nothing, make_faulty_call, set_shape, set_typed_contents
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import sample_inputs
from conformance.expect.refusals import expect_refusal, expect_refusal_or_right
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import JSON, Fit
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.grpc_request import Edit, Pb

# --- calls with one fault ---------------------------------------------------------------------------------------------


def _name_unknown_model(request: Pb) -> None:
    request.model_name = "there-is-no-such-model"


def _name_model_with_special_characters(request: Pb) -> None:
    request.model_name = SPECIAL_CHARACTERS


def _request_unknown_output(request: Pb) -> None:
    request.outputs.add(name="THERE_IS_NO_SUCH_OUTPUT")


def _name_unknown_input(request: Pb) -> None:
    request.inputs[0].name = "THERE_IS_NO_SUCH_INPUT"


def _delete_inputs(request: Pb) -> None:
    del request.inputs[:]


def _delete_last_input(request: Pb) -> None:
    del request.inputs[-1]


def _make_datatype_setter(datatype: str) -> Edit:
    def set_datatype(request: Pb) -> None:
        request.inputs[0].datatype = datatype

    return set_datatype


def _add_unknown_input(request: Pb) -> None:
    entry = request.inputs.add(name="FURTHER", datatype="INT32", shape=[1])
    entry.contents.int_contents.append(1)


def _change_input_to_floats(request: Pb) -> None:
    request.inputs[0].datatype = "FP32"
    set_typed_contents("fp32_contents", 1.0, 2.0, 3.0)(request)


MISNAMED_INPUTS_OVER_GRPC: tuple[Refusal, ...] = (
    replace(
        make_faulty_call(
            "needed-input-under-an-unknown-name",
            "OIP-SIGNATURE/grpc",
            "identity_int32",
            _name_unknown_input,
            unknown=True,
        ),
        tensors=sample_inputs,
        fit=Fit(max_inputs=1, is_json=True),  # if a model has several inputs, the first may be optional
    ),
)
_FAULTY_CALLS: tuple[Refusal, ...] = (
    make_faulty_call("unknown-model", "OIP-REFUSAL/grpc", "identity_int32", _name_unknown_model, unknown=True),
    make_faulty_call(
        "unknown-model-with-signs",
        "OIP-REFUSAL/grpc",
        "identity_int32",
        _name_model_with_special_characters,
        unknown=True,
    ),
    make_faulty_call("unknown-output", "OIP-REFUSAL/grpc", "identity_int32", _request_unknown_output, unknown=True),
    make_faulty_call("no-inputs", "OIP-REFUSAL/grpc", "identity_int32", _delete_inputs),
    make_faulty_call("needed-input-missing", "OIP-REFUSAL/grpc", "add_sub", _delete_last_input),
    make_faulty_call(
        "cut-message", "OIP-REFUSAL/grpc", "identity_int32", change_nothing, body=lambda body: body[:-2], unknown=True
    ),
    make_faulty_call(
        "no-message", "OIP-REFUSAL/grpc", "identity_int32", change_nothing, body=lambda _: b"\xff\xff\xff", unknown=True
    ),
    make_faulty_call(
        "json-for-a-message",
        "OIP-REFUSAL/grpc",
        "identity_int32",
        change_nothing,
        body=lambda _: b'{"inputs":[]}',
        unknown=True,
    ),
    make_faulty_call("another-datatype", "OIP-SIGNATURE/grpc", "identity_int32", _change_input_to_floats),
    make_faulty_call("unknown-datatype", "OIP-SIGNATURE/grpc", "identity_int32", _make_datatype_setter("INT33")),
    make_faulty_call("another-shape", "OIP-SIGNATURE/grpc", "fixed", set_shape(3, 2)),
    make_faulty_call("another-rank", "OIP-SIGNATURE/grpc", "fixed", set_shape(6)),
    make_faulty_call("negative-shape", "OIP-SIGNATURE/grpc", "identity_int32", set_shape(-3)),
    make_faulty_call("further-input", "OIP-SIGNATURE/grpc", "identity_int32", _add_unknown_input, unknown=True),
)
# Faults that do not depend on a role's signature; these also go to deployed models.
_FAULTS_OF_ANY_MODEL = ("unknown-model", "unknown-output", "no-inputs", "no-message", "unknown-datatype")
REFUSALS_OVER_GRPC: tuple[Refusal, ...] = (
    *MISNAMED_INPUTS_OVER_GRPC,
    *[replace(call, fit=JSON if call.fault in _FAULTS_OF_ANY_MODEL else None) for call in _FAULTY_CALLS],
)


# --- refusals ---------------------------------------------------------------------------------------------------------


@check("errors.impossible-request-has-an-error-status", answers="OIP-REFUSAL")
@rows(*make_refusal_rows(REFUSALS, "OIP-REFUSAL"))
@check("grpc.impossible-calls-are-refused", answers="OIP-REFUSAL/grpc", over=(GRPC,))
@rows(*make_refusal_rows(REFUSALS_OVER_GRPC, "OIP-REFUSAL/grpc"))
def impossible_request_has_an_error_status(target: Peer, model: Model, refusal: Refusal) -> None:
    """The server refuses a request that it cannot carry out."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check(
    "errors.word-for-an-integer-is-refused",
    answers="OIP-RANGE",
    only=Only(HTTP, "typed contents of integers have no words"),
)
@rows(*make_refusal_rows(REFUSALS, "OIP-RANGE"))
def word_for_an_integer_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a word in place of a number, and an integer beyond the range of its datatype."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


def _list_refused_or_intended_rows(refusals: Iterable[Refusal], *requirements: str) -> list[Row]:
    """Return rows for requests that a server should refuse, but may also answer as intended."""
    return [replace(row, answers=()) for row in make_refusal_rows(refusals, *requirements)]


@check(
    "errors.text-beyond-json-is-refused",
    answers=("OIP-REFUSAL", "OIP-JSON-STRICT"),
    only=Only(HTTP, "text beyond JSON is a spelling of JSON"),
)
@rows(*_list_refused_or_intended_rows(REFUSALS, "OIP-JSON-STRICT"))
def text_beyond_json_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses text that is almost JSON, or reads it as the client intends."""
    _expect_refusal_or_intended(target, model, refusal)


@check("errors.misnamed-input-is-refused", answers=("OIP-REFUSAL", "OIP-SIGNATURE"))
@rows(*_list_refused_or_intended_rows(MISNAMED_INPUTS))
@check("grpc.misnamed-input-is-refused", answers=("OIP-REFUSAL/grpc", "OIP-SIGNATURE/grpc"), over=(GRPC,))
@rows(*_list_refused_or_intended_rows(MISNAMED_INPUTS_OVER_GRPC))
def misnamed_input_is_refused(target: Peer, model: Model, refusal: Refusal) -> None:
    """The server refuses an input with a wrong name, or reads it as the client intends."""
    _expect_refusal_or_intended(target, model, refusal)


def _expect_refusal_or_intended(target: Peer, model: Model, refusal: Refusal) -> None:
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
        if not model.is_own_oracle or unmet.requirement != should:
            raise
        expect_with(find_distinct_model(model))
        raise


@check("errors.input-against-the-metadata-is-refused", answers="OIP-SIGNATURE")
@rows(*make_refusal_rows([one for one in REFUSALS if one not in MISNAMED_INPUTS], "OIP-SIGNATURE"))
@check("grpc.input-against-the-metadata-is-refused", answers="OIP-SIGNATURE/grpc", over=(GRPC,))
@rows(
    *make_refusal_rows(
        [one for one in REFUSALS_OVER_GRPC if one not in MISNAMED_INPUTS_OVER_GRPC], "OIP-SIGNATURE/grpc"
    )
)
def input_against_the_metadata_is_refused(target: Peer, model: Model, refusal: Refusal) -> None:
    """The server refuses an input that the model's metadata do not declare, or declare differently."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("errors.negative-dimension-is-refused", answers=("OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"))
@rows(*_list_refused_or_intended_rows(REFUSALS, "OIP-DIMENSION-NEGATIVE"))
def negative_dimension_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses an input with a negative dimension, or at least reads its elements correctly."""
    carried = refusal.list_tensors(model)
    must, should = "OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"
    expect_refusal_or_right(target, model, refusal.message(model), carried, refusal.described, must=must, should=should)


@check("errors.data-nested-otherwise-are-refused", answers=("OIP-NESTING-SAFE", "OIP-NESTING"))
@rows(*make_refusal_rows(REFUSALS, "OIP-NESTING"))
def data_nested_otherwise_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses data nested differently from the shape, or at least reads the elements in order."""
    expect_refused(target, model, refusal)


@check("errors.incomplete-request-is-refused", answers="OIP-MEMBER-MISSING")
@rows(*make_refusal_rows(REFUSALS, "OIP-MEMBER-MISSING"))
def incomplete_request_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses an input without name, shape or datatype, and an output without name."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("errors.repeated-tensor-is-refused", answers="OIP-TWICE")
@rows(*make_refusal_rows(REFUSALS, "OIP-TWICE"))
def repeated_tensor_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request that gives an input twice or lists an output twice."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
