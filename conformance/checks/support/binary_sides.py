"""Values judged one side at a time, with the blame where it belongs: binary data here, JSON there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from conformance.checks.support.deployed_models import is_written_alone
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError, block_if, is_met
from conformance.roles.corner_values import PALINDROMES
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_shape
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

Side = Literal["read", "written", "both", "neither"]
MAX_OUTPUTS = 8  # outputs that are asked for alone: some models have very many

# How a request shows one side of binary data alone, both where JSON cannot carry the values, or JSON on both sides.
SIDES: dict[Side, dict[str, Any]] = {
    "read": {"send": "binary"},
    "written": {"send": "json", "want": "binary"},
    "both": {"send": "binary", "want": "binary"},
    "neither": {"send": "json"},
}


def expect_values(reply: Reply, model: Model, tensors: Sequence[Tensor], *, through_json: bool | None = None) -> None:
    """Expect the right outputs for the inputs."""
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        expected = model.expected(tensors)
    expect(reply).tensors(expected, through_json=through_json)


def expect_side(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, outputs: Sequence[str] | None = None
) -> None:
    """Expect the right outputs where one side is binary data and the other JSON, or both are binary data.

    `outputs` are all of them, where their order matters. What JSON does not carry is binary data in any case.
    """
    arguments = SIDES[side]
    send = model.sends if arguments["send"] == "json" else "binary"
    listed = model.listed() if outputs is None and "want" not in arguments else outputs
    reply = target.infer(model.request(tensors, send=send, want=arguments.get("want"), outputs=listed))
    expect_values(reply, model, tensors, through_json=True if side == "written" else None)


def takes_none(target: Target, model: Model, tensors: Sequence[Tensor], reply: Reply | None) -> bool:
    """Say whether a request was refused because the server takes no such tensors: not as plain JSON either.

    Tensors without elements are meant, which no document makes a server take.
    """
    if reply is None or (reply.status or 0) < 400:
        return False
    plain = target.infer(model.request(tensors, send="json"))
    return (plain.status or 0) >= 400


def expect_survival(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect as `expect_side` values at the edge of what JSON carries.

    Where the outputs are wrong, JSON on both sides shows which side is to blame: if that is right, the binary data are wrong;
    if it is wrong too, the server loses these values in JSON, and binary data on both sides decide.
    """
    try:
        expect_side(target, model, tensors, side)
    except UnmetError:
        as_json = target.infer(model.request(tensors, send="json"))
        if is_met(lambda: expect_values(as_json, model, tensors)):
            raise
        expect_side(target, model, tensors, "both")


def expect_return(target: Target, model: Model, tensors: Sequence[Tensor], written: str) -> None:
    """Expect tensors back from binary data as binary data.

    What is wrong is about `written`, the requirement on outputs, where another request shows that it is the answer that
    is wrong: the same inputs are right in JSON outputs, or what JSON carries of them is wrong in binary outputs.
    """
    reply = target.infer(model.request(tensors, **SIDES["both"]))
    try:
        expect_values(reply, model, tensors)
    except UnmetError as unmet:
        garbled = any(output.array is None for output in reply.answer.outputs)
        if unmet.requirement is None and reply.succeeded and (garbled or _is_written_wrong(target, model, tensors)):
            unmet.requirement = written
        raise


def _is_written_wrong(target: Target, model: Model, tensors: Sequence[Tensor]) -> bool:
    shown = target.infer(model.request(tensors, **SIDES["read"]))
    if is_met(lambda: expect_values(shown, model, tensors, through_json=False)):
        return True
    if not model.role.is_json_capable:
        return False
    carried = [Tensor.of(tensor.name, tensor.datatype, _carried_by_json(tensor)) for tensor in tensors]
    reply = target.infer(model.request(carried, **SIDES["written"]))
    return reply.succeeded and not is_met(lambda: expect_values(reply, model, carried, through_json=True))


def _carried_by_json(tensor: Tensor) -> Any:
    """Return those elements of a tensor that JSON carries, and ordinary ones behind them."""
    if tensor.datatype == "BYTES":
        return [item.decode(errors="ignore").encode() for item in tensor.array] + ["é猫😀".encode()]
    return [*tensor.array[np.isfinite(tensor.array)], 1.5, -2.25] if tensor.array.dtype.kind == "f" else tensor.array


def is_right(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, outputs: Sequence[str] | None = None
) -> bool:
    """Say whether `expect_side` is met."""
    return is_met(lambda: expect_side(target, model, tensors, side, outputs))


def expect_special_side(
    target: Target, model: Model, tensors: Sequence[Tensor], side: Side, plain: Sequence[Tensor]
) -> None:
    """Expect as `expect_side`, for tensors that have what a check is about, unlike `plain` ones of the same kind.

    Raises:
        Blocked: plain ones are wrong too, so that nothing is known of what the check is about.
    """
    reason = f"{plain[0].datatype} elements without that property are wrong too"
    with block_if(lambda: not is_right(target, model, plain, side), reason):
        expect_side(target, model, tensors, side)


def expect_together(
    reply: Reply,
    target: Target,
    model: Model,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    side: Literal["read", "written"],
) -> None:
    """Expect several tensors of one message, each of which is read or written right alone.

    Args:
        reply: to the message.
        target: for the tensors alone.
        model: that they are of; they are alone in another one, unless it is its own oracle. The inputs of that are
            alone in no request, so that its binary data in the declared order have to be looked at before.
        inputs: what was sent.
        outputs: what is right.
        side: whether the inputs are binary data, or the outputs.

    Raises:
        Blocked: only tensors are wrong that are wrong alone, too.
    """
    try:
        expect(reply).tensors(outputs)
    except UnmetError as unmet:
        parts = inputs if side == "read" else outputs
        if model.is_own_oracle:
            _expect_written_alone(target, model, inputs, outputs if side == "written" else (), unmet)
            raise
        wrong = {part.datatype for part in parts if not is_right_alone(target, part, side)}
        if not wrong:
            raise
        if reply.succeeded:
            expect(reply).tensors([output for output in outputs if output.datatype not in wrong])
        raise BlockedError(f"{', '.join(sorted(wrong))} alone is wrong too", unmet) from None


def _expect_written_alone(
    target: Target, model: Model, inputs: Sequence[Tensor], outputs: Sequence[Tensor], unmet: UnmetError
) -> None:
    """Expect each of the first outputs right where it is the only binary one.

    Raises:
        Blocked: one is not; `unmet` is the cause.
    """
    wrong = [tensor.name for tensor in outputs[:MAX_OUTPUTS] if not is_written_alone(target, model, inputs, tensor)]
    if wrong:
        raise BlockedError(f"{', '.join(wrong)} as the only binary output is wrong, too", unmet)


def is_right_alone(target: Target, tensor: Tensor, side: Side) -> bool:
    """Say whether the model that returns tensors of a datatype gets one right; yes where there is no such model."""
    model = target.model(f"identity_{tensor.datatype.lower()}")
    flat = tensor.array.reshape(-1)
    if side == "written" and tensor.datatype == "BYTES":  # JSON carries no others
        flat = np.array([item.decode(errors="ignore").encode() for item in flat] or [], object)
    return model is None or is_right(target, model, [Tensor("INPUT", tensor.datatype, flat.shape, flat)], side)


def carries(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> bool:
    """Say whether binary data carry tensors of some dimensions: both ways, in one dimension, and row by row."""
    weighing = target.model("weighted_sum")
    return (
        is_right(target, model, tensors, "both")
        and is_right_alone(target, tensors[0], side)
        and (weighing is None or is_right(target, weighing, [make_distinct_tensor(weighing, (3, 5))], "read"))
    )


def takes_several(target: Target) -> bool:
    """Say whether requests with several binary inputs are answered, in whatever order those are read."""
    model = target.model("add_sub")
    if model is None:
        return True
    alike = [Tensor.of(spec.name, spec.datatype, [1, 2]) for spec in model.role.inputs]
    return is_right(target, model, alike, "read")


def make_distinct_tensor(model: Model, shape: Sequence[int]) -> Tensor:
    """Return a tensor whose elements are all different, integers the same in either byte order, and no byte a blank."""
    count = prod(shape)
    if model.role.inputs[0].datatype == "BYTES":
        return model.tensor([f"{model.salt:03}-x" + "four" * k for k in range(count)], shape)
    unit = 0x0101 if model.role.inputs[0].datatype == "INT16" else 0x010100
    return model.tensor([(33 + model.salt % 32 + k) * unit for k in range(count)], shape)


def make_symmetric_inputs(model: Model) -> tuple[Tensor, ...]:
    """Return inputs that are the same tensors in either order of bytes and of dimensions; FP16 and BF16 are not among them."""
    return tuple(
        _filled(spec.name, spec.datatype, make_sample_shape(spec.shape, 2 if model.role.batching else None))
        for spec in model.role.inputs
    )


def _filled(name: str, datatype: str, shape: tuple[int, ...]) -> Tensor:
    dtype = DATATYPES[datatype].dtype
    if datatype == "BYTES":
        several = np.array([b'q"\\', "é😀".encode(), b""], object)
    elif datatype == "BOOL":
        several = np.array([True, False, False])
    else:
        several = np.array(PALINDROMES[datatype], dtype=f"<u{dtype.itemsize}").view(dtype)
    return Tensor.of(name, datatype, np.resize(several[:1] if len(shape) > 1 else several, prod(shape)), shape)
