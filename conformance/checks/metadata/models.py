"""What the server says about its models.

Model metadata are compared with the role that the model fills, by tensor names and as loosely as the protocol leaves
room for: there may be more tensors, -1 may stand for a dimension that the role fixes, and the batch dimension of a
batching model is shown or not.
"""

from __future__ import annotations

from typing import Any

from conformance.checks.support.metadata import expect_document, fits
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.terms.check import Row, check, rows
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import shown

# One of each kind; the other roles are many alike.
_TYPICAL = frozenset({"identity_int32", "identity_bytes", "multi", "fixed", "batching", "rank4"})


@check("metadata.model-metadata-describes-the-model", answers="OIP-MODEL-METADATA", infers=False)
@rows(*[Row(name, role=name, thorough=name not in _TYPICAL) for name in load()])
def model_metadata_describes_the_model(target: Target, model: Model) -> None:
    """Model metadata gives a platform, and name, datatype and shape of each input and output."""
    reply = target.get(model.path)
    document = expect_document(reply, "model_metadata", ("name", "platform", "inputs", "outputs"))
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
            _expect_described(reply, spec, described[name], batching=model.role.batching)


def _expect_described(reply: Reply, spec: TensorSpec, described: dict[str, Any], *, batching: bool) -> None:
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
