"""Relations: what holds of any deployed model, whatever it computes.

One question that is asked in two forms has one answer. Each check is run on every model that is named, with inputs that
the survey found it to take (`conformance.deployed`); what it is held against is the answer to the plain request, which
is JSON both ways as far as JSON carries the tensors. Where one side can be seen alone, it is: JSON in for what is said
of outputs, JSON out for what is said of inputs. That an answer is right, no relation can tell.
"""

from __future__ import annotations

from conformance import blame
from conformance.check import Row, check, rows
from conformance.checks._answers import meets
from conformance.checks._relation_classes import (
    classes_are_the_same_as_binary_data,
    classes_are_the_sorted_output,
    classes_leave_other_outputs_alone,
)
from conformance.checks._relation_forms import (
    each_output_comes_in_its_own_form,
    listed_output_under_binary_data_output,
    output_comes_in_its_form,
)
from conformance.checks._relation_frames import (
    binary_answer_is_an_octet_stream,
    binary_answer_is_framed,
    binary_answer_is_not_chunked,
    content_length_is_that_of_the_whole_body,
    json_answer_has_no_inference_header,
    json_answer_is_application_json,
    json_outputs_have_data_and_no_size,
)
from conformance.checks._relation_raw import (
    raw_request_is_a_binary_request,
    raw_request_to_several_inputs_is_refused,
    short_raw_body_is_refused,
)
from conformance.checks._relations import (
    FEW,
    Names,
    ask,
    form,
    in_order,
    is_same,
    orders,
    same,
    several,
    some,
    speaks,
    spoken_outputs,
)
from conformance.deployed import FULL, PLAIN, Deployed
from conformance.expect import expect, refuses
from conformance.outcome import Blocked, NotApplicable, Unmet
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.finding import shown
from conformance.wire.request import INFERENCE_HEADER, Output

__all__ = [
    "binary_answer_is_an_octet_stream",
    "binary_answer_is_framed",
    "binary_answer_is_not_chunked",
    "classes_are_the_same_as_binary_data",
    "classes_are_the_sorted_output",
    "classes_leave_other_outputs_alone",
    "content_length_is_that_of_the_whole_body",
    "each_output_comes_in_its_own_form",
    "json_answer_has_no_inference_header",
    "json_answer_is_application_json",
    "json_outputs_have_data_and_no_size",
    "listed_output_under_binary_data_output",
    "output_comes_in_its_form",
    "raw_request_is_a_binary_request",
    "raw_request_to_several_inputs_is_refused",
    "short_raw_body_is_refused",
]

# --- the model, and its answers as the base protocol has them -----------------------------------------------------


@check("relations.answer-has-the-declared-outputs", answers=("OIP-OUT-ALL", "OIP-MODEL-META"))
def answer_has_the_declared_outputs(target: Target, model: Deployed) -> None:
    """A request that lists no outputs is answered with those of the model's metadata, in the datatypes given there."""
    reply = model.answer(target, PLAIN)
    if model.listed():
        reply = target.infer(model.request(send=model.sends, binary_data_output=True))
    expect(reply).answered()
    for name, datatype in model.declared.items():
        expected = f"{name} {datatype}, as the model's metadata have it"
        found = reply.answer.output(name)
        if found is None:
            listed = f"outputs {shown(list(reply.answer.names()))}"
            raise Unmet(expected, listed, reply, requirement=blame.of_output(reply, name))
        if found.datatype != datatype:
            raise Unmet(expected, f"{name} {safe(found.datatype, 40)}", reply, requirement="OIP-MODEL-META")


@check("relations.listed-outputs-come-alone", answers="OIP-OUT")
def listed_outputs_come_alone(target: Target, model: Deployed) -> None:
    """Where the request lists some of the outputs, the answer has these and no others, as it has them among all."""
    names = several(model.outputs, "output")
    for chosen in some(names)[:FEW]:
        listed = [output for output in form(model, ()) if output.name in chosen]
        reply = ask(target, model, outputs=listed)
        expect(reply).answered()
        if set(reply.answer.names()) != set(chosen):
            raise Unmet(f"outputs {shown(list(chosen))}", f"outputs {shown(list(reply.answer.names()))}", reply)
        if set(chosen) - set(model.unsteady):
            same(target, model, reply, "OIP-ANSWER", chosen)


@check("relations.answer-is-well-formed", answers=("OIP-RES", "OIP-SHAPE", "OIP-NAME", "OIP-JSON", "OIP-VER"))
@rows(("plain", PLAIN), Row("binary", (FULL,), needs=("binary_tensor_data",)))
def answer_is_well_formed(target: Target, model: Deployed, which: str) -> None:
    """The JSON of an answer is JSON, and has what an inference answer has."""
    reply = model.answer(target, which)
    expect(reply, "OIP-JSON").free_of("json-invalid", "json-not-utf8")
    for requirement in ("OIP-RES", "OIP-SHAPE", "OIP-NAME", "OIP-VER"):
        try:
            meets(reply, requirement)
        except Unmet as unmet:
            unmet.requirement = unmet.requirement or requirement
            raise
    expect(reply, "OIP-SHAPE").free_of("data-count")


# --- inputs -------------------------------------------------------------------------------------------------------


@check("relations.binary-inputs-are-json-inputs", answers="BIN-EQ-I")
def binary_inputs_are_json_inputs(target: Target, model: Deployed) -> None:
    """Inputs give the same outputs whether they come as JSON or as binary data."""
    speaks(model)
    if not model.spoken_inputs:
        raise NotApplicable("JSON carries no input")
    same(target, model, ask(target, model, send=model.spoken_inputs))


@check("relations.inputs-in-any-order", answers="BIN-ORD-I")
def inputs_in_any_order(target: Target, model: Deployed) -> None:
    """Binary inputs give the same outputs in whatever order the request lists them."""
    names = several(model.inputs, "input")
    _goes_by_name(target, model, names)
    for order in orders(names):
        _as_if_declared(target, model, ask(target, model, in_order(model, order), send=names))


def _goes_by_name(target: Target, model: Deployed, names: Names) -> None:
    """Expect that the model itself tells its inputs by their names: JSON inputs in another order are the same.

    Inputs that JSON does not carry keep their order among themselves, so that their bytes do.

    Raises:
        NotApplicable: it does not, or nobody knows.
    """
    speaks(model)
    if not model.spoken_inputs:
        raise NotApplicable("JSON carries no input, so that nobody knows whether the model itself goes by order")
    spoken = model.spoken_inputs[::-1]
    order = next(order for order in ((*spoken, *model.sends), (*model.sends, *spoken)) if order != names)
    if not is_same(target, model, ask(target, model, in_order(model, order))):
        raise NotApplicable("the model goes by the order of its inputs, not by their names, in plain JSON too")


def _as_if_declared(target: Target, model: Deployed, reply: Reply) -> None:
    """Expect the outputs of the plain answer, unless all inputs as binary data in declared order change them too."""
    try:
        same(target, model, reply)
    except Unmet:
        if not is_same(target, model, ask(target, model, send=model.inputs)):
            raise Blocked("all inputs as binary data, in declared order, give other outputs too") from None
        raise


@check("relations.json-inputs-beside-binary-ones", answers="BIN-MIX-I")
def json_inputs_beside_binary_ones(target: Target, model: Deployed) -> None:
    """Inputs give the same outputs where some of them come as JSON and others as binary data."""
    speaks(model)
    for chosen in some(several(model.inputs, "input", model.spoken_inputs)):
        _as_if_declared(target, model, ask(target, model, send=chosen))


# --- outputs ------------------------------------------------------------------------------------------------------


@check("relations.binary-outputs-are-json-outputs", answers="BIN-EQ-O")
def binary_outputs_are_json_outputs(target: Target, model: Deployed) -> None:
    """An output has the same datatype, shape and values whether it is returned as JSON or as binary data."""
    for name in [name for name in spoken_outputs(model)[:FEW] if name in model.steady()]:
        same(target, model, _alone(target, model, name), names=[name])


def _alone(target: Target, model: Deployed, name: str) -> Reply:
    """Ask for one output as binary data, and for no other; where it is the only one, that has been done."""
    if len(model.outputs) == 1:
        return model.answer(target, FULL)
    return ask(target, model, outputs=[Output(name, True)])


@check("relations.outputs-in-any-order", answers="BIN-ORD-O")
def outputs_in_any_order(target: Target, model: Deployed) -> None:
    """Binary outputs are the same in whatever order the request lists them."""
    names = several(model.outputs, "output")
    _as_if_alone(target, model, model.answer(target, FULL))
    for order in orders(names):
        _as_if_alone(target, model, ask(target, model, outputs=[Output(name, True) for name in order]))


def _as_if_alone(target: Target, model: Deployed, reply: Reply) -> None:
    """Expect the outputs of the plain answer, unless one differs also where it is the only binary output."""
    try:
        same(target, model, reply)
    except Unmet:
        names = model.steady()[: 2 * FEW]
        wrong = [name for name in names if not is_same(target, model, _alone(target, model, name), [name])]
        if wrong:
            raise Blocked(f"{', '.join(wrong)} as the only binary output differs too") from None
        raise


@check("relations.json-outputs-beside-binary-ones", answers="BIN-MIX-O")
def json_outputs_beside_binary_ones(target: Target, model: Deployed) -> None:
    """Outputs are the same where some of them are asked for as JSON and others as binary data."""
    speaks(model)
    for chosen in some(several(model.outputs, "output", model.spoken)):
        try:
            _as_if_alone(target, model, ask(target, model, outputs=form(model, chosen)))
        except Unmet:
            if len(chosen) > 1 and not is_same(target, model, model.answer(target, FULL)):
                raise Blocked("several binary outputs differ without JSON beside them too") from None
            raise


# --- refusals -----------------------------------------------------------------------------------------------------


@check("relations.short-body-is-refused", answers="BIN-NEG-SHORT")
@rows(("last-byte", False), ("all-bytes", True))
def short_body_is_refused(target: Target, model: Deployed, every: bool) -> None:
    """A binary request that lacks the last of its binary data, or all, is refused, and the next good one answered."""
    message = model.request(outputs=model.listed()).message()
    if len(message.body) == message.json_length:
        raise NotApplicable("the model's inputs have no bytes")
    refuses(target, model, message.with_body(message.body[: message.json_length if every else -1]))


@check("relations.missing-header-is-refused", answers="BIN-IHCL-MISSING")
def missing_header_is_refused(target: Target, model: Deployed) -> None:
    """A binary request without inference header is refused, and the next good one answered."""
    message = model.request(outputs=model.listed()).message()
    if len(message.body) == message.json_length:
        raise NotApplicable("the model's inputs have no bytes")
    refuses(target, model, message.with_header(INFERENCE_HEADER, None))


@check("relations.header-beyond-the-body-is-refused", answers="BIN-NEG-IHCL-LONG")
def header_beyond_the_body_is_refused(target: Target, model: Deployed) -> None:
    """A binary request whose inference header exceeds its body is refused, and the next good one answered."""
    message = model.request(outputs=model.listed()).message()
    refuses(target, model, message.with_header(INFERENCE_HEADER, str(len(message.body) + 1)))
