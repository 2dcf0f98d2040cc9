"""What a target makes of raw contents over gRPC, where the protocol leaves that open; asked once, when a row needs it.

A server in another byte order is advised by a check of its own, and not judged by values that are then no others. The
framing of BYTES is advice as well, but a server that has it owes every element whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.discovery.control_oracle import as_tensor
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.raw_contents import is_big_endian, is_framed
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.tensor import Tensor, find_first_difference

ORDER, FRAMING, CONTENTS = "GRPC-RAW-LITTLE-ENDIAN", "GRPC-RAW-BYTES", "GRPC-RAW"


class RawInterpretation:
    """The readings of one target."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def find_exemption(self, reply: Reply, requirement: str | None, model: Model | None) -> str:
        """Return why the values of an answer over gRPC are not to be judged, in a few words; empty where they are."""
        if not reply.is_over_grpc or not reply.succeeded or requirement == ORDER:
            return ""
        is_turned = self._is("big-endian", "cast_int32_fp32", is_big_endian) or self._turns(model)
        return f"raw contents are in the other byte order: see {ORDER}" if is_turned else ""

    def named(self, requirement: str) -> str:
        """Return the requirement that is broken: elements that go wrong under the advised framing are wrong tensors."""
        if requirement == FRAMING and self._is("framed", "identity_bytes", is_framed):
            return CONTENTS
        return requirement

    def _turns(self, model: Model | None) -> bool:
        """Whether a deployed model gets its own values in the other byte order, and answers in that."""
        if not isinstance(model, DeployedModel) or "cast_int32_fp32" in self._target.roles:
            return False
        try:
            return self._target.once(f"raw contents big-endian, {model.name}", lambda: self._answers_turned(model))
        except (TargetLostError, NotRecordedError):
            return False

    def _answers_turned(self, model: DeployedModel) -> bool:
        """Whether values are right in the other byte order, and not in ours: what returns them is right in both."""
        plain = replace(model, salt=1)
        straight, turned = plain.sample(), [_turn(tensor) for tensor in plain.sample()]
        right = plain.expected(straight)
        wrong = not _holds(self._raw_outputs(plain, straight), right)
        return wrong and _holds([_turn(tensor) for tensor in self._raw_outputs(plain, turned)], right)

    def _raw_outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> list[Tensor]:
        reply = self._target.send(make_infer_message(model.request(tensors, send="binary")))
        return [tensor for output in reply.answer.outputs if (tensor := as_tensor(output)) and output.binary]

    def _is(self, what: str, role: str, ask: Callable[[GrpcTarget, Model], bool]) -> bool:
        model = self._target.model(role)
        if model is None:
            return False
        try:
            return self._target.once(f"raw contents {what}", lambda: ask(GrpcTarget(self._target), model))
        except (TargetLostError, NotRecordedError):
            return False  # nobody is there to tell: what is unmet stays so


def _turn(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements have their bytes in the other order; BYTES have none."""
    return tensor if tensor.datatype == "BYTES" else replace(tensor, array=tensor.array.byteswap())


def _holds(found: Sequence[Tensor], right: Sequence[Tensor]) -> bool:
    return bool(found) and all(any(_is_same(one, tensor) for one in found) for tensor in right)


def _is_same(one: Tensor, other: Tensor) -> bool:
    is_alike = (one.name, one.datatype, one.shape) == (other.name, other.datatype, other.shape)
    return is_alike and find_first_difference(one.array, other.array, one.datatype) is None
