"""Finds the requirement that a failed step of the walk for clients violates, from the axes that are not neutral.

A wrong request shows which requirement it violates. If a client misreads an answer, the axis farthest from the tensors
determines the requirement: the connection before the JSON, the JSON before the encoding.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import MinimalFailure
from conformance.clients.expectations import OWN, VALUES, is_evidence_of_mixing

FRAMING, JSON, FORM = "CLIENT-READS-FRAMING", "CLIENT-READS-JSON", "CLIENT-READS-FORM"
CLASSES = "CLIENT-READS-CLASSES"
GOES_ON = "CLIENT-GOES-ON"
UNKNOWN = "CLIENT-READS-UNKNOWN-MEMBERS"
# axis -> requirement; the first of these axes that is not neutral decides.
_REQUIREMENT_BY_HTTP_AXIS: Mapping[str, str] = {
    **dict.fromkeys(("connection", "accepts", "pieces", "framing", "header_case"), FRAMING),
    **dict.fromkeys(("extra", "numbers", "spaces", "escapes", "members"), JSON),
    "classes": CLASSES,
    "header": FORM,
}
_REQUIREMENT_BY_GRPC_AXIS: Mapping[str, str] = {
    **dict.fromkeys(("fields", "integers"), FORM),
    "classes": CLASSES,
    "contents": FORM,
}


def find_requirement(found: MinimalFailure, remaining: Step) -> str | None:
    """Return the id of the requirement that the client breaks, without the suffix `/grpc`.

    Returns None if no axis points to a requirement; the caller then reports the first requirement of the check.

    Args:
        found: the shrunk failure. It has the requirement `UNKNOWN` if the client returned an error for an answer with
            unknown members.
        remaining: the axes of the failing step that are not neutral.
    """
    named = found.unmet.requirement
    if named == OWN:
        return named
    if named and named.startswith("CLIENT-SENDS-") and found.unmet.reply is not None:
        return VALUES if "beside" in remaining and is_evidence_of_mixing(named) else named
    if not found.is_lasting:  # an error that is not reproduced may be due to a connection
        return OWN if found.unmet.tensor is not None else GOES_ON
    if "beside" in remaining:
        return OWN
    if "before" in remaining:
        return GOES_ON if remaining["before"] in ("error", "closed") else OWN
    if named and named.startswith("CLIENT-SENDS-"):
        return named
    is_call = "contents" in found.step
    table = _REQUIREMENT_BY_GRPC_AXIS if is_call else _REQUIREMENT_BY_HTTP_AXIS
    for axis, requirement in table.items():
        if axis in remaining:
            return UNKNOWN if named == UNKNOWN and axis == "extra" else requirement
    if "order" in remaining and (is_call or found.step["want"] != "json"):
        return "CLIENT-READS-ORDER"
    return FORM if found.step["want"] == "mixed" else None
