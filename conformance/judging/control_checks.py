"""Explains errors of rows by controls: the control requests of a deployed model, and a plain request.

An answer that is wrong because of the model, or wrong to a plain request as well, does not violate the row's own
requirement.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from conformance.discovery.control_answers import find_differing_outputs
from conformance.discovery.deployed_model import Change
from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.judging.reused_answers import ISOLATION, find_reuse
from conformance.judging.row_judge import RowError, RowOutcome, is_wrong_request_answered, name_requirement, no_verdict
from conformance.judging.row_models import RowModels, conclude_not_applicable
from conformance.judging.unanswered_requests import find_missing_error, find_option_cause, find_refusal_cause
from conformance.judging.wrong_values import find_value_cause
from conformance.spec.check import Case
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.replay import NotRecordedError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError

# Requirements about the effect of earlier requests, on any connection.
STATE_REQUIREMENTS = (ISOLATION, f"{ISOLATION}/grpc")
# The status of a refusal, over gRPC that of its code -> what has become of a model that refuses plain requests with it.
_LOST: Mapping[int, str] = {
    404: "has disappeared during the run",
    **dict.fromkeys(BUSY_STATUSES, "refuses plain requests as well now"),
}


@dataclass(frozen=True, slots=True)
class ControlChecks:
    """Sends the controls of one target, whose rows have these models."""

    target: Target
    models: RowModels

    def explain_by_lost_model(self, case: Case, error: RowError) -> RowOutcome | None:
        """Return `blocked` if the model has disappeared, or is too busy for anything: plain requests are refused now.

        They were answered before, and the status of the row's refusal says that the request is not the reason. Each row
        asks by itself, so that a replay, which judges the rows in another order, comes to the same outcome.
        """
        reply, model = None if isinstance(error, BlockedError) else error.reply, self.models.build_model(case)
        loss = _LOST.get(reply.status or 0) if reply else None
        if model is None or reply is None or loss is None or case.requirement.is_of_robustness:
            return None  # a hostile request may be what has ended the model
        if reply.status in BUSY_STATUSES and any(one.status != reply.status for one in self.target.exchanges):
            return None  # the model was not too busy for an earlier request of the row, which may be what keeps it busy
        transport = GRPC if reply.is_over_grpc else HTTP
        # A model without a plain request that it answers cannot have disappeared.
        with suppress(BlockedError, NotApplicableError, TargetLostError, NotRecordedError):
            if self.target.find_plain_refusal(model, transport) is None:
                refusal = self.target.repeat_plain_request(model, transport)
                if refusal is not None and refusal.status == reply.status:
                    message = f"{model.name} {loss}: {escape_text(refusal.outcome())}"
                    return no_verdict(Outcome.BLOCKED, ReasonKind.MODEL_IS_SILENT, message, model.name)
        return None

    def explain_by_repetition(self, case: Case, error: RowError) -> RowOutcome | UnmetError | None:
        """Return an explanation if a deployed model answers the control requests otherwise when asked again.

        That is `not_applicable` if the model is not deterministic, and the violation if the server mixes requests.
        """
        unmet = error.cause if isinstance(error, BlockedError) else error
        change = self.models.find_change(case, unmet.tensor if unmet else None)
        if change is Change.OTHER_VALUES:
            return conclude_not_applicable(ReasonKind.NOT_FOR_THIS_TARGET, f"{case.row.model} is not deterministic")
        return self._attribute_to_isolation(unmet) if change is Change.OTHER_REQUEST else None

    def _attribute_to_isolation(self, unmet: UnmetError | None) -> UnmetError | None:
        """Return the violation, if the values of an answer are wrong on a server that mixes requests; else None."""
        reply = unmet.reply if unmet else None
        if unmet is None or reply is None or not reply.succeeded:
            return None
        again = self.target.send(reply.exchange.message, fresh=True)
        if unmet.tensor is None and not (again.succeeded and find_differing_outputs(reply, again)):
            return None
        unmet.requirement = to_grpc_requirement(ISOLATION) if reply.is_over_grpc else ISOLATION
        unmet.actual += "; repeated control requests also get outputs of other requests"
        return unmet

    def explain_by_other_inputs(self, case: Case, error: RowError) -> UnmetError | None:
        """Return the violation if the server obeys the options of the request with inputs that it has not seen."""
        unmet = error.cause if isinstance(error, BlockedError) else error
        model = self.models.build_model(case)
        if model is None or unmet is None or unmet.reply is None or unmet.requirement in STATE_REQUIREMENTS:
            return None
        try:
            return find_reuse(self.target, model, unmet.reply)
        except (BlockedError, NotApplicableError, TargetLostError, NotRecordedError):
            return None

    def explain_missing_answer(self, case: Case, error: RowError) -> UnmetError | None:
        """Return the violation if the server does not answer a request for another reason than the row's property."""
        if isinstance(error, BlockedError):
            return None
        model, named = self.models.build_model(case), name_requirement(case, error)
        try:
            found = find_option_cause(self.target, model, error, named) if model else None
            return found or find_refusal_cause(self.target, error, named) or find_missing_error(error, named)
        except (TargetLostError, NotRecordedError):
            return None

    def explain_wrong_values(self, case: Case, error: RowError) -> UnmetError | None:
        """Return the violation if the values of an answer are wrong for another reason than the row's property."""
        model = self.models.build_model(case)
        if isinstance(error, BlockedError) or model is None:
            return None
        try:
            return find_value_cause(self.target, model, error, name_requirement(case, error))
        except (TargetLostError, NotRecordedError):
            return None

    def explain_by_plain_request(self, case: Case, error: RowError) -> BlockedError | None:
        """Return an error that blocks a row about wrong requests if the answer to a plain request is wrong as well."""
        if isinstance(error, BlockedError) or not is_wrong_request_answered(case, error):
            return None
        if self._is_plain_request_right(case):
            return None
        return BlockedError("the answer to a plain request is wrong as well", error)

    def _is_plain_request_right(self, case: Case) -> bool:
        """Return whether the server answers a plain request right; True if nothing is known about that."""
        model = self.models.build_model(case)
        peer = GrpcTarget(self.target) if case.check.is_over_grpc else self.target
        if model is None:
            return True
        try:
            reply = peer.send(peer.message(peer.build_good_requests(model)[0]), fresh=True)
            return is_met(lambda: expect(reply).tensors(model.find_outputs(model.sample())))
        except (BlockedError, NotApplicableError, TargetLostError, NotRecordedError):
            return True
