"""Helpers for checks over gRPC: expectations on outputs in raw or typed contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from conformance.discovery.control_oracle import as_tensor
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.extensions import HTTP
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.datatypes import DATATYPES, INTEGERS
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor


def expect_return_over_grpc(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> Reply:
    """Send inputs in raw (`binary`) or typed (`json`) contents, expect correct outputs, and return the reply.

    Raises:
        Blocked: the answer has contents of the other form, and a request in that form gets a wrong answer as well.
    """
    reply = target.infer(model.request(tensors, send=send))
    with block_if(lambda: _is_wrong_in_other_form(target, model, tensors, send, reply), _OTHER_FORM):
        expect_correct_outputs(reply, model, tensors)
    return reply


_OTHER_FORM = "the answer has the other form of contents, and requests in that form also get wrong answers"


def expect_correct_outputs(reply: Reply, model: Model, tensors: Sequence[Tensor]) -> None:
    """Expect a reply to contain the outputs that the model computes from these inputs.

    Over gRPC, floats must be exact in both forms, except those of deployed models. If the answer must show how the
    server read the inputs, pass inputs from `choose_revealing_inputs`.
    """
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        expected = model.find_outputs(tensors)
    expect(reply).tensors(expected, through_json=False)


def require_typed_inputs_accepted(reply: Reply, model: Model) -> None:
    """Require an answer to typed inputs of a model that has an output without typed contents.

    Raises:
        NotApplicable: the server refuses them; no document says how to answer in this case.
    """
    if reply.is_refusal and any(not DATATYPES[spec.datatype].contents for spec in model.role.outputs):
        raise NotApplicableError(f"the target refuses typed inputs of {model.name}: {escape_text(reply.outcome())}")


def choose_revealing_inputs(
    model: Model, misread: Callable[[Sequence[Tensor]], Sequence[Tensor]] | None = None
) -> Sequence[Tensor]:
    """Return inputs that get another answer if the server misreads them.

    Args:
        model: the model.
        misread: returns the inputs as a faulty server reads them; by default, other sample inputs of the model.

    Raises:
        NotApplicable: for all sets of inputs that were tried, the model gives the same answer to the misread inputs.
    """
    others = replace(model, salt=model.salt + 97).sample() if misread is None else ()
    for tensors in model.draw_several():
        if model.can_distinguish(tensors, misread(tensors) if misread else others):
            return tensors
    raise NotApplicableError(f"the answers of {model.name} do not show how the server read the inputs")


def expect_same_answer_as_http(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> Reply:
    """Expect a call with inputs in one form to get the same outputs as a request over HTTP; return the reply.

    If HTTP gives no answer, compare with a call whose inputs have the other form of contents.

    Raises:
        Unmet: the answers over gRPC and HTTP differ, or HTTP gives no answer and the call is refused.
        Blocked: HTTP gives no answer, and the two gRPC forms get different answers, of which either may be wrong.
    """
    reply = target.infer(model.request(tensors, send=send))
    over_http = _request_over_http(target, model, tensors)
    if over_http:
        expect(reply).tensors(over_http, through_json=True)
        return reply
    expect(reply).answered()
    other = target.infer(model.request(tensors, send="json" if send == "binary" else "binary"))
    with block_if(lambda: True, "the same inputs in the other form of contents get another answer"):
        expect(reply).tensors(_list_comparable_tensors(model, other), through_json=True)
    return reply


def is_call_right_in_name_order(target: GrpcTarget, model: Model, tensors: Sequence[Tensor]) -> bool:
    """Say whether the server reads raw contents correctly if the inputs are sorted by name.

    A server that expects this order assigns raw contents in declared order to the wrong inputs.
    """
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return is_met(lambda: expect_correct_outputs(target.infer(model.request(ordered)), model, tensors))


def _request_over_http(target: GrpcTarget, model: Model, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a plain request over HTTP; an empty list if HTTP is not tested or the request fails."""
    if HTTP not in target.over_http.settings.transports:
        return []
    return _list_comparable_tensors(
        model, target.over_http.infer(model.request(tensors, send=(), outputs=model.build_outputs_member()))
    )


def _list_comparable_tensors(model: Model, reply: Reply) -> list[Tensor]:
    outputs = (
        [output for output in reply.answer.outputs if output.name in model.list_comparable_outputs()]
        if reply.succeeded
        else []
    )
    return [tensor for output in outputs if (tensor := as_tensor(output, model.noise.get(output.name, 0)))]


def reverse_similar_inputs(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return inputs as read by a server that reverses the order of inputs with equal datatype and shape.

    An integer input keeps its elements if it would get integers that it did not contain: such integers can crash a
    server.
    """
    read = []
    for tensor in tensors:
        similar = [one for one in tensors if (one.datatype, one.shape) == (tensor.datatype, tensor.shape)]
        other = similar[::-1][[one is tensor for one in similar].index(True)]
        is_safe = tensor.datatype not in INTEGERS or set(np.unique(other.array)) <= set(np.unique(tensor.array))
        read.append(replace(tensor, array=other.array) if is_safe else tensor)
    return read


def _is_wrong_in_other_form(
    target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form, reply: Reply
) -> bool:
    """Say whether the answer has contents of the other form, and a request in that form gets a wrong answer."""
    found_forms = {output.binary for output in reply.answer.outputs}
    if not model.role.is_json_capable or found_forms != {send == "json"}:
        return False
    other: Form = "json" if send == "binary" else "binary"
    return not is_met(lambda: expect_correct_outputs(target.infer(model.request(tensors, send=other)), model, tensors))


def find_answer_form(target: GrpcTarget, model: Model) -> Form:
    """Return a form of contents in which the server accepts a plain call: typed ("json") if possible, else raw."""
    typed = model.role.is_json_capable and target.infer(model.request(send="json")).succeeded
    return "json" if typed else "binary"


def expect_answered_or_block(reply: Reply) -> Reply:
    """Return the reply if the request succeeded, or block the row.

    Raises:
        Blocked: the request failed; other checks judge the failure.
    """
    if not reply.succeeded:
        unmet = UnmetError("an answer with the status OK", reply.outcome(), reply)
        raise BlockedError(f"the server does not answer the request: {reply.outcome()}", unmet)
    return reply
