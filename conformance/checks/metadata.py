"""What the server says about itself and its models.

The form is that of the schemas. Model metadata are compared with the role that the model fills, by tensor names and as
loosely as the protocol leaves room for: there may be more tensors, -1 may stand for a dimension that the role fixes,
and the batch dimension of a batching model is shown or not.
"""

from __future__ import annotations

from typing import Any

from conformance.check import Row, check, rows
from conformance.checks._schemas import faults
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model, TensorSpec, load
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.finding import shown
from conformance.wire.json_text import parse

# One of each kind; the other roles are many alike.
_TYPICAL = frozenset({"identity_int32", "identity_bytes", "multi", "fixed", "batching", "rank4"})


@check("metadata.binary-tensor-data-is-listed", answers="BIN-META")
def binary_tensor_data_is_listed(target: Target) -> None:
    """Server metadata lists the extension binary_tensor_data."""
    _lists(target, "binary_tensor_data")


@check("metadata.classification-is-listed", answers="CLS-META")
def classification_is_listed(target: Target) -> None:
    """Server metadata lists the extension classification."""
    _lists(target, "classification")


@check("metadata.server-metadata-is-well-formed", answers="OIP-META")
def server_metadata_is_well_formed(target: Target) -> None:
    """Server metadata is an object with name, version and an array of extensions."""
    _document(target.get("/v2"), "server_metadata", ("name", "version", "extensions"))


@check("metadata.model-metadata-describes-the-model", answers="OIP-MODEL-META", infers=False)
@rows(*[Row(name, role=name, thorough=name not in _TYPICAL) for name in load()])
def model_metadata_describes_the_model(target: Target, model: Model) -> None:
    """Model metadata gives name, datatype and shape of each input and output."""
    reply = target.get(model.path)
    document = _document(reply, "model_metadata", ("name", "inputs", "outputs"))
    names = model.names
    for member, specs, named in (
        ("inputs", model.role.inputs, names.inputs),
        ("outputs", model.role.outputs, names.outputs),
    ):
        described = {item["name"]: item for item in document[member]}
        for spec in specs:
            name = named.get(spec.name, spec.name)
            if name not in described:
                raise Unmet(f"{name} among the {member} in model metadata", f"{member} {shown(list(described))}", reply)
            _compare(reply, spec, described[name], batching=model.role.batching)


def _lists(target: Target, name: str) -> None:
    reply = target.get("/v2")
    expect(reply).answered()
    document, _ = parse(reply.body)
    listed = document.get("extensions") if isinstance(document, dict) else None
    if not isinstance(listed, list) or name not in listed:
        raise Unmet(f"{name} among the extensions in server metadata", f"extensions {shown(listed)}", reply)


def _document(reply: Reply, schema: str, members: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON object of an answer, which fits the schema at least in these members."""
    expect(reply).answered()
    kind = schema.replace("_", " ")
    document, findings = parse(reply.body)
    if not isinstance(document, dict):
        raise Unmet(f"a JSON object as {kind}", findings[0].told if findings else shown(document), reply)
    for fault in faults(schema, document):
        if fault.path[0] in members:
            raise Unmet(f"{fault.place} in {kind} to be {fault.expected}", fault.actual, reply)
    return document


def _compare(reply: Reply, spec: TensorSpec, described: dict[str, Any], *, batching: bool) -> None:
    """Expect that a described tensor is the role's."""
    if described["datatype"] != spec.datatype:
        raise Unmet(
            f"{spec.name} with datatype {spec.datatype} in model metadata",
            f"datatype {shown(described['datatype'])}",
            reply,
        )
    shape = described["shape"]
    if not (fits(spec.shape, shape) or (batching and shape and fits(spec.shape, shape[1:]))):
        wanted = f"{list(spec.shape)}" + (f" or {[-1, *spec.shape]}" if batching else "")
        raise Unmet(f"{spec.name} with shape {wanted} in model metadata", f"shape {shown(shape)}", reply)


def fits(declared: tuple[int, ...], shape: list[Any]) -> bool:
    """Say whether a shape in metadata is the declared one, or leaves dimensions open."""
    return len(declared) == len(shape) and all(b in (a, -1) for a, b in zip(declared, shape, strict=True))
