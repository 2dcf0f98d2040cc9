"""Helpers that send raw binary requests and compare the answers with those to binary requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from conformance.checks.support.changed_tensors import (
    WIDE_FLOATS,
    are_different,
    fill_strings,
    fill_with_byte_order_neutral_values,
    halve_strings,
)
from conformance.checks.support.controls import is_written_right, is_wrong_if_accepted
from conformance.checks.support.inputs import Change, find_model_with_alterable_inputs, require_distinguished_inputs
from conformance.discovery.deployed_model import encode_raw_body
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_tensor
from conformance.spec.fit import Fit
from conformance.spec.text import escape_text, format_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor


def send_raw(target: Target, model: Model, tensor: Tensor) -> Reply:
    """Send a numeric tensor as a raw request."""
    return target.infer(model.raw(bytes(tensor.to_bytes())))


def expect_agreement(
    target: Target, model: Model, reply: Reply, *candidates: Tensor, requirement: str | None = None
) -> None:
    """Expect the correct answer for one of the tensors as input, or the same answer as to a binary request.

    The expected bytes at the end of the body are sufficient: other checks judge the JSON before them.
    """
    unmet: list[UnmetError] = []
    for tensor in candidates:
        right = model.find_outputs([tensor])
        if reply.succeeded and reply.body.endswith(b"".join(bytes(output.to_bytes()) for output in right)):
            return
        try:
            expect(reply, requirement).tensors(right)
        except UnmetError as found:
            unmet.append(found)
        else:
            return
    if reply.succeeded and any(_is_answered_alike(target, model, reply, tensor) for tensor in candidates):
        return
    strings = [tensor for tensor in candidates if tensor.datatype == "BYTES"]
    if reply.succeeded and not all(is_written_right(target, tensor) for tensor in strings):
        raise BlockedError("the server also writes a single BYTES output wrong", unmet[0])
    raise BlockedError(NO_RAW_ANSWER, unmet[0]) if not is_simple_raw_answered(target) else unmet[0]


NO_RAW_ANSWER = "the server does not answer a raw request of three bytes either"


def is_simple_raw_answered(target: Target) -> bool:
    """Say whether the server answers a raw request of three bytes; only RAW-HEADER-ZERO requires this."""
    model = target.model("identity_uint8")
    return model is None or target.infer(model.raw(b"\x01\x02\x03")).succeeded


def _is_answered_alike(target: Target, model: Model, reply: Reply, tensor: Tensor) -> bool:
    """Say whether a binary request with this tensor gets the same outputs and bytes as the raw request."""
    full = target.infer(model.request([tensor], want="binary"))
    return full.succeeded and _extract_outputs_and_tail(full) == _extract_outputs_and_tail(reply)


def _extract_outputs_and_tail(reply: Reply) -> Any:
    """Return the outputs and the bytes after the JSON, to compare two answers even if both are wrong."""
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in reply.answer.outputs]
    return outputs, reply.body[reply.answer.json_end :]


def make_sample(model: Model, shape: Sequence[int] | None = None) -> Tensor:
    """Return a sample tensor of the given shape, or of the input's shape with one batch item."""
    (tensor,) = model.items()
    return tensor if shape is None else make_sample_tensor(tensor.name, tensor.datatype, shape, model.salt)


# --- deployed models --------------------------------------------------------------------------------------------------
# Metadata show only in part which models are eligible: a variable first dimension may be a batch or a length. If that
# is decisive, a refusal is not judged. The body holds one batch item, which is right in either case.

NUMBERS = Fit(max_inputs=1, inputs=frozenset(DATATYPES) - {"BYTES"})
VARIABLE_NUMBERS = replace(NUMBERS, is_variable=True)
FLOATS = Fit(max_inputs=1, inputs=WIDE_FLOATS)
STRINGS = Fit(max_inputs=1, inputs=frozenset({"BYTES"}))


def find_serving_requirement(model: Model) -> str | None:
    """Return the requirement to answer raw requests to a model of one input; None if metadata do not decide it.

    Raises NotApplicableError: no requirement applies.
    """
    (spec,), tensor = model.role.inputs, model.items()[0]
    if not tensor.elements:
        raise NotApplicableError(f"the input of {model.name} is empty")
    if spec.datatype == "BYTES":
        if spec.shape not in ((1,), (-1, 1)):
            raise NotApplicableError(f"a BYTES input of shape {list(spec.shape)} is not for raw requests")
        return "RAW-BYTES" if spec.shape == (1,) else None
    if _count_variable_dimensions(spec.shape) > 1:
        raise NotApplicableError(f"the input of {model.name} has {spec.shape.count(-1)} variable dimensions")
    return {0: "RAW-ONE-INPUT", 1: "RAW-ONE-VARIABLE"}.get(spec.shape.count(-1))


def _count_variable_dimensions(shape: tuple[int, ...]) -> int:
    """Return the minimum number of variable dimensions: the first of several may be a batch dimension."""
    return shape[1:].count(-1) if len(shape) > 1 else shape.count(-1)


def send_own_raw(target: Target, model: Model) -> tuple[Reply, Tensor]:
    """Send raw requests with inputs of the model until one is answered; return the last answer and its input."""
    for tensor in model.items():
        reply = target.send(model.raw(encode_raw_body(tensor)), fresh=True)
        if tensor.datatype == "BYTES" and not reply.succeeded:
            reply = _send_with_length_prefix(target, model, tensor)
        if reply.succeeded:
            break
    return reply, tensor


def _send_with_length_prefix(target: Target, model: Model, tensor: Tensor) -> Reply:
    """Send the string of a tensor as a raw request, after a length prefix; RAW-BYTES-BODY allows this prefix."""
    return target.send(model.raw(strings.encode([encode_raw_body(tensor)])), fresh=True)


def expect_own_served(target: Target, model: Model) -> tuple[Reply, Tensor]:
    """Expect an answer to a raw request; return the answer and the input that the request contained.

    Raises NotApplicableError: the server refuses the request, and metadata do not tell whether it may do so.
    """
    served = find_serving_requirement(model)
    reply, tensor = send_own_raw(target, model)
    if not reply.succeeded and served is None:
        raise NotApplicableError(
            f"metadata do not show whether raw requests to {model.name} must be answered: {escape_text(reply.outcome())}"
        )
    expect(reply, served).answered()
    return reply, tensor


def expect_own_values(target: Target, model: Model, change: Change) -> None:
    """Expect a deployed model to answer a raw request correctly if the body is a changed input.

    Raises BlockedError: the answer to simple elements, or to the unchanged input, is wrong as well.
    """
    model = find_model_with_alterable_inputs(model, fill_with_byte_order_neutral_values)
    _, taken = _expect_served_distinguishably(target, model)
    (changed,) = change([taken])

    def is_wrong_unchanged() -> bool:
        """Say whether simple elements, or the input before the change, get a wrong answer."""
        if is_wrong_if_accepted(lambda: _expect_plain_elements(target, model, taken)):
            return True
        return are_different([taken], [changed]) and is_wrong_if_accepted(
            lambda: _expect_right_when_sent(target, model, taken)
        )

    with block_if(is_wrong_unchanged, "the answer to simple elements or to the unchanged input is also wrong"):
        _expect_right_when_sent(target, model, changed)


def expect_own_plain_values(target: Target, model: Model) -> None:
    """Expect the server to read a raw body whose elements are the same in any byte order or dimension order."""
    _expect_plain_elements(target, model, _expect_served_distinguishably(target, model)[1])


def _expect_served_distinguishably(target: Target, model: Model) -> tuple[Reply, Tensor]:
    """Expect an answer to a raw request; require a model whose answer depends on the input."""
    reply, tensor = expect_own_served(target, model)
    others = replace(model, salt=(model.salt + 1) % 256).items()
    require_distinguished_inputs(
        model, [tensor], halve_strings([other for other in others if other.shape == tensor.shape])
    )
    return reply, tensor


def _expect_plain_elements(target: Target, model: Model, tensor: Tensor) -> None:
    """Expect a correct answer for elements that are the same in any byte or dimension order, or for ASCII strings."""
    (plain,) = fill_strings(fill_with_byte_order_neutral_values([tensor]), [b"plain"])
    _expect_right_when_sent(target, model, plain)


def _expect_right_when_sent(target: Target, model: Model, tensor: Tensor) -> None:
    """Send a tensor as a raw request, and expect the correct outputs."""
    model.find_outputs([tensor])  # raises before sending if the model does not accept the input
    reply = target.send(model.raw(encode_raw_body(tensor)), fresh=True)
    if tensor.datatype == "BYTES" and not reply.succeeded:
        reply = _send_with_length_prefix(target, model, tensor)
    expect_correct_outputs(target, model, reply, tensor)


def expect_correct_outputs(
    target: Target, model: Model, reply: Reply, tensor: Tensor, requirement: str | None = None
) -> None:
    """Expect the correct answer for an input; a server may require a length prefix before a string."""
    try:
        expect_agreement(target, model, reply, tensor, requirement=requirement)
    except UnmetError:
        if tensor.datatype != "BYTES":
            raise
        with_length = _send_with_length_prefix(target, model, tensor)
        if not is_met(lambda: expect_agreement(target, model, with_length, tensor)):
            raise


def expect_own_shape(target: Target, model: Model) -> None:
    """Expect the correct shapes of outputs, then the correct values, which RAW-ENCODING judges."""
    reply, tensor = expect_own_served(target, model)
    for right in model.expected([tensor]):
        output = expect(reply, "RAW-OUTPUTS").output(right.name)
        if output.shape != right.shape:
            raise UnmetError(f"{right.name} with {format_shape(right.shape)}", format_shape(output.shape), reply)
    expect_correct_outputs(target, model, reply, tensor, "RAW-ENCODING")


def require_exact_length(model: Model, tensor: Tensor) -> None:
    """Require a model for which one byte more or less makes a raw body invalid.

    Raises NotApplicableError: a body of any length may be valid.
    """
    spec = model.role.inputs[0]
    step = prod(size for size in spec.shape if size > 0) * tensor.size // tensor.elements  # of a variable dimension
    if tensor.datatype == "BYTES" or (-1 in spec.shape and step == 1):
        raise NotApplicableError(f"a raw request of any length fills the input of {model.name}")
