"""Decides which rows apply to a target, from its discovery result and without a request."""

from __future__ import annotations

from collections.abc import Callable, Collection

from conformance.discovery import deployed_model
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.roles import roles
from conformance.spec.check import Case
from conformance.spec.extensions import OVER_HTTP, PROTOCOL, ROBUSTNESS
from conformance.spec.ledger import Party

BINARY = "binary_tensor_data"
# Members of a deployed model that decide, beside its datatypes and shapes, which requests it can be sent.
_KINDS = ("is_described", "binary_only", "trouble", "json_trouble", "demands", "varies", "takes_counts", "by_place")


def is_offered(case: Case, offered: Collection[str], transports: Collection[str]) -> bool:
    """Return whether a target offers the extensions and transports of a row, and can receive the row's tensors.

    Over HTTP, the models of some roles cannot receive their tensors as JSON and need binary tensor data.
    """
    check, row = case
    own = case.requirement
    if own.party is Party.CLIENT:
        return True
    if own.extension == ROBUSTNESS:
        return set(row.needs) <= set(offered)
    if not (own.is_of_pack or check.is_over_grpc or {*OVER_HTTP, PROTOCOL} & set(offered)):
        return False
    role = case.role
    has_form = check.is_over_grpc or role is None or BINARY in offered or roles.load_with_packs()[role].is_json_capable
    used = {*row.needs} if own.is_of_pack else {own.extension, *row.needs}  # a pack was asked for by name
    return has_form and set(check.over) <= set(transports) and used <= {PROTOCOL, *offered}


def build_applicability_test(discovery_result: DiscoveryResult, transports: Collection[str]) -> Callable[[Case], bool]:
    """Return a function that decides whether a row applies to a target.

    A row applies if `is_offered` is true, the target has the model of the row, and a deployed model has the inputs and
    outputs that the row needs.
    """
    models = {name: deployed_model.from_dict(one) for name, one in discovery_result.models.items()}

    def applies(case: Case) -> bool:
        if not is_offered(case, discovery_result.offered, transports):
            return False
        if case.row.model is None:
            role = case.role
            return role is None or role in discovery_result.roles
        model, fit = models.get(case.row.model), case.fit
        return model is not None and not (
            fit and fit.describe_mismatch(model.role.inputs, model.role.outputs, is_described=model.is_described)
        )

    return applies


def find_models_like_another(discovery_result: DiscoveryResult) -> set[str]:
    """Return the deployed models for which an earlier one has equal datatypes and shapes, and takes equal requests."""
    first: dict[str, str] = {}
    for name, model in discovery_result.models.items():
        tensors = [[(one["datatype"], one["shape"]) for one in model[side]] for side in ("inputs", "outputs")]
        first.setdefault(repr((tensors, [bool(model.get(key)) for key in _KINDS])), name)
    return {*discovery_result.models} - {*first.values()}
