"""Finds how a target encodes raw contents over gRPC where the protocol leaves the encoding open.

The suite tests the encoding only if the failure of a row may depend on it. A separate check gives advice about
big-endian raw contents; other checks then do not judge classes and the values of tensors. Length prefixes of BYTES
elements are advice as well, but a server that uses the prefixes must return every element intact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.discovery.control_answers import as_tensor
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.difference import are_distinct
from conformance.expect.raw_contents import has_length_prefixes, is_big_endian
from conformance.expect.unmet import UnmetError
from conformance.judging.row_judge import RowOutcome
from conformance.judging.row_models import conclude_not_applicable
from conformance.roles.model import Model
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.extensions import CLASSES_OVER_GRPC
from conformance.spec.outcome import ReasonKind
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.tensor import Tensor

ORDER, FRAMING, CONTENTS = "GRPC-RAW-LITTLE-ENDIAN", "GRPC-RAW-BYTES", "GRPC-RAW"


class RawInterpretation:
    """Finds how one target interprets raw contents, and adjusts failures accordingly."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def find_exemption(self, case: Case, unmet: UnmetError, model: Model | None) -> RowOutcome | None:
        """Return `not_applicable` if the values of a gRPC answer cannot be judged; None if the failure is judged."""
        requirement = unmet.requirement or case.requirements[0]
        if requirement == ORDER or not _may_depend_on_byte_order(unmet, requirement):
            return None
        is_turned = self._test_encoding_once(
            "big-endian", "cast_int32_fp32", is_big_endian
        ) or self._is_big_endian_model(model)
        message = f"raw contents are big-endian: see {ORDER}"
        return conclude_not_applicable(ReasonKind.NOT_FOR_THIS_TARGET, message) if is_turned else None

    def adjust_requirement(self, requirement: str) -> str:
        """Return the requirement to report: `GRPC-RAW` if a server uses length prefixes but returns wrong elements."""
        if requirement == FRAMING and self._test_encoding_once("framed", "identity_bytes", has_length_prefixes):
            return CONTENTS
        return requirement

    def _is_big_endian_model(self, model: Model | None) -> bool:
        """Whether a deployed model reads and writes raw contents in big-endian byte order."""
        if not isinstance(model, DeployedModel) or "cast_int32_fp32" in self._target.roles:
            return False
        try:
            return self._target.probe_once(
                f"raw contents big-endian, {model.name}", lambda: self._is_correct_with_swapped_bytes(model)
            )
        except (TargetLostError, NotRecordedError):
            return False

    def _is_correct_with_swapped_bytes(self, model: DeployedModel) -> bool:
        """Whether answers are correct only if the bytes of inputs and outputs are reversed.

        The answers of an identity model are correct in both byte orders, so the result is false.
        """
        plain = replace(model, salt=1)
        straight, turned = plain.sample(), [_swap_bytes(tensor) for tensor in plain.sample()]
        right = plain.expected(straight)
        wrong = not _contains_all_tensors(self._request_raw_outputs(plain, straight), right)
        return wrong and _contains_all_tensors(
            [_swap_bytes(tensor) for tensor in self._request_raw_outputs(plain, turned)], right
        )

    def _request_raw_outputs(self, model: DeployedModel, tensors: Sequence[Tensor]) -> list[Tensor]:
        reply = self._target.send(make_infer_message(model.request(tensors, send="binary")))
        return [tensor for output in reply.answer.outputs if (tensor := as_tensor(output)) and output.binary]

    def _test_encoding_once(self, name: str, role: str, test: Callable[[GrpcTarget, Model], bool]) -> bool:
        """Return the result of a test with the model of a role; False without such a model or without an answer.

        The requests of the test are sent once in a run, in a scope with this name.
        """
        model = self._target.model(role)
        if model is None:
            return False
        try:
            return self._target.probe_once(f"raw contents {name}", lambda: test(GrpcTarget(self._target), model))
        except (TargetLostError, NotRecordedError):
            return False  # no answer: the failure stands


def _may_depend_on_byte_order(unmet: UnmetError, requirement: str) -> bool:
    """Whether a gRPC answer has other classes than expected, or other values in a tensor that is right otherwise."""
    wanted, reply = unmet.tensor, unmet.reply
    if reply is None or not reply.is_over_grpc or not reply.succeeded:
        return False
    if wanted is None:
        return ledger.get_requirement(requirement).extension in CLASSES_OVER_GRPC
    output = reply.answer.output(wanted.name)
    return output is not None and (output.datatype, output.shape) == (wanted.datatype, wanted.shape)


def _swap_bytes(tensor: Tensor) -> Tensor:
    """Reverse the byte order of a tensor's elements; BYTES are returned unchanged."""
    return tensor if tensor.datatype == "BYTES" else replace(tensor, array=tensor.array.byteswap())


def _contains_all_tensors(found: Sequence[Tensor], right: Sequence[Tensor]) -> bool:
    named = {tensor.name: tensor for tensor in found}
    return bool(found) and all(
        tensor.name in named and not are_distinct(tensor, named[tensor.name]) for tensor in right
    )
