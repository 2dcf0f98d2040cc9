"""Finds why the values of an answer are wrong, if those of simpler requests are wrong as well.

The controls of an answer with wrong values are requests with harmless values and one property each: none, the id,
listed outputs, binary inputs, binary outputs. Those in JSON go to the model of the row. Those with binary data go to
the identity model of UINT8: one byte each, in one dimension, so that nothing but the binary form is tested. Each is
sent three times, among plain requests that have to be right: neither a server whose answers are wrong at random or by
turns, nor one whose answers depend on earlier requests, is accused of a property.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from conformance.expect.class_texts import TEXT_REQUIREMENTS
from conformance.expect.difference import find_difference
from conformance.expect.unmet import UnmetError
from conformance.judging.control_request import build_harmless_inputs, find_stand_in, read_request_content
from conformance.judging.unanswered_requests import is_about_state
from conformance.roles.model import Model
from conformance.spec.ledger import Level, get_requirement
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import InferRequest
from conformance.wire.tensor import Tensor

# Whether the control is sent at each turn, and not the plain request; no period divides this order.
TURNS = (False, True, True, False, True, False)
# Requirements on classes that wrong values violate as well.
CLASS_REQUIREMENTS = (*TEXT_REQUIREMENTS, "CLS-FP16", "CLS-BOOL")
BINARY_MODEL = "identity_uint8"


class _Control(NamedTuple):
    """A request that a plain request to the same model differs from in one property.

    Attributes:
        words: the property, for the message; empty for a plain request.
        requirement: the requirement that a server violates if the property makes values wrong.
        model: the model.
        request: the request.
    """

    words: str
    requirement: str
    model: Model
    request: InferRequest


def find_value_cause(target: Target, model: Model, unmet: UnmetError, named: str) -> UnmetError | None:
    """Return the violation if a simpler request gets wrong values as well, else None."""
    reply, is_must = unmet.reply, get_requirement(named).level == Level.MUST
    if reply is None or not is_must or is_about_state(named) or not _has_wrong_values(reply, model, unmet, named):
        return None
    for control in _list_controls(target, model, reply):
        name = f"values of {control.model.name}{control.words}{' over gRPC' if reply.is_over_grpc else ''}"
        if target.probe_once(name, partial(_is_right_once, target, control, reply)):
            continue
        unmet.requirement = control.requirement
        unmet.actual += f"; a simple request{control.words} to {control.model.name} gets wrong values as well"
        return unmet
    return None


def _has_wrong_values(reply: Reply, model: Model, unmet: UnmetError, named: str) -> bool:
    """Say whether the values of a tensor, or the texts of classes, are wrong in a successful reply."""
    if unmet.tensor is None:
        return reply.succeeded and named.partition("/")[0] in CLASS_REQUIREMENTS
    return _is_tensor_wrong(reply, unmet.tensor, model)


def _list_controls(target: Target, model: Model, reply: Reply) -> Iterator[_Control]:
    """Yield the controls for the properties of a request, the plainest first."""
    content = read_request_content(reply.exchange.message, model)
    plain = model if model.is_json_capable and not model.is_deployed else find_stand_in(target)
    if content is None or plain is None:
        return
    answer = "GRPC-TYPED" if reply.is_over_grpc else "OIP-ANSWER"
    inputs, names = build_harmless_inputs(plain), plain.declared_outputs
    yield _Control("", answer, plain, plain.request(inputs, send="json"))
    if content.id:
        yield _Control(" with an id", answer, plain, plain.request(inputs, send="json", request_id="7"))
    if content.outputs:
        listing = plain.request(inputs, send="json", outputs=names)
        yield _Control(" that lists outputs", "OIP-OUTPUTS-LISTED", plain, listing)
    other = target.model(BINARY_MODEL)
    if other is None:
        return
    inputs, is_answer_binary = build_harmless_inputs(other), any(output.binary for output in reply.answer.outputs)
    if content.is_binary or (reply.is_over_grpc and is_answer_binary):
        requirement = "GRPC-RAW" if reply.is_over_grpc else "BIN-DATATYPES-I"
        yield _Control(" with binary data", requirement, other, other.request(inputs))
    if not reply.is_over_grpc and is_answer_binary:
        request = other.request(inputs, send="json", binary_data_output=True)
        yield _Control(" for binary data", "BIN-DATATYPES-O", other, request)


def _is_right_once(target: Target, control: _Control, reply: Reply) -> bool:
    """Say whether the values of a control are right at least once, or those of a plain request are wrong."""
    inputs = build_harmless_inputs(control.model)
    plain = control.model.request(inputs, send="json")
    return any(
        _are_values_wrong(target, control.model, control.request if is_control else plain, reply) != is_control
        for is_control in (TURNS if control.words else filter(None, TURNS))
    )


def _are_values_wrong(target: Target, model: Model, request: InferRequest, reply: Reply) -> bool:
    """Send a request over the transport of a reply; say whether an output has other values than the right ones."""
    found = target.send(make_infer_message(request) if reply.is_over_grpc else request.message(), fresh=True)
    right = model.find_outputs(build_harmless_inputs(model))
    return any(_is_tensor_wrong(found, tensor, model) for tensor in right)


def _is_tensor_wrong(reply: Reply, tensor: Tensor, model: Model) -> bool:
    """Say whether an output in a successful reply has the right datatype and shape, but wrong values.

    The inputs of a model that emits elements decide the shapes of its outputs, so that these are values as well.
    """
    output = reply.answer.output(tensor.name) if reply.succeeded else None
    if output is None or output.array is None or output.datatype != tensor.datatype:
        return False
    if output.shape != tensor.shape:
        return model.role.compute == "emit"
    return find_difference(tensor, output, reply.body, through_json=True) is not None
