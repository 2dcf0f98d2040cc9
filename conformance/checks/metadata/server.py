"""What the server says about itself: name, version and extensions."""

from __future__ import annotations

from conformance.checks.support.metadata import expect_document
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.spec.check import check
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.json_text import parse_json


@check("metadata.binary-tensor-data-is-listed", answers="BIN-LISTED")
def binary_tensor_data_is_listed(target: Target) -> None:
    """Server metadata lists the extension binary_tensor_data."""
    _expect_listed(target, "binary_tensor_data")


@check("metadata.classification-is-listed", answers="CLS-LISTED")
def classification_is_listed(target: Target) -> None:
    """Server metadata lists the extension classification."""
    _expect_listed(target, "classification")


@check("metadata.server-metadata-is-well-formed", answers="OIP-SERVER-METADATA")
def server_metadata_is_well_formed(target: Target) -> None:
    """Server metadata is an object with name, version and an array of extensions."""
    expect_document(target.get("/v2"), "server_metadata", ("name", "version", "extensions"))


def _expect_listed(target: Target, name: str) -> None:
    reply = target.get("/v2")
    expect(reply).answered()
    document, _ = parse_json(reply.body)
    listed = document.get("extensions") if isinstance(document, dict) else None
    if not isinstance(listed, list) or name not in listed:
        raise UnmetError(f"{name} among the extensions in server metadata", f"extensions {format_value(listed)}", reply)
