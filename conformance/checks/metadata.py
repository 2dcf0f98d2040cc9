"""What the server says about itself and its models."""

from __future__ import annotations

from conformance.check import check
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.target import Target
from conformance.wire.json_text import parse


@check("metadata.binary-tensor-data-is-listed", answers="BIN-META")
def binary_tensor_data_is_listed(target: Target) -> None:
    """Server metadata lists the extension binary_tensor_data."""
    _lists(target, "binary_tensor_data")


def _lists(target: Target, name: str) -> None:
    reply = target.get("/v2")
    expect(reply).answered()
    document, _ = parse(reply.body)
    listed = document.get("extensions") if isinstance(document, dict) else None
    if not isinstance(listed, list) or name not in listed:
        raise Unmet(f"{name} among the extensions", f"extensions {listed!r}", reply)
