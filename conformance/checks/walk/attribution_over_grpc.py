"""Find the requirement that a failing step over gRPC breaks; see `attribution`.

Some of the returned ids belong to HTTP; the judge maps them to gRPC ids.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import MinimalFailure
from conformance.checks.walk import attribution
from conformance.checks.walk.axes import CANCELLED
from conformance.checks.walk.concurrent_requests import REFUSED
from conformance.roles.roles import Role

# form of the inputs -> datatype -> requirement
_CONTENTS_REQUIREMENTS = {True: "GRPC-RAW", False: "GRPC-TYPED"}
_RAW_REQUIREMENTS: Mapping[str, str] = {"BYTES": "GRPC-RAW-BYTES", "FP16": "GRPC-FP16"}


def find_requirement(found: MinimalFailure, role: Role) -> str | None:
    """Return the requirement that a failing step breaks; None means the first requirement of the check."""
    remaining, unmet = attribution.find_remaining_axes(found.step), found.unmet
    is_answered = unmet.reply is not None and unmet.reply.succeeded
    if found.earlier or not found.is_lasting or "beside" in remaining:
        return attribution.ISOLATION
    if "before" in remaining:
        alive = "OIP-ALIVE-LEGAL" if remaining["before"] == CANCELLED else "OIP-ALIVE"
        has_no_answer = remaining["before"] in (*REFUSED, CANCELLED) and not is_answered
        return alive if has_no_answer else attribution.ISOLATION
    if "path" in remaining:
        return "OIP-VERSIONED/grpc"
    if unmet.requirement:
        return "OIP-ID/grpc" if unmet.requirement == "OIP-ID" else unmet.requirement
    if "id" in remaining and not is_answered:  # a wrong tensor is none of the id's requirement
        return "OIP-ID/grpc"
    if found.step["classes"] != "none":
        return None if is_answered else "CLS-PARAMETER"
    return _attribute_tensors(found.step, remaining, role, is_answered=is_answered)


def _attribute_tensors(step: Step, remaining: Step, role: Role, *, is_answered: bool) -> str:
    """Return the requirement on the order or the contents of tensors that a failing step breaks."""
    is_raw = step["send"] == "binary"
    if "order" in remaining:
        return "GRPC-ORDER-I" if is_raw else "GRPC-INPUT-BY-NAME"
    if "outputs" in remaining:
        return "GRPC-ORDER-O" if is_answered else "OIP-OUTPUTS-LISTED"
    datatypes = {spec.datatype for spec in (*role.inputs, *role.outputs)}
    return (
        _RAW_REQUIREMENTS.get(min(datatypes), "GRPC-RAW")
        if is_raw and len(datatypes) == 1
        else _CONTENTS_REQUIREMENTS[is_raw]
    )
