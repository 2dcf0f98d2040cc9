"""Decides which rows apply to a target, from its discovery result and without a request."""

from __future__ import annotations

from collections.abc import Callable, Collection

from conformance.discovery import deployed_model
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.roles import roles
from conformance.spec import ledger
from conformance.spec.check import Check, Row
from conformance.spec.extensions import OVER_HTTP, PROTOCOL, ROBUSTNESS
from conformance.spec.ledger import Party

BINARY = "binary_tensor_data"


def is_offered(check: Check, row: Row, offered: Collection[str], transports: Collection[str]) -> bool:
    """Return whether a target offers the extensions and transports of a row, and can receive the row's tensors.

    Over HTTP, the models of some roles cannot receive their tensors as JSON and need binary tensor data.
    """
    own = ledger.get_requirement(check.requirements(row)[0])
    if own.party is Party.CLIENT:
        return True
    if own.extension == ROBUSTNESS:
        return set(row.needs) <= set(offered)
    if not (check.is_over_grpc or {*OVER_HTTP, PROTOCOL} & set(offered)):
        return False
    role = check.find_role(row)
    has_form = check.is_over_grpc or role is None or BINARY in offered or roles.load()[role].is_json_capable
    return has_form and set(check.over) <= set(transports) and {own.extension, *row.needs} <= {PROTOCOL, *offered}


def build_applicability_test(survey: DiscoveryResult, transports: Collection[str]) -> Callable[[Check, Row], bool]:
    """Return a function that decides whether a row applies to a target.

    A row applies if `is_offered` is true, the target has the model of the row, and a deployed model has the inputs and
    outputs that the row needs.
    """
    models = {name: deployed_model.from_dict(one) for name, one in survey.models.items()}

    def applies(check: Check, row: Row) -> bool:
        if not is_offered(check, row, survey.offered, transports):
            return False
        if row.model is None:
            role = check.find_role(row)
            return role is None or role in survey.roles
        model, fit = models.get(row.model), check.find_fit(row)
        return model is not None and not (
            fit and fit.describe_mismatch(model.role.inputs, model.role.outputs, is_described=model.is_described)
        )

    return applies
