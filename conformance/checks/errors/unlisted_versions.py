"""A version that the model does not have: refused, where its metadata list those that it has."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.support.documents import list_versions
from conformance.expect.refusals import expect_refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.fit import JSON
from conformance.transport.target import Target
from conformance.wire.request import Message

UNLISTED = "87654"


@check("errors.unlisted-version-is-refused", answers="OIP-VERSION-UNKNOWN", role="identity_int32", fit=JSON)
@rows("inference", "metadata")
def unlisted_version_is_refused(target: Target, model: Model, of: str) -> None:
    """A request at the path of a version that the model's metadata do not list is refused."""
    listed = list_versions(target, model)
    if not listed or UNLISTED in listed:
        raise NotApplicableError(f"the metadata of {model.name} list {'that version' if listed else 'no versions'}")
    named = replace(model, version=UNLISTED)
    message = named.request(send="json").message() if of == "inference" else Message(named.path, method="GET")
    expect_refusal(target, model, message, "a version that there is not")
