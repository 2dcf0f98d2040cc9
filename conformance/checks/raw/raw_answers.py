"""Helpers for raw binary requests: send one, and judge its answer by that to a binary request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from conformance.checks.support.binary_sides import is_right_alone
from conformance.checks.support.changed_tensors import WIDE_FLOATS, differ, fill_either_order, fill_texts, halve_texts
from conformance.checks.support.control_sides import Change, expect_distinguished, find_draw, is_wrong, unless_unsteady
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
    """Expect the answer that belongs to one of the tensors as input, or the one that a binary request gets.

    The right bytes at the end of the body will do, whatever the JSON in front says of them: that is for other checks.
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
    if reply.succeeded and any(_answers_alike(target, model, reply, tensor) for tensor in candidates):
        return
    strings = [tensor for tensor in candidates if tensor.datatype == "BYTES"]
    if reply.succeeded and not all(is_right_alone(target, tensor, "written") for tensor in strings):
        raise BlockedError("BYTES alone are written wrong, too", unmet[0])
    raise BlockedError(NOTHING_TAKEN, unmet[0]) if not takes_any(target) else unmet[0]


NOTHING_TAKEN = "not even three bytes are taken as a raw request"


def takes_any(target: Target) -> bool:
    """Say whether the simplest of raw requests is answered; that it is, is a matter of RAW-HEADER-ZERO alone."""
    model = target.model("identity_uint8")
    return model is None or target.infer(model.raw(b"\x01\x02\x03")).succeeded


def _answers_alike(target: Target, model: Model, reply: Reply, tensor: Tensor) -> bool:
    full = target.infer(model.request([tensor], want="binary"))
    return full.succeeded and _gist(full) == _gist(reply)


def _gist(reply: Reply) -> Any:
    """Return what two answers with equal outputs have in common, whatever is wrong with both."""
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in reply.answer.outputs]
    return outputs, reply.body[reply.answer.json_end :]


def make_sample(model: Model, shape: Sequence[int] | None = None) -> Tensor:
    """Return a sample tensor, of the given shape or of the input's own; a batch of one for a batching model."""
    (tensor,) = model.items()
    return tensor if shape is None else make_sample_tensor(tensor.name, tensor.datatype, shape, model.salt)


# --- deployed models --------------------------------------------------------------------------------------------------
# Which models are eligible, metadata say only in part: a variable dimension in front may be a batch or a length. Where
# that decides, a refusal says nothing. The body holds one item of a batch, which is right either way.

NUMBERS = Fit(max_inputs=1, inputs=frozenset(DATATYPES) - {"BYTES"})
VARIABLE_NUMBERS = replace(NUMBERS, is_variable=True)
FLOATS = Fit(max_inputs=1, inputs=WIDE_FLOATS)
STRINGS = Fit(max_inputs=1, inputs=frozenset({"BYTES"}))


def find_serving_requirement(model: Model) -> str | None:
    """Return the requirement that wants a raw request to a model of one input served; None where metadata do not decide.

    Raises:
        NotApplicable: no requirement does.
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
    """Return how many dimensions are variable at the least: one in front may be that of a batch, and count for none."""
    return shape[1:].count(-1) if len(shape) > 1 else shape.count(-1)


def send_own_raw(target: Target, model: Model) -> tuple[Reply, Tensor]:
    """Return the answer to a raw request, and the input that its body held; of several the first that is served."""
    for tensor in model.items():
        reply = target.send(model.raw(encode_raw_body(tensor)), fresh=True)
        if tensor.datatype == "BYTES" and not reply.succeeded:
            reply = _ask_with_length(target, model, tensor)
        if reply.succeeded:
            break
    return reply, tensor


def _ask_with_length(target: Target, model: Model, tensor: Tensor) -> Reply:
    """Ask with the length of the string in front of it, as RAW-BYTES-BODY leaves open."""
    return target.send(model.raw(strings.encode([encode_raw_body(tensor)])), fresh=True)


def expect_own_served(target: Target, model: Model) -> tuple[Reply, Tensor]:
    """Expect that a raw request is answered; return the answer, and the input that its body held.

    Raises:
        NotApplicable: it is refused, and metadata do not tell whether it may be.
    """
    served = find_serving_requirement(model)
    reply, tensor = send_own_raw(target, model)
    if not reply.succeeded and served is None:
        raise NotApplicableError(
            f"metadata do not tell whether {model.name} has to be served: {escape_text(reply.outcome())}"
        )
    expect(reply, served).answered()
    return reply, tensor


def expect_own_values(target: Target, model: Model, change: Change) -> None:
    """Expect that a raw body is read right, as the answers of the model tell.

    Args:
        target: the server.
        model: a deployed one.
        change: makes what is sent of an input that the model takes.

    Raises:
        Blocked: plain elements are wrong, too, or those that nothing has changed.
    """
    model = find_draw(model, fill_either_order)
    _, taken = _expect_told_served(target, model)
    (changed,) = change([taken])

    def is_wrong_anyway() -> bool:
        if is_wrong(lambda: _expect_plain(target, model, taken)):
            return True
        return differ([taken], [changed]) and is_wrong(lambda: _expect_sent_right(target, model, taken))

    with block_if(is_wrong_anyway, "plain elements are wrong, too"):
        _expect_sent_right(target, model, changed)


def expect_own_plain_values(target: Target, model: Model) -> None:
    """Expect that a raw body is the input, for elements that are the same in any order of bytes and of dimensions."""
    _expect_plain(target, model, _expect_told_served(target, model)[1])


def _expect_told_served(target: Target, model: Model) -> tuple[Reply, Tensor]:
    reply, tensor = expect_own_served(target, model)
    others = replace(model, salt=(model.salt + 1) % 256).items()
    expect_distinguished(model, [tensor], halve_texts([other for other in others if other.shape == tensor.shape]))
    return reply, tensor


def _expect_plain(target: Target, model: Model, tensor: Tensor) -> None:
    """Expect elements right that are the same in any order of bytes and of dimensions; of strings, ASCII."""
    (plain,) = fill_texts(fill_either_order([tensor]), [b"plain"])
    _expect_sent_right(target, model, plain)


def _expect_sent_right(target: Target, model: Model, tensor: Tensor) -> None:
    model.find_outputs([tensor])  # what the model does not take is not sent
    reply = target.send(model.raw(encode_raw_body(tensor)), fresh=True)
    if tensor.datatype == "BYTES" and not reply.succeeded:
        reply = _ask_with_length(target, model, tensor)
    expect_right(target, model, reply, tensor)


def expect_right(target: Target, model: Model, reply: Reply, tensor: Tensor, requirement: str | None = None) -> None:
    """Expect the answer that belongs to an input; a string may have been read as a length and a string."""
    try:
        with unless_unsteady(target, model.find_outputs([tensor])):
            expect_agreement(target, model, reply, tensor, requirement=requirement)
    except UnmetError:
        if tensor.datatype != "BYTES":
            raise
        with_length = _ask_with_length(target, model, tensor)
        if not is_met(lambda: expect_agreement(target, model, with_length, tensor)):
            raise


def expect_own_shape(target: Target, model: Model) -> None:
    """Expect outputs in the shapes that belong to the input, then with its values, which are a matter of RAW-ENCODING."""
    reply, tensor = expect_own_served(target, model)
    for right in model.expected([tensor]):
        output = expect(reply, "RAW-OUTPUTS").output(right.name)
        if output.shape != right.shape:
            raise UnmetError(f"{right.name} with {format_shape(right.shape)}", format_shape(output.shape), reply)
    expect_right(target, model, reply, tensor, "RAW-ENCODING")


def expect_length_counts(model: Model, tensor: Tensor) -> None:
    """Expect that a body of one byte more or less fills no input of a model.

    Raises:
        NotApplicable: it may.
    """
    spec = model.role.inputs[0]
    step = prod(size for size in spec.shape if size > 0) * tensor.size // tensor.elements  # of a variable dimension
    if tensor.datatype == "BYTES" or (-1 in spec.shape and step == 1):
        raise NotApplicableError(f"a raw request of any length fills the input of {model.name}")
