"""Relations of raw binary requests: to a model of one input they are binary requests without the JSON.

Which models are eligible, metadata say only in part: a variable dimension in front may be a batch or not. Where that
decides, a refusal says nothing. What is sent is one item of a batch, which is right either way.
"""

from __future__ import annotations

from math import prod

from conformance.checks.relations.plain_answer import expect_same, tensors_of
from conformance.checks.support.framing import expect_framed
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal
from conformance.expect.unmet import NotApplicable, holds
from conformance.survey.deployed import Deployed, raw_body
from conformance.terms.check import check
from conformance.terms.text import safe
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.tensor import Tensor


@check("relations.raw-request-is-a-binary-request", answers=("RAW-ENCODING", "RAW-OUTPUTS", "RAW-HEADER-ZERO"))
def raw_request_is_a_binary_request(target: Target, model: Deployed) -> None:
    """A raw request is answered as the binary request with the same tensor and all outputs as binary data."""
    served = served_when(model)
    reply, tensor = _ask(target, model)
    if not reply.succeeded and served is None:
        raise NotApplicable(f"metadata do not tell whether the model has to be served: {safe(reply.outcome())}")
    expect(reply, served).answered()
    expect(reply, "RAW-OUTPUTS").forms(dict.fromkeys(model.outputs, "binary"))
    expect_framed(reply)
    full = target.infer(model.request([tensor], want="binary"))
    if len(tensors_of(full, model.steady())) < len(model.steady()):
        raise NotApplicable(f"the binary request with one item is not answered: {safe(full.outcome())}")
    if not (tensor.datatype == "BYTES" and _is_read_behind_its_length(target, model, tensor, full)):
        expect_same(target, model, reply, right=full)


def served_when(model: Deployed) -> str | None:
    """Return the requirement that wants a raw request to this model served; None where metadata do not decide.

    Raises:
        NotApplicable: no requirement does.
    """
    if len(model.tensors) != 1 or len(model.role.inputs) != 1:
        raise NotApplicable("there is more than one input")
    (spec,), (tensor,) = model.role.inputs, model.tensors
    if not tensor.elements:
        raise NotApplicable("the model's input is empty")
    variable = spec.shape.count(-1)
    if spec.datatype == "BYTES":
        if spec.shape not in ((1,), (-1, 1)):
            raise NotApplicable(f"a BYTES input of shape {list(spec.shape)} is not for raw requests")
        return "RAW-BYTES" if spec.shape == (1,) else None
    if variable > 2 or (variable == 2 and spec.shape[0] != -1):
        raise NotApplicable(f"the model's input has {variable} variable dimensions")
    return {0: "RAW-ONE-INPUT", 1: "RAW-ONE-VARIABLE", 2: None}[variable]


def _ask(target: Target, model: Deployed) -> tuple[Reply, Tensor]:
    """Return the answer to a raw request, and what the request held."""
    items = model.items()
    for tensor in items:
        reply = target.send(model.raw(raw_body(tensor)), fresh=True)
        if tensor.datatype == "BYTES" and not reply.succeeded:
            reply = target.send(model.raw(strings.encode([raw_body(tensor)])), fresh=True)
        if reply.succeeded:
            break
    return reply, tensor


def _is_read_behind_its_length(target: Target, model: Deployed, tensor: Tensor, right: Reply) -> bool:
    """Whether the body of a string is read as a length and the string, as RAW-BYTES-BODY leaves open."""
    reply = target.send(model.raw(strings.encode([raw_body(tensor)])), fresh=True)
    return holds(lambda: expect_same(target, model, reply, right=right))


@check("relations.short-raw-body-is-refused", answers="RAW-SIZE")
def short_raw_body_is_refused(target: Target, model: Deployed) -> None:
    """A raw request that lacks its last byte does not fill the input, and is refused; the next good one is answered."""
    served_when(model)
    reply, tensor = _ask(target, model)
    if not reply.succeeded or tensor.datatype == "BYTES":
        raise NotApplicable("raw requests of any length may fill the input, or none")
    shape = model.role.inputs[0].shape
    one = prod(size for size in shape if size > 0) * tensor.size // tensor.elements  # bytes that a variable size counts
    if -1 in shape and one == 1:
        raise NotApplicable("a raw request of any length fills the input")
    expect_refusal(target, model, model.raw(raw_body(tensor)[:-1]))


@check("relations.raw-request-to-several-inputs-is-refused", answers="RAW-SEVERAL-INPUTS")
def raw_request_to_several_inputs_is_refused(target: Target, model: Deployed) -> None:
    """A raw request to a model of several inputs is refused, and the next good one answered."""
    if len(model.role.inputs) < 2:
        raise NotApplicable("there is one input")
    expect_refusal(target, model, model.raw(bytes(model.tensors[0].to_bytes())))
