"""Expect correct outputs of a model, and decide by control requests whose fault a wrong answer is.

A control request differs from the failing request in one thing: it has JSON or typed contents in place of binary data,
fewer binary tensors, one output, other elements or another order, or it is the same request once more. If the control
gets a wrong answer too, that thing is not the cause, and the row is blocked or names another requirement.

The model of a role computes the expected outputs. Those of a deployed model are its answer to the plain request
(`discovery.control_answers`), so that JSON, or typed contents over gRPC, is a control that it has passed already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conformance.checks.support.changed_tensors import are_different
from conformance.checks.support.datatypes import get_identity_role
from conformance.checks.support.inputs import make_distinct_tensor, require_distinguished_inputs
from conformance.discovery.control_answers import read_outputs
from conformance.discovery.deployed_model import DeclinedError
from conformance.expect.difference import are_distinct, find_difference
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal_status
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import is_busy
from conformance.transport.exchange import Reply
from conformance.transport.target import BUSY_PAUSES_S
from conformance.wire.datatypes import DATATYPES
from conformance.wire.request import Form, RequestedOutput
from conformance.wire.tensor import Tensor

Array = NDArray[Any]
ArrayChange = Callable[[Array], Array]
Side = Literal["read", "written", "both", "neither"]

ANY_DATATYPE = frozenset(DATATYPES)
MAX_OUTPUTS = 8  # outputs that are requested one by one: some models have very many
MAX_CHANGED_OUTPUTS = 4  # outputs that are judged for one fault

# Which directions of an exchange use binary data: request, answer, both (for values that JSON cannot represent), or none.
SIDES: dict[Side, dict[str, Any]] = {
    "read": {"send": "binary"},
    "written": {"send": "json", "want": "binary"},
    "both": {"send": "binary", "want": "binary"},
    "neither": {"send": "json"},
}

# --- the answer of a model --------------------------------------------------------------------------------------------


def compute_outputs(model: Model, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the expected outputs of a model: computed for a role, the answer to the plain request otherwise."""
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        return model.find_outputs(tensors)


def expect_outputs(reply: Reply, model: Model, tensors: Sequence[Tensor], *, is_json: bool = False) -> None:
    """Expect a reply to contain the correct outputs for these inputs.

    `is_json` says whether the values were sent as JSON, which permits a tolerance: outputs in JSON always have one. Over
    gRPC, floats must be exact, except those of deployed models.
    """
    expect(reply).tensors(compute_outputs(model, tensors), through_json=_find_tolerance(reply, is_json=is_json))


def expect_right(
    target: AnyTarget,
    model: Model,
    tensors: Sequence[Tensor],
    send: Form | Collection[str] = "binary",
    want: Form | None = None,
    outputs: Sequence[RequestedOutput | str] | None = None,
) -> Reply:
    """Send inputs to a model over either transport, expect the correct outputs, and return the reply.

    For `send`, `want` and `outputs` see `Model.request`. Inputs and outputs that JSON cannot represent are always
    binary data. If `outputs` lists some outputs, only they are expected.
    """
    right = compute_outputs(model, tensors)  # before sending: a deployed model may not accept the inputs
    listed = model.build_outputs_member() if outputs is None and want is None else outputs
    sent = send if isinstance(send, str) else {*send, *model.binary_inputs}
    reply = target.infer(model.request(tensors, send=sent, want=want, outputs=listed))
    if outputs is not None:
        names = {output if isinstance(output, str) else output.name for output in outputs}
        right = tuple(tensor for tensor in right if tensor.name in names)
    expect(reply).tensors(right, through_json=_find_tolerance(reply, is_json=send != "binary"))
    return reply


def _find_tolerance(reply: Reply, *, is_json: bool) -> bool | None:
    """Return `through_json` of an expectation: values are approximate over HTTP if they were sent as JSON."""
    return False if reply.is_over_grpc else is_json or None


def is_right(
    target: AnyTarget,
    model: Model,
    tensors: Sequence[Tensor],
    send: Form | Collection[str] = "binary",
    want: Form | None = None,
    outputs: Sequence[RequestedOutput | str] | None = None,
) -> bool:
    """Say whether a request gets the correct outputs; False if a deployed model does not accept the inputs.

    The request is repeated after pauses if the server is busy, perhaps with loading the model, which says nothing about
    the outputs. For the arguments see `expect_right`.
    """
    for pause_s in (*BUSY_PAUSES_S, None):
        try:
            expect_right(target, model, tensors, send, want, outputs)
        except DeclinedError:
            return False
        except UnmetError as unmet:
            if pause_s is None or unmet.reply is None or not is_busy(unmet.reply):
                return False
            target.pause(pause_s)
        else:
            return True
    raise AssertionError  # the last attempt returns


def is_wrong_if_accepted(expectation: Callable[[], object]) -> bool:
    """Say whether an expectation is unmet; return False if the model does not accept the inputs."""
    try:
        return not is_met(expectation)
    except NotApplicableError:
        return False


def is_side_right(target: AnyTarget, model: Model, tensors: Sequence[Tensor], side: Side) -> bool:
    """Say whether the server returns correct outputs in an exchange with binary data on `side`."""
    return is_right(target, model, tensors, **SIDES[side])


# --- binary data in one direction -------------------------------------------------------------------------------------


def expect_side(target: AnyTarget, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect correct outputs of a role for values that JSON can carry, with binary data on `side`; see `SIDES`."""
    with _let_both_sides_decide(target, model, tensors):
        expect_right(target, model, tensors, **SIDES[side])


@contextmanager
def _let_both_sides_decide(target: AnyTarget, model: Model, tensors: Sequence[Tensor]) -> Iterator[None]:
    """After a failure, let an exchange with binary data in both directions decide, if the JSON answer is wrong as well.

    A server may change some values when it reads or writes JSON. What is expected of a deployed model is its JSON
    answer.
    """
    try:
        yield
    except UnmetError:
        if model.is_deployed or is_side_right(target, model, tensors, "neither"):
            raise
        expect_right(target, model, tensors, **SIDES["both"])


def expect_read(
    target: AnyTarget,
    model: Model,
    tensors: Sequence[Tensor],
    misread: Sequence[Tensor] | None = None,
    plain: Sequence[Tensor] | None = None,
    datatypes: Collection[str] = ANY_DATATYPE,
) -> None:
    """Expect correct outputs if the inputs of some datatypes are binary data, and all other tensors are JSON.

    `model`: the model of a role, or a deployed model.
    `misread`: the inputs as a server with the fault under test reads them; None if each fault shows.
    `plain`: inputs that a server with that fault still reads correctly; None if there are no such inputs.
    `datatypes`: the datatypes of the inputs that are sent as binary data.

    Raises:
        NotApplicableError: JSON carries no input of these datatypes, or the model gives the same answer to `tensors`
            and `misread`.
        BlockedError: the answer to `plain` is wrong as well, or the answer is wrong if only inputs of other datatypes
            are binary data.
    """
    names = [one.name for one in tensors if one.datatype in datatypes and one.name not in model.binary_inputs]
    if not names:
        raise NotApplicableError(
            f"no control request is possible: JSON cannot represent the inputs of {model.name} with a tested datatype"
        )
    if misread is not None:
        require_distinguished_inputs(model, tensors, misread)
    with (
        _let_both_sides_decide(target, model, tensors),
        block_if(
            lambda: _are_other_inputs_wrong(target, model, tensors, plain, names),
            "the server also misreads inputs without the property under test",
        ),
    ):
        expect_right(target, model, tensors, names)


@contextmanager
def attribute_to_strings(target: AnyTarget, model: Model, tensors: Sequence[Tensor]) -> Iterator[None]:
    """Attribute a failure to the requirement on BYTES inputs, if binary data of all others are read correctly."""
    try:
        yield
    except UnmetError as unmet:
        others = [tensor.name for tensor in tensors if tensor.datatype != "BYTES"]
        if unmet.requirement is None and len(others) < len(tensors) and is_right(target, model, tensors, others):
            unmet.requirement = "BIN-BYTES-I"
        raise


def _are_other_inputs_wrong(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], plain: Sequence[Tensor] | None, names: Collection[str]
) -> bool:
    """Say whether the answer to `plain` is wrong, or the answer if only inputs outside `names` are binary data."""
    others = [tensor.name for tensor in tensors if tensor.name not in (*names, *model.binary_inputs)]
    if others and not is_right(target, model, tensors, others):
        return True
    if plain is None or not are_different(tensors, plain):
        return False
    return is_wrong_if_accepted(lambda: expect_right(target, model, plain, names))


def expect_written(
    target: AnyTarget,
    model: Model,
    tensors: Sequence[Tensor],
    apply_fault: ArrayChange | None = None,
    plain: Sequence[Tensor] | None = None,
    datatypes: Collection[str] = ANY_DATATYPE,
    free_of: Sequence[str] = (),
) -> None:
    """Expect correct outputs of some datatypes as binary data, each requested alone, for inputs in JSON.

    `model`: the model of a role, or a deployed model.
    `apply_fault`: changes elements as the fault under test does, or undoes this change; None if any difference counts
    as the fault.
    `plain`: inputs with outputs that a server with the fault under test writes correctly; None if none are known.
    `datatypes`: the datatypes of the outputs that are requested as binary data.
    `free_of`: kinds of faults that no answer may have: keys of `wire.finding.KINDS`.

    Raises:
        NotApplicableError: JSON carries no output of these datatypes, or `apply_fault` changes no output.
        BlockedError: an output is JSON, or wrong, but not as `apply_fault` describes, or wrong for `plain` as well.
    """
    for right in _find_changed_outputs(model, tensors, apply_fault, datatypes):
        reply = request_single_output(target, model, tensors, right.name)
        output = reply.answer.output(right.name)
        if output is not None and not (output.binary or reply.is_over_grpc):
            raise BlockedError(f"the server returns {right.name} as JSON")
        with (
            _let_both_sides_decide(target, model, tensors),
            block_if(
                lambda: plain is not None and not is_side_right(target, model, plain, "written"),
                "elements without the property under test also give wrong outputs",
            ),
            block_if(
                partial(_is_wrong_otherwise, right, reply, apply_fault),
                f"{right.name} is wrong for another reason than the fault under test",
            ),
        ):
            expect(reply).free_of(*free_of).tensors([right], through_json=True)


def request_single_output(target: AnyTarget, model: Model, tensors: Sequence[Tensor], name: str) -> Reply:
    """Request a single output as binary data; the inputs are JSON if JSON can carry them."""
    return target.infer(model.request(tensors, send="json", outputs=[RequestedOutput(name, True)]))


def is_output_written_alone(target: AnyTarget, model: Model, tensors: Sequence[Tensor], name: str) -> bool:
    """Say whether the server returns the correct output if only this output is requested, as binary data."""
    return is_right(target, model, tensors, "json", outputs=[RequestedOutput(name, True)])


def _find_changed_outputs(
    model: Model, tensors: Sequence[Tensor], apply_fault: ArrayChange | None, datatypes: Collection[str]
) -> list[Tensor]:
    """Return up to `MAX_CHANGED_OUTPUTS` expected outputs of these datatypes that `apply_fault` changes."""
    expected = compute_outputs(model, tensors)
    found = [right for right in expected if right.datatype in datatypes and right.name not in model.binary_outputs]
    if not found:
        raise NotApplicableError(
            f"no control request is possible: JSON cannot represent the outputs of {model.name} with a tested datatype"
        )
    changed = [
        right
        for right in found
        if apply_fault is None or are_distinct(right, replace(right, array=apply_fault(right.array)))
    ]
    if not changed:
        raise NotApplicableError(f"the outputs of {model.name} are the same with and without the fault under test")
    return changed[:MAX_CHANGED_OUTPUTS]


def _is_wrong_otherwise(right: Tensor, reply: Reply, apply_fault: ArrayChange | None) -> bool:
    """Say whether an output is wrong in another way than `apply_fault` describes; False if it is None."""
    if apply_fault is None:
        return False
    output = reply.answer.output(right.name) if reply.succeeded else None
    if output is None or output.array is None or output.array.shape != right.shape:
        return True
    return find_difference(right, replace(output, array=apply_fault(output.array)), reply.body) is not None


NO_BINARY_REQUEST = "the server answers no request with binary data"


def is_binary_refused(target: AnyTarget, model: Model) -> bool:
    """Say whether a deployed model refuses a plain binary request; False for the model of a role."""
    return model.is_deployed and not target.infer(model.request(outputs=model.build_outputs_member())).succeeded


def is_binary_misread(target: AnyTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether a deployed model misreads these inputs as binary data; False for the model of a role."""
    return model.is_deployed and not is_right(target, model, tensors)


# --- binary data in both directions -----------------------------------------------------------------------------------


def expect_both_sides(target: AnyTarget, model: Model, tensors: Sequence[Tensor], written: str) -> None:
    """Expect correct outputs if both the request and the answer are binary data.

    `written` is the requirement on binary outputs. A failure is attributed to this requirement if the answer is at
    fault: the same binary inputs give correct JSON outputs, or JSON inputs give wrong binary outputs. JSON must be able
    to carry every tensor of more than one dimension.
    """
    reply = target.infer(model.request(tensors, **SIDES["both"]))
    try:
        expect_outputs(reply, model, tensors)
    except UnmetError as unmet:
        is_undecodable = any(output.array is None for output in reply.answer.outputs)
        if (
            unmet.requirement is None
            and reply.succeeded
            and (is_undecodable or _is_answer_at_fault(target, model, tensors))
        ):
            unmet.requirement = written
        raise


def _is_answer_at_fault(target: AnyTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    as_json = target.infer(model.request(tensors, **SIDES["read"]))
    if is_met(lambda: expect(as_json).tensors(compute_outputs(model, tensors), through_json=False)):
        return True
    if not model.role.is_json_capable:
        return False
    json_tensors = [
        Tensor.from_values(tensor.name, tensor.datatype, _keep_json_elements(tensor))
        if tensor.array.ndim == 1
        else tensor
        for tensor in tensors
    ]
    reply = target.infer(model.request(json_tensors, **SIDES["written"]))
    return reply.succeeded and not is_met(lambda: expect_outputs(reply, model, json_tensors, is_json=True))


def _keep_json_elements(tensor: Tensor) -> Any:
    """Return only the elements of a tensor that JSON can carry, and add a few ordinary elements."""
    if tensor.datatype == "BYTES":
        return [item.decode(errors="ignore").encode() for item in tensor.array] + ["é猫😀".encode()]
    return [*tensor.array[np.isfinite(tensor.array)], 1.5, -2.25] if tensor.array.dtype.kind == "f" else tensor.array


# --- one tensor of several --------------------------------------------------------------------------------------------


def expect_several_tensors(
    reply: Reply,
    target: AnyTarget,
    model: Model,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    side: Literal["read", "written"],
) -> None:
    """Expect correct outputs in a reply to a request with several tensors; after a failure, send each tensor alone.

    `target`: the server, for requests with a single tensor.
    `model`: the model of the message. A deployed model always receives all its inputs, so callers check its binary
    inputs in declared order first.
    `side`: whether the inputs or the outputs are binary data.

    Raises BlockedError: the outputs are also wrong for a tensor alone, and all outputs of other datatypes are right.
    """
    try:
        expect(reply).tensors(outputs)
    except UnmetError as unmet:
        several = (inputs if side == "read" else outputs)[:MAX_OUTPUTS]
        wrong = {
            tensor.datatype for tensor in several if not _is_right_without_others(target, model, inputs, tensor, side)
        }
        if not wrong:
            raise
        if reply.succeeded:
            expect(reply).tensors([output for output in outputs if output.datatype not in wrong])
        raise BlockedError(
            f"{', '.join(sorted(wrong))} sent or requested alone also gives wrong outputs", unmet
        ) from None


def _is_right_without_others(
    target: AnyTarget, model: Model, inputs: Sequence[Tensor], tensor: Tensor, side: Side
) -> bool:
    """Say whether a tensor is right alone: in an identity model, or as the only binary output of a deployed model."""
    if model.is_deployed:
        return side == "read" or is_output_written_alone(target, model, inputs, tensor.name)
    return is_right_alone(target, tensor, side)


def is_right_alone(target: AnyTarget, tensor: Tensor, side: Side) -> bool:
    """Say whether the identity model for the tensor's datatype returns the flattened tensor unchanged.

    Return True if the server has no such model.
    """
    model = target.model(get_identity_role(tensor.datatype))
    flat = tensor.array.reshape(-1)
    if side == "written" and tensor.datatype == "BYTES":  # keep only valid UTF-8: JSON carries nothing else
        flat = np.array([item.decode(errors="ignore").encode() for item in flat] or [], object)
    return model is None or is_side_right(target, model, [Tensor("INPUT", tensor.datatype, flat.shape, flat)], side)


def is_written_right(target: AnyTarget, tensor: Tensor) -> bool:
    """Say whether the server writes a tensor right that it reads as JSON, or that it reads as binary data.

    Some servers refuse strings in JSON that have a NUL.
    """
    return is_right_alone(target, tensor, "written") or is_right_alone(target, tensor, "both")


def is_carried_as_binary(target: AnyTarget, model: Model, tensors: Sequence[Tensor], side: Side) -> bool:
    """Say whether the server handles these tensors correctly in three simpler exchanges with binary data.

    The first exchange sends these tensors as binary data in both directions. The second sends only the first tensor,
    flattened. The third sends a matrix to `weighted_sum`.
    """
    weighted_sum = target.model("weighted_sum")
    return (
        is_side_right(target, model, tensors, "both")
        and is_right_alone(target, tensors[0], side)
        and (
            weighted_sum is None
            or is_side_right(target, weighted_sum, [make_distinct_tensor(weighted_sum, (3, 5))], "read")
        )
    )


# --- no elements, another order ---------------------------------------------------------------------------------------


def is_refused_as_json_too(target: AnyTarget, model: Model, tensors: Sequence[Tensor], reply: Reply | None) -> bool:
    """Say whether the server refused a request and also refuses the same tensors sent as JSON.

    Use this for tensors without elements: no document requires a server to accept them.

    Raises UnmetError: the server fails on such tensors, instead of refusing them.
    """
    if reply is None or (reply.status or 0) < 400:
        return False
    plain = target.infer(model.request(tensors, send="json"))
    if (plain.status or 0) < 400:
        return False
    expect_refusal_status(reply)
    return True


def are_equal_inputs_right(target: AnyTarget) -> bool:
    """Say whether the server answers correctly if all binary inputs are equal, so that their order cannot matter."""
    model = target.model("add_sub")
    if model is None:
        return True
    equal_inputs = [Tensor.from_values(spec.name, spec.datatype, [1, 2]) for spec in model.role.inputs]
    return is_side_right(target, model, equal_inputs, "read")


def is_right_in_name_order(target: AnyTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the server reads binary inputs correctly if they are sorted by name; False if already sorted.

    A server that expects this order assigns inputs in declared order to the wrong names.
    """
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return [t.name for t in ordered] != [t.name for t in tensors] and is_right(target, model, ordered)


@contextmanager
def mark_not_applicable_if(is_undecided: Callable[[], bool], reason: str) -> Iterator[None]:
    """Turn an unmet or blocked expectation in the `with` block into `NotApplicableError` if `is_undecided` is true.

    Raises NotApplicableError: the expectation failed, and `is_undecided` says that the correct result is unknown.
    """
    try:
        yield
    except (UnmetError, BlockedError):
        if is_undecided():
            raise NotApplicableError(reason) from None
        raise


# --- typed and raw contents of gRPC -----------------------------------------------------------------------------------

OTHER_FORM: dict[Form, Form] = {"json": "binary", "binary": "json"}


def expect_contents(target: AnyTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> Reply:
    """Send inputs in raw (`binary`) or typed (`json`) contents, expect correct outputs, and return the reply.

    Raises:
        BlockedError: the answer has contents of the other form, and a request in that form gets a wrong answer as well.
    """
    reply = target.infer(model.request(tensors, send=send))
    with block_if(lambda: _is_wrong_in_other_form(target, model, tensors, send, reply), _OTHER_FORM_WRONG):
        expect_outputs(reply, model, tensors)
    return reply


_OTHER_FORM_WRONG = "the answer has the other form of contents, and requests in that form also get wrong answers"


def _is_wrong_in_other_form(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], send: Form, reply: Reply
) -> bool:
    """Say whether the answer has contents of the other form, and a request in that form gets a wrong answer."""
    found_forms = {output.binary for output in reply.answer.outputs}
    if not model.role.is_json_capable or found_forms != {send == "json"}:
        return False
    return not is_right(target, model, tensors, OTHER_FORM[send])


def require_typed_inputs_accepted(reply: Reply, model: Model) -> None:
    """Require an answer to typed inputs of a model that has an output without typed contents.

    Raises NotApplicableError: the server refuses them; no document says how to answer in this case.
    """
    if reply.is_refusal and any(not DATATYPES[spec.datatype].contents for spec in model.role.outputs):
        raise NotApplicableError(f"the target refuses typed inputs of {model.name}: {escape_text(reply.outcome())}")


def find_answer_form(target: AnyTarget, model: Model) -> Form:
    """Return a form of contents in which the server accepts a plain call: typed ("json") if possible, else raw."""
    typed = model.role.is_json_capable and target.infer(model.request(send="json")).succeeded
    return "json" if typed else "binary"


def read_comparable_outputs(model: Model, reply: Reply) -> list[Tensor]:
    """Return the outputs of an answer whose values can be compared; none if the request failed."""
    names = model.list_comparable_outputs()
    outputs = [output for output in reply.answer.outputs if reply.succeeded and output.name in names]
    return read_outputs(model, outputs)


def expect_answered_or_block(reply: Reply) -> Reply:
    """Return the reply if the request succeeded, or block the row.

    Raises BlockedError: the request failed; other checks judge the failure.
    """
    if not reply.succeeded:
        unmet = UnmetError("an answer with the status OK", reply.outcome(), reply)
        raise BlockedError(f"the server does not answer the request: {reply.outcome()}", unmet)
    return reply


# --- the same request once more ---------------------------------------------------------------------------------------

ISOLATION = "OIP-ISOLATION"


def attribute_to_isolation(target: AnyTarget, unmet: UnmetError, expect_correct: Callable[[Reply], object]) -> None:
    """Attribute a wrong HTTP answer to OIP-ISOLATION if the server answers the repeated request correctly.

    Args:
        target: receives the request again, on a new connection.
        unmet: the failure of the first answer; its requirement is changed.
        expect_correct: raises `UnmetError` if an answer is wrong.
    """
    reply = unmet.reply
    if reply is None or not reply.succeeded or reply.is_over_grpc:
        return
    if is_met(lambda: expect_correct(target.send(reply.exchange.message, fresh=True))):
        unmet.requirement = ISOLATION


def expect_or_attribute_to_isolation(
    target: AnyTarget, reply: Reply, expect_correct: Callable[[Reply], object]
) -> None:
    """Expect a correct answer; report OIP-ISOLATION if only the repeated request gets a correct answer."""
    try:
        expect_correct(reply)
    except UnmetError as unmet:
        attribute_to_isolation(target, unmet, expect_correct)
        raise
