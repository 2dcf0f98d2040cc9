"""Decides whether a target offers the extensions, transports and model of a row, and builds the model."""

from __future__ import annotations

from dataclasses import replace
from zlib import crc32

from conformance.discovery import deployed_model
from conformance.discovery.control_answers import ControlAnswers
from conformance.discovery.deployed_model import TENSORS, Change, DeployedModel
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.offered_extensions import find_missing_service
from conformance.judging.row_judge import RowOutcome, no_verdict
from conformance.roles.declared_limits import find_excess_of_role
from conformance.roles.model import Model
from conformance.roles.roles import load_with_packs as load_roles
from conformance.spec.check import Case, Check
from conformance.spec.extensions import GRPC, HTTP, OVER_HTTP, PROTOCOL
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.tensor import Tensor

# The requirements that a transport without any answer violates; they alone name it.
ENDPOINTS, ANSWERS = ("OIP-ENDPOINTS", "OIP-ENDPOINTS/grpc"), ("OIP-ANSWER", "OIP-ANSWER/grpc")
DEAD_OVER_HTTP = (
    "the server answers no request over HTTP, but it answers over gRPC: is the path of the URL before /v2 right, or"
    " does a gateway require a header?"
)
MISSING_SERVICE = "the server answers no method of inference.GRPCInferenceService: has the service another name?"
ADDRESS_OPTIONS = {HTTP: "--target-url", GRPC: "--target-grpc"}


class RowModels:
    """Decides whether rows apply to a target, and provides their models.

    Attributes:
        discovery_result: the discovery result of the target.
    """

    def __init__(self, target: Target, discovery_result: DiscoveryResult) -> None:
        self.discovery_result = discovery_result
        self._target = target
        self._deployed: dict[tuple[str, bool], DeployedModel] = {}

    # --- whether a row applies ---

    def find_missing_prerequisite(self, case: Case) -> RowOutcome | None:
        """Return the outcome `not_applicable` if the target lacks an extension, transport or model of a row."""
        offered, transports = self.discovery_result.offered, self._target.settings.transports
        entry = case.requirement
        broke = case.check.judges_discovery and any(not one.is_deliberate for one in self._target.broken_before)
        is_beside = entry.is_of_robustness or entry.is_of_pack
        applies = case.check.is_over_grpc or broke or is_beside or self.discovery_result.is_dead_over_http
        if not (applies or {*OVER_HTTP, PROTOCOL} & set(offered)):
            return conclude_not_applicable(ReasonKind.NOTHING_OVER_HTTP, "the target offers no extension over HTTP")
        own = () if is_beside else (str(entry.extension),)
        missing = [name for name in (*own, *case.row.needs) if name not in (PROTOCOL, *offered)]
        if entry.extension not in missing:
            for transport in case.check.over:
                if transport not in transports:
                    message = f"{ADDRESS_OPTIONS[transport]} is not given"
                    return conclude_not_applicable(ReasonKind.TRANSPORT_NOT_GIVEN, message, transport)
        if missing:
            return conclude_not_applicable(ReasonKind.NOT_OFFERED, f"{missing[0]} is not offered", missing[0])
        return self._find_missing_model(case)

    def _find_missing_model(self, case: Case) -> RowOutcome | None:
        """Return the outcome `not_applicable` if the row's model is missing or unsuitable, else None."""
        if case.row.model is not None:
            return self._find_unsuitable_model(case)
        role = case.role
        if role is None:
            return None
        if excess := find_excess_of_role(self.discovery_result.limits, load_roles()[role]):
            message = f"the role {role} has {excess[1]}, beyond limits.{excess[0]} of the target file"
            return conclude_not_applicable(ReasonKind.DECLARED_LIMIT, message, excess[0])
        if role not in self.discovery_result.roles:
            return conclude_not_applicable(ReasonKind.NO_MODEL, self.discovery_result.explain_missing_role(role), role)
        if (
            case.check.is_over_grpc
            or "binary_tensor_data" in self.discovery_result.offered
            or load_roles()[role].is_json_capable
        ):
            return None
        message = f"binary_tensor_data is not offered, and the tensors of {role} cannot be sent as JSON"
        return conclude_not_applicable(ReasonKind.NO_JSON_FORM, message, role)

    def _find_unsuitable_model(self, case: Case) -> RowOutcome | None:
        """Return the outcome `not_applicable` if a deployed model lacks inputs or outputs of the row, else None."""
        model, fit = self._find_model(case), case.fit
        # The row about its plain request does not infer. The other rows say no more of it, and are judged on others.
        if case.check.infers and model.trouble and (model.missing == TENSORS or self._is_any_model_usable()):
            return conclude_not_applicable(ReasonKind.NOT_FOR_THIS_MODEL, escape_text(model.trouble, 800), model.name)
        if fit is None or model.trouble:
            return None
        lack = fit.describe_mismatch(model.role.inputs, model.role.outputs, is_described=model.is_described)
        return (
            conclude_not_applicable(
                ReasonKind.NOT_FOR_THIS_MODEL,
                f"{model.name} does not fit: the row needs a model with {lack}",
                model.name,
            )
            if lack
            else None
        )

    def _is_any_model_usable(self) -> bool:
        """Return whether a model answers plain requests."""
        found = self.discovery_result
        return bool(found.roles) or any(not model["trouble"] for model in found.models.values())

    # --- the model of a row ---

    def build_model(self, case: Case) -> Model | None:
        """Return the model of a row, with input values of its own; None if the row has no model."""
        salt = crc32(case.key.encode()) % 256
        if case.row.model is not None:
            return replace(self._find_model(case), salt=salt)
        role = case.role
        return None if role is None else self._target.model(role, salt)

    def find_change(self, case: Case, expected: Tensor | None) -> Change:
        """Return how a deployed model answers the control requests of the row when asked again.

        `expected` is the output that an answer lacks, if the row failed for this reason.
        """
        model = self._find_model(case) if case.row.model is not None else None
        if model is None or model.control is None:
            return Change.NONE
        with self._target.scope(f"{case.key}, control"):
            return model.control.find_change(model, expected)

    def explain_dead_transport(self, case: Case) -> str:
        """Return why no request of a row can be answered: the server answers none over its transport; else empty.

        The rows that judge only whether the endpoints exist run, and fail.
        """
        requirements = case.requirements
        if case.check.judges_discovery or (requirements[0] in ENDPOINTS and not {*ANSWERS} & {*requirements}):
            return ""
        if HTTP in case.check.over and self.discovery_result.is_dead_over_http:
            return DEAD_OVER_HTTP
        if not case.check.is_over_grpc:
            return ""
        is_served = self._target.probe_once("methods over gRPC", lambda: not find_missing_service(self._target))
        return "" if is_served else MISSING_SERVICE

    def explain_unusable_model(self, check: Check, model: Model) -> str:
        """Return why no check can use the model, which may refuse simple requests; empty if the model works."""
        if isinstance(model, DeployedModel) and model.trouble:
            return escape_text(model.trouble, 800)
        for transport in sorted(check.over):
            if refusal := self._target.find_plain_refusal(model, transport):
                over = " over gRPC" if transport == GRPC else ""
                return f"{model.name} answers no plain request{over}: {escape_text(refusal.outcome())}"
        return ""

    def _find_model(self, case: Case) -> DeployedModel:
        """Return a deployed model of a row; the cache keeps the answers to its control requests between checks."""
        found = str(case.row.model), case.check.over == (GRPC,)
        if found not in self._deployed:
            control = ControlAnswers(self._target, is_over_grpc=found[1])
            model = replace(deployed_model.from_dict(self.discovery_result.models[found[0]]), control=control)
            self._deployed[found] = self._enable_typed_calls(model) if found[1] else model
        return self._deployed[found]

    def _enable_typed_calls(self, model: DeployedModel) -> DeployedModel:
        """Return a model that may receive typed contents over gRPC, if it rejects JSON over HTTP but accepts these."""
        typed = replace(model, json_trouble="")
        if not model.json_trouble or not typed.is_json_capable:
            return model
        with self._target.scope(f"typed call {model.name}"):
            return (
                typed
                if self._target.send(make_infer_message(typed.build_plain_request()), fresh=True).succeeded
                else model
            )


def conclude_not_applicable(kind: ReasonKind, message: str, subject: str = "") -> RowOutcome:
    """Return the outcome of a row that does not apply."""
    return no_verdict(Outcome.NOT_APPLICABLE, kind, message, subject)
