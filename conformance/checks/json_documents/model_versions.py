"""Whether answers name a version of the model, and whether its metadata list one."""

from __future__ import annotations

from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import check
from conformance.transport.target import Target
from conformance.wire.finding import format_value


@check("json.version-named-and-versions-listed", answers="OIP-MODEL-VERSION-LISTED", role="identity_int32")
def version_named_and_versions_listed(target: Target, model: Model) -> str:
    """An answer names a model version or none, and the model's metadata list versions or none."""
    found = (expect(target.infer(model.request(send="json"))).answered().reply.answer.document or {}).get(
        "model_version"
    )
    listed = (target.get(model.path).answer.document or {}).get("versions")
    named = "no model_version" if found is None else f"model_version {format_value(found)}"
    return f"{named}, {'no versions' if listed is None else f'versions {format_value(listed)}'} in the metadata"
