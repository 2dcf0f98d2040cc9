"""Metadata of the server and its models.

Model metadata are compared with the role of the model by tensor names, as leniently as the protocol allows: they may
list more tensors, -1 may replace a dimension that the role fixes, and a batching model may omit its batch dimension.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.controls import find_answer_form
from conformance.checks.support.datatypes import get_identity_role
from conformance.checks.support.documents import (
    expect_answered_call,
    expect_described,
    expect_document,
    expect_extension_listed,
    expect_listed_once,
    expect_requested_name,
    find_other_role,
    is_declared_shape,
    list_versions,
)
from conformance.checks.support.versions import find_default_version
from conformance.discovery.deployed_model import DeployedModel
from conformance.discovery.placement_search import Signature, parse_signature
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.spec.check import Row, check, claim, rows
from conformance.spec.fit import ANY
from conformance.spec.text import escape_text, format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.request import ABSENT, InferRequest

# --- the server -------------------------------------------------------------------------------------------------------


@check("metadata.binary-tensor-data-is-listed", requirements="BIN-LISTED")
def binary_tensor_data_is_listed(target: Target) -> None:
    """The server's metadata list the extension binary_tensor_data."""
    expect_extension_listed(target, "binary_tensor_data")


@claim("metadata.classification-is-listed", requirements="CLS-LISTED", infers=False)
def classification_is_listed(target: AnyTarget) -> None:
    """The server's metadata list the extension classification."""
    expect_extension_listed(target, "classification")


@check("metadata.server-metadata-is-well-formed", requirements="OIP-SERVER-METADATA")
def server_metadata_is_well_formed(target: Target) -> None:
    """The server's metadata are an object with name, version and an array of extensions."""
    reply = target.describe()
    expect_described(reply)
    expect_document(reply, "server_metadata", ("name", "version", "extensions"))


# --- its models -------------------------------------------------------------------------------------------------------
# Metadata are compared with the role by tensor names, as leniently as the protocol allows; see the top of this module.


# The roles whose metadata are also requested by version, after those of another model: one of each kind.
VERSIONED_ROLES = ("identity_int32", "identity_bool", "rank0", "multi", "scores_batching_labelled")


@claim(
    "metadata.model-metadata-describes-the-model",
    requirements=("OIP-MODEL-METADATA", "OIP-MODEL-NAME-ASKED"),
    infers=False,
)
@rows(*[Row(name, role=name) for name in load()], Row("deployed", (True,), fit=ANY))
def model_metadata_describes_the_model(target: AnyTarget, model: Model, is_deployed: bool = False) -> None:
    """Model metadata give the model's name, a platform, and name, datatype and shape of each input and output."""
    target.describe(model)  # repeated metadata may differ
    reply = target.describe(model)
    if not reply.succeeded:
        expect_described(reply, "OIP-MODEL-METADATA" if _is_another_model_described(target, model) else "OIP-ENDPOINTS")
    document = _expect_metadata(reply)
    for member in ("inputs", "outputs"):
        expect_listed_once(reply, [item["name"] for item in document[member]])
    if is_deployed:  # the suite knows nothing else about a deployed model
        _expect_known_datatypes(reply, document)
        _expect_accepted_inputs_described(reply, document, model)
    else:
        _expect_role_described(reply, document, model)
    if is_deployed or model.role.name in VERSIONED_ROLES:
        _expect_same_metadata_with_version(target, model)
    expect_requested_name(
        *(target, reply, document["name"], model, "OIP-MODEL-METADATA"),
        lambda other: (target.describe(other).answer.document or {}).get("name"),
        may_differ=bool(model.version),  # a server may name a model with its version
    )


_ARRAYS = frozenset({"inputs", "outputs"})


def _is_another_model_described(target: AnyTarget, model: Model) -> bool:
    """Return whether the server describes another model."""
    other = target.model(find_other_role(model))
    return other is not None and target.describe(other).succeeded


def _expect_metadata(reply: Reply) -> Mapping[str, Any]:
    """Expect the metadata of a model, with every member of a valid type; return them.

    Arrays of tensors that are left out count as empty, which the OpenAPI file allows.
    """
    if not reply.is_over_grpc:
        arrays = _ARRAYS & (reply.answer.document or dict.fromkeys(_ARRAYS)).keys()
        document = expect_document(reply, "model_metadata", ("name", "versions", "platform", *arrays))
        return {name: [] for name in _ARRAYS} | document
    expect_answered_call(reply)
    document = reply.answer.document or {}
    if not document["name"]:
        raise UnmetError("the name of the model in model metadata", "no name", reply)
    return document


def _expect_accepted_inputs_described(reply: Reply, document: Mapping[str, Any], model: Model) -> None:
    """Expect metadata over gRPC to describe the inputs that a deployed model accepts over either transport.

    Over HTTP, these inputs are those of the metadata themselves.

    Raises:
        NotApplicableError: the metadata list no tensors.
    """
    if not reply.is_over_grpc:
        return
    if not document["inputs"] and not document["outputs"]:
        raise NotApplicableError(f"the metadata of {model.name} list no tensors")
    described = {item["name"]: item for item in document["inputs"]}
    for tensor in model.sample():
        item = described.get(tensor.name)
        if item is None:
            raise UnmetError(f"{tensor.name} in model metadata", f"the tensors {format_value(list(described))}", reply)
        wanted = f"{tensor.name} with {{}}, as in inference with the model"
        if item["datatype"] != tensor.datatype:
            expected = wanted.format(f"datatype {tensor.datatype}")
            raise UnmetError(expected, f"datatype {format_value(item['datatype'])}", reply)
        if 0 in item["shape"] and tensor.elements:
            expected = wanted.format(f"a shape of {tensor.elements} elements")
            raise UnmetError(expected, f"shape {item['shape']}", reply)


def _expect_known_datatypes(reply: Reply, document: Mapping[str, Any]) -> None:
    """Expect that each tensor in metadata has a datatype of the protocol."""
    for member in ("inputs", "outputs"):
        for place, item in enumerate(document[member]):
            if item["datatype"] not in DATATYPES:
                expected = f"{member}[{place}] in model metadata with a datatype of the protocol"
                raise UnmetError(expected, f"datatype {format_value(item['datatype'])}", reply)


def _expect_role_described(reply: Reply, document: Mapping[str, Any], model: Model) -> None:
    names = model.names
    for member, specs, named in (
        ("inputs", model.role.inputs, names.inputs),
        ("outputs", model.role.outputs, names.outputs),
    ):
        described = {item["name"]: item for item in document[member]}
        for spec in specs:
            name = named.get(spec.name, spec.name)
            if name not in described:
                raise UnmetError(
                    f"{name} among the {member} in model metadata", f"{member} {format_value(list(described))}", reply
                )
            _expect_tensor_described(reply, spec, described[name], batching=model.role.batching)


def _expect_tensor_described(reply: Reply, spec: TensorSpec, described: dict[str, Any], *, batching: bool) -> None:
    """Expect that a tensor in metadata has the datatype and shape that the role declares."""
    if described["datatype"] != spec.datatype:
        raise UnmetError(
            f"{spec.name} with datatype {spec.datatype} in model metadata",
            f"datatype {format_value(described['datatype'])}",
            reply,
        )
    shape = described["shape"]
    if not (is_declared_shape(spec.shape, shape) or (batching and shape and is_declared_shape(spec.shape, shape[1:]))):
        wanted = f"{list(spec.shape)}" + (f" or {[-1, *spec.shape]}" if batching else "")
        raise UnmetError(f"{spec.name} with shape {wanted} in model metadata", f"shape {format_value(shape)}", reply)


def _expect_same_metadata_with_version(target: AnyTarget, model: Model) -> None:
    """Expect the path with the model's version, if supported, to have valid metadata of the same tensors.

    The names may differ, because a server may name a model with its version; but a version is not the name of a model.
    """
    other = target.model(find_other_role(model))
    plain = target.describe(replace(model, version=""))
    for each in (other, model):
        version = find_default_version(target, each, list_versions(target, each)) if each else ""
        reply = target.describe(replace(each, version=version)) if each and version else None
    if reply is None or not reply.succeeded:
        return
    _expect_metadata(reply)
    right, found = (one.answer.document or {} for one in (plain, reply))
    if right.get("name") != found.get("name") == version:
        raise UnmetError("the name of the model in model metadata", f"name {format_value(version)}, its version", reply)
    right, found = _summarize_tensors(right), _summarize_tensors(found)
    for member, value in right.items():
        if found[member] != value:
            expected = f"{member} {format_value(value)} as at the path without the version"
            raise UnmetError(expected, f"{member} {format_value(found[member])}", reply)


def _summarize_tensors(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sorted tensors in the metadata of a model, for comparison."""
    found = {}
    for member in ("inputs", "outputs"):
        listed = document.get(member)
        tensors = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        found[member] = sorted([str(item.get(key)) for key in ("name", "datatype", "shape")] for item in tensors)
    return found


@claim("metadata.answer-has-the-declared-outputs", requirements=("OIP-MODEL-METADATA", "OIP-OUTPUTS-ALL"))
@rows(Row("deployed", fit=ANY))
def answer_has_the_declared_outputs(target: AnyTarget, model: DeployedModel) -> None:
    """The server returns the outputs that the metadata declare, and no others, when a request lists none."""
    signature = _read_signature(target, model)
    reply = target.infer(_request_all_outputs(target, model))
    expect(reply).answered()
    declared = {spec.name: spec for spec in signature.outputs}
    if missing := [name for name in declared if reply.answer.output(name) is None]:
        raise _make_missing_output_error(reply, missing[0], declared)
    with block_if(lambda: _are_roles_described(target, reply), _ONE_MODEL_ALONE):
        _expect_outputs_as_declared(reply, declared, _list_batch_dimensions(signature, model))


# The code of a model may contradict what its author has declared.
_ONE_MODEL_ALONE = "the answer contradicts the model's metadata, but roles with these datatypes are described right"


def _are_roles_described(target: AnyTarget, reply: Reply) -> bool:
    """Return whether the server describes a role right for each datatype of an answer."""
    datatypes = {output.datatype for output in reply.answer.outputs}
    others = [target.model(get_identity_role(datatype)) for datatype in datatypes & DATATYPES.keys()]
    return bool(others) and all(other is not None and _is_role_described(target, other) for other in others)


def _is_role_described(target: AnyTarget, model: Model) -> bool:
    reply = target.describe(model)
    return is_met(lambda: expect_described(reply)) and is_met(
        lambda: _expect_role_described(reply, _expect_metadata(reply), model)
    )


def _expect_outputs_as_declared(reply: Reply, declared: Mapping[str, TensorSpec], batches: Collection[int]) -> None:
    """Expect the outputs of an answer to be among those of the metadata, with their datatypes and shapes."""
    for output in reply.answer.outputs:
        spec = declared.get(output.name)
        if spec is None:
            names = format_value(list(declared))
            raise UnmetError(f"outputs {names}, as in the model's metadata", escape_text(output.name, 60), reply)
        expected = f"{spec.name} {spec.datatype} {list(spec.shape)}, as declared in the model's metadata"
        if output.datatype != spec.datatype:
            raise UnmetError(expected, f"{spec.name} {escape_text(output.datatype, 40)}", reply)
        if output.shape is not None and not may_have_shape(spec.shape, output.shape, batches):
            raise UnmetError(expected, f"{spec.name} with {format_shape(output.shape)}", reply)


def _read_signature(target: AnyTarget, model: Model) -> Signature:
    """Return the inputs and outputs in the metadata of a model.

    Raises:
        NotApplicableError: the metadata list no tensors, so that they declare nothing.
        BlockedError: the metadata cannot be read; other checks report that.
    """
    reply = target.describe(model)
    signature, document = parse_signature(reply), reply.answer.document
    if signature is None and (document is None or _ARRAYS & document.keys()):
        raise BlockedError(f"no readable metadata of {model.name}")
    if signature is None or not signature.names:
        raise NotApplicableError(f"the metadata of {model.name} list no tensors")
    return signature


def _request_all_outputs(target: AnyTarget, model: DeployedModel) -> InferRequest:
    if isinstance(target, GrpcTarget):
        return model.request(send=find_answer_form(target, model))
    return model.request(send=model.binary_inputs, binary_data_output=True if model.binary_outputs else ABSENT)


def _list_batch_dimensions(signature: Signature, model: Model) -> set[int]:
    """Return by how many dimensions the inputs of a model exceed their declared shapes, which may omit the batch."""
    declared = {spec.name: spec.shape for spec in signature.inputs}
    return {len(one.shape) - len(declared[one.name]) for one in model.sample() if one.name in declared}


def _make_missing_output_error(reply: Reply, name: str, declared: Collection[str]) -> UnmetError:
    """Return the error for a missing declared output; an undeclared output shows that metadata are wrong."""
    names = reply.answer.names()
    about = None if set(names) - set(declared) else "OIP-OUTPUTS-ALL"
    requirement = attribution.attribute_json_text(reply) or about
    return UnmetError(
        f"{name}, as declared in the model's metadata",
        f"outputs {format_value(list(names))}",
        reply,
        requirement=requirement,
    )


def may_have_shape(declared: Sequence[int], shape: Sequence[int], batches: Collection[int]) -> bool:
    """Say whether an output may have a declared shape.

    Its ranks may differ by a batch dimension, as those of the inputs do: `batches`; empty if that is unknown. If they
    do not differ, the first dimension may be a batch dimension, which may differ from a positive declared size.
    """
    batch = len(shape) - len(declared)
    if batch:
        inner = zip(reversed(declared), reversed(shape), strict=False)
        return not batches or (batch in batches and all(wanted in (-1, size) for wanted, size in inner))
    pairs = enumerate(zip(declared, shape, strict=True))
    return all(wanted in (-1, size) or (place == 0 and wanted > 0) for place, (wanted, size) in pairs)
