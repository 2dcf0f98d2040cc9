"""Judge the two sides of an exchange separately: binary data in one direction, JSON in the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from conformance.checks.support.deployed_models import is_output_written_alone
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_declining_status
from conformance.expect.unmet import BlockedError, UnmetError, block_if, is_met
from conformance.roles.corner_values import PALINDROMES
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

Side = Literal["read", "written", "both", "neither"]
MAX_OUTPUTS = 8  # outputs that are requested one by one: some models have very many

# Which directions of an exchange use binary data: request, answer, both (for values that JSON cannot represent), or none.
SIDES: dict[Side, dict[str, Any]] = {
    "read": {"send": "binary"},
    "written": {"send": "json", "want": "binary"},
    "both": {"send": "binary", "want": "binary"},
    "neither": {"send": "json"},
}


def expect_values(reply: Reply, model: Model, tensors: Sequence[Tensor], *, through_json: bool | None = None) -> None:
    """Expect a reply to contain the outputs that the model computes from these inputs.

    `through_json` says whether the values were sent as JSON, which permits a tolerance. None means that the outputs in
    JSON were.
    """
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        expected = model.expected(tensors)
    expect(reply).tensors(expected, through_json=through_json)


def expect_side(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, outputs: Sequence[str] | None = None
) -> None:
    """Send tensors, with binary data in the directions that `SIDES` lists for `side`, and expect correct outputs.

    `outputs` lists the requested outputs; pass it if their order matters. Inputs that JSON cannot represent are always sent
    as binary data.
    """
    arguments = SIDES[side]
    send = model.binary_inputs if arguments["send"] == "json" else "binary"
    listed = model.build_outputs_member() if outputs is None and "want" not in arguments else outputs
    reply = target.infer(model.request(tensors, send=send, want=arguments.get("want"), outputs=listed))
    expect_values(reply, model, tensors, through_json=True if side == "written" else None)


def is_refused_as_json_too(target: Target, model: Model, tensors: Sequence[Tensor], reply: Reply | None) -> bool:
    """Say whether the server refused a request and also refuses the same tensors sent as JSON.

    Use this for tensors without elements: no document requires a server to accept them.

    Raises:
        UnmetError: the server fails on such tensors, instead of refusing them.
    """
    if reply is None or (reply.status or 0) < 400:
        return False
    plain = target.infer(model.request(tensors, send="json"))
    if (plain.status or 0) < 400:
        return False
    expect_declining_status(reply)
    return True


def expect_survival(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect correct outputs as `expect_side` does, for values that a server may change when it reads or writes JSON.

    If the outputs are wrong, the same tensors are sent and requested as JSON. If the JSON answer is correct, the fault
    is in the binary data. If the JSON answer is wrong as well, the server changes these values in JSON, and an exchange
    with binary data in both directions decides.
    """
    try:
        expect_side(target, model, tensors, side)
    except UnmetError:
        as_json = target.infer(model.request(tensors, send="json"))
        if is_met(lambda: expect_values(as_json, model, tensors)):
            raise
        expect_side(target, model, tensors, "both")


def expect_both_sides(target: Target, model: Model, tensors: Sequence[Tensor], written: str) -> None:
    """Expect correct outputs if both the request and the answer are binary data.

    `written` is the requirement on binary outputs. A failure is attributed to this requirement if the answer is at
    fault: the same binary inputs give correct JSON outputs, or JSON inputs give wrong binary outputs. JSON must be able
    to carry every tensor of more than one dimension.
    """
    reply = target.infer(model.request(tensors, **SIDES["both"]))
    try:
        expect_values(reply, model, tensors)
    except UnmetError as unmet:
        is_undecodable = any(output.array is None for output in reply.answer.outputs)
        if (
            unmet.requirement is None
            and reply.succeeded
            and (is_undecodable or _is_answer_at_fault(target, model, tensors))
        ):
            unmet.requirement = written
        raise


def _is_answer_at_fault(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    reply_as_json = target.infer(model.request(tensors, **SIDES["read"]))
    if is_met(lambda: expect_values(reply_as_json, model, tensors, through_json=False)):
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
    return reply.succeeded and not is_met(lambda: expect_values(reply, model, json_tensors, through_json=True))


def _keep_json_elements(tensor: Tensor) -> Any:
    """Return only the elements of a tensor that JSON can carry, and add a few ordinary elements."""
    if tensor.datatype == "BYTES":
        return [item.decode(errors="ignore").encode() for item in tensor.array] + ["é猫😀".encode()]
    return [*tensor.array[np.isfinite(tensor.array)], 1.5, -2.25] if tensor.array.dtype.kind == "f" else tensor.array


def is_side_right(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, outputs: Sequence[str] | None = None
) -> bool:
    """Say whether the server returns correct outputs in an exchange with binary data on `side`; see `expect_side`."""
    return is_met(lambda: expect_side(target, model, tensors, side, outputs))


def expect_special_side(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, plain: Sequence[Tensor]
) -> None:
    """Expect correct outputs for tensors with the property under test, such as a special value.

    The `plain` tensors lack that property.

    Raises:
        Blocked: the outputs for the plain tensors are wrong as well, so the property is not the cause.
    """
    reason = f"{plain[0].datatype} elements without the property under test also give wrong outputs"
    with block_if(lambda: not is_side_right(target, model, plain, side), reason):
        expect_side(target, model, tensors, side)


def expect_several_tensors(
    reply: Reply,
    target: Target,
    model: Model,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    side: Literal["read", "written"],
) -> None:
    """Expect correct outputs in a reply to a request with several tensors; after a failure, send each tensor alone.

    Args:
        reply: the reply to the message.
        target: the server, for requests with a single tensor.
        model: the model of the message. Single tensors go to identity models. A deployed model always receives all its
            inputs, so callers check its binary inputs in declared order first.
        inputs: the tensors that were sent.
        outputs: the expected outputs.
        side: whether the inputs or the outputs are binary data.

    Raises:
        Blocked: the outputs are also wrong for a tensor alone, and all outputs of other datatypes are right.
    """
    try:
        expect(reply).tensors(outputs)
    except UnmetError as unmet:
        binary_tensors = inputs if side == "read" else outputs
        if model.is_own_oracle:
            _expect_written_alone(target, model, inputs, outputs if side == "written" else (), unmet)
            raise
        wrong = {tensor.datatype for tensor in binary_tensors if not is_right_alone(target, tensor, side)}
        if not wrong:
            raise
        if reply.succeeded:
            expect(reply).tensors([output for output in outputs if output.datatype not in wrong])
        raise BlockedError(
            f"{', '.join(sorted(wrong))} sent or requested alone also gives wrong outputs", unmet
        ) from None


def _expect_written_alone(
    target: Target, model: Model, inputs: Sequence[Tensor], outputs: Sequence[Tensor], unmet: UnmetError
) -> None:
    """Require that each output, up to `MAX_OUTPUTS`, is right as the only binary output.

    Raises:
        Blocked: one of these outputs is wrong; the error contains `unmet`, the failure of the original request.
    """
    wrong = [
        tensor.name for tensor in outputs[:MAX_OUTPUTS] if not is_output_written_alone(target, model, inputs, tensor)
    ]
    if wrong:
        raise BlockedError(f"{', '.join(wrong)} is also wrong as the only binary output", unmet)


def is_right_alone(target: Target, tensor: Tensor, side: Side) -> bool:
    """Say whether the identity model for the tensor's datatype returns the flattened tensor unchanged.

    Return True if the server has no such model.
    """
    model = target.model(f"identity_{tensor.datatype.lower()}")
    flat = tensor.array.reshape(-1)
    if side == "written" and tensor.datatype == "BYTES":  # keep only valid UTF-8: JSON carries nothing else
        flat = np.array([item.decode(errors="ignore").encode() for item in flat] or [], object)
    return model is None or is_side_right(target, model, [Tensor("INPUT", tensor.datatype, flat.shape, flat)], side)


def is_carried_as_binary(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> bool:
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


def are_equal_inputs_right(target: Target) -> bool:
    """Say whether the server answers correctly if all binary inputs are equal, so that their order cannot matter."""
    model = target.model("add_sub")
    if model is None:
        return True
    equal_inputs = [Tensor.from_values(spec.name, spec.datatype, [1, 2]) for spec in model.role.inputs]
    return is_side_right(target, model, equal_inputs, "read")


def make_distinct_tensor(model: Model, shape: Sequence[int]) -> Tensor:
    """Return a tensor of distinct elements without whitespace bytes; integers read the same in either byte order."""
    count = prod(shape)
    if model.role.inputs[0].datatype == "BYTES":
        return model.tensor([f"{model.salt:03}-x" + "four" * k for k in range(count)], shape)
    unit = 0x0101 if model.role.inputs[0].datatype == "INT16" else 0x010100
    return model.tensor([(33 + model.salt % 32 + k) * unit for k in range(count)], shape)


def make_symmetric_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs that read the same in either byte order, and in row-major and column-major order.

    FP16 and BF16 are not supported.
    """
    return tuple(
        _make_symmetric_tensor(
            spec.name, spec.datatype, make_sample_shape(spec.shape, 2 if model.role.batching else None)
        )
        for spec in model.role.inputs
    )


def _make_symmetric_tensor(name: str, datatype: str, shape: tuple[int, ...]) -> Tensor:
    dtype = DATATYPES[datatype].dtype
    if datatype == "BYTES":
        several = np.array([b'q"\\', "é😀".encode(), b""], object)
    elif datatype == "BOOL":
        several = np.array([True, False, False])
    else:
        several = np.array(PALINDROMES[datatype], dtype=f"<u{dtype.itemsize}").view(dtype)
    return Tensor.from_values(name, datatype, np.resize(several[:1] if len(shape) > 1 else several, prod(shape)), shape)
