"""Finds the deployed models that fill roles, by the metadata of each model and an inference.

A model with the name of a role fills that role, whether its answers are correct or not, unless it is evidently another
model (`is_other_model`). Any other model fills a role if its metadata list the datatypes and shapes of the role, under
any tensor names, and its answer to a request with sample values is correct. For classification roles, the labels must
match as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from conformance.discovery import offered_extensions
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.roles.placement import Placement
from conformance.roles.roles import Role, TensorSpec
from conformance.roles.roles import load as load_roles
from conformance.spec.extensions import HTTP
from conformance.spec.text import escape_text, join_some
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message, Names, RequestedOutput

MAX_LISTED_INPUTS = 8  # of a model in a note
UNKNOWN_MODEL = "no-model-has-this-name"

# Requests with which servers list their models; no document defines one.
INDEX_REQUESTS = (
    Message("/v2/repository/index", (("Content-Type", "application/json"),), b"{}"),
    Message("/v2/models", method="GET"),
)


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs, outputs and versions that the metadata of a model list."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    versions: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """All inputs and outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def names(self) -> set[str]:
        """The names of all inputs and outputs."""
        return {spec.name for spec in self.tensors}

    def describe_inputs(self) -> str:
        """Return the inputs in a few words, unescaped."""
        inputs = [f"{spec.name} {spec.datatype} {list(spec.shape)}" for spec in self.inputs]
        return join_some(inputs, MAX_LISTED_INPUTS)


def list_models(target: Target) -> list[str]:
    """Return the names of the models that the target lists; over gRPC there is no list.

    Some lists have models that are not loaded, too. Nothing asks a server to describe or to run such a model.
    """
    indexes = INDEX_REQUESTS if HTTP in target.live_transports else ()
    names = dict.fromkeys(name for index in indexes for name in _iterate_names(parse_json(target.send(index).body)[0]))
    return [name for name in names if not _is_unloaded(target, name)] or list(names)


def _is_unloaded(target: Target, name: str) -> bool:
    """Say whether the server refuses to describe a model with a 4xx, and does not say that it is ready."""
    path = Model(next(iter(load_roles().values())), name).path
    return (target.get(path).status or 0) // 100 == 4 and not target.get(f"{path}/ready").succeeded


def describe_missing_list(target: Target) -> str:
    """Return the answers to the requests for a list of models, in one line."""
    if HTTP not in target.live_transports:
        return "no call over gRPC does"
    answers = [(f"{index.method} {index.path}", target.send(index).outcome()) for index in INDEX_REQUESTS]
    return "; ".join(f"{index}: {escape_text(outcome)}" for index, outcome in answers)


def find_models(target: Target) -> list[str]:
    """Return the names of the models that the target lists, and of unlisted models with the name of a role."""
    found = list_models(target)
    others = (Model(role, name) for name, role in load_roles().items() if name not in found)
    own = (model.name for model in others if _is_described_and_served(target, model))
    return list(dict.fromkeys([*found, *own]))


def _is_described_and_served(target: Target, model: Model) -> bool:
    metadata = target.get(model.path)
    return metadata.succeeded and is_served(target, model, metadata)


def _iterate_names(document: Any) -> Iterator[str]:
    """Yield the model names in a JSON list, or in the list `models` of a JSON object.

    Each entry of the list is a name or an object with `name`.
    """
    entries = document.get("models") if isinstance(document, dict) else document
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(name, str) and name:
            yield name


def find_placements(target: Target, names: Iterable[str]) -> dict[str, Placement]:
    """Return role -> placement for each role that one of the models fills."""
    named = list(names)
    signatures = read_signatures(target, named)
    found: dict[str, Placement] = {}
    for name, role in load_roles().items():
        has_own = name in named and _has_role_of_its_name(target, Model(role, name), signatures.get(name))
        placement = Placement(name) if has_own else _find_placement(target, role, signatures)
        if placement is not None:
            found[name] = placement
    return found


def _has_role_of_its_name(target: Target, model: Model, signature: Signature | None) -> bool:
    """Whether a model fills the role that has its name; without readable metadata it has to answer a plain request."""
    if signature is None:
        return offered_extensions.send_plain_request(target, model).succeeded
    return not is_other_model(target, model, signature)


def is_other_model(target: Target, model: Model, signature: Signature) -> bool:
    """Whether a model that has the name of a role is evidently another model, because no document reserves that name.

    None of its tensors has a name of the role, and it refuses the plain request of the role, or answers it without any
    output of the role, as a lenient server does. If it answers with one, its metadata are wrong, which checks report.
    """
    own = Signature(model.role.inputs, model.role.outputs).names
    if not signature.names or own & signature.names:
        return False
    reply = offered_extensions.send_plain_request(target, model)
    return reply.is_refusal or (reply.succeeded and own.isdisjoint(reply.answer.names()))


def find_missing_model_reply(target: Target, role: str) -> Reply | None:
    """Return the reply to a metadata request that shows that the model of a role is missing; None if it exists."""
    model = target.model(role)
    if model is None:
        return None
    metadata = offered_extensions.request_model_metadata(target, model)
    return None if is_served(target, model, metadata) else metadata


def is_served(target: Target, model: Model, metadata: Reply) -> bool:
    """Whether the server answered the metadata request of a model, or else answers a plain request to it.

    If the server describes unknown models as well, its answer shows a model only by the signature of the role.
    """
    if metadata.succeeded and (not _is_any_model_described(target, model) or _has_signature(model, metadata)):
        return True
    return offered_extensions.send_plain_request(target, model).succeeded


def _is_any_model_described(target: Target, model: Model) -> bool:
    unknown = replace(model, name=UNKNOWN_MODEL)
    return target.probe_once(
        "metadata of an unknown model", lambda: offered_extensions.request_model_metadata(target, unknown).succeeded
    )


def _has_signature(model: Model, metadata: Reply) -> bool:
    signature = parse_signature(metadata)
    return signature is not None and _map_names(model.role, signature) is not None


def read_signatures(target: Target, names: Iterable[str]) -> dict[str, Signature]:
    """Return name -> signature for each of these models whose metadata over HTTP are readable."""
    some_role = next(iter(load_roles().values()))
    found = {name: parse_signature(target.get(Model(some_role, name).path)) for name in names}
    return {name: signature for name, signature in found.items() if signature is not None}


def parse_signature(metadata: Reply) -> Signature | None:
    """Parse the inputs and outputs in the metadata of a model, over HTTP or gRPC; None if they are not readable."""
    if not metadata.succeeded:
        return None
    inputs, outputs = map(_parse_specs, _read_tensors(metadata))
    versions = tuple(offered_extensions.read_versions(metadata))
    return None if inputs is None or outputs is None else Signature(inputs, outputs, versions)


def _read_tensors(metadata: Reply) -> tuple[Any, Any]:
    """Return the unchecked lists of inputs and outputs in the metadata of a model."""
    document = metadata.answer.document if metadata.is_over_grpc else parse_json(metadata.body).value
    return (document.get("inputs"), document.get("outputs")) if isinstance(document, dict) else (None, None)


def _parse_specs(entries: Any) -> tuple[TensorSpec, ...] | None:
    try:
        return tuple(TensorSpec(str(e["name"]), str(e["datatype"]), tuple(map(int, e["shape"]))) for e in entries)
    except (TypeError, ValueError, LookupError, OverflowError):  # OverflowError: Infinity, which json accepts
        return None


def _find_placement(target: Target, role: Role, signatures: Mapping[str, Signature]) -> Placement | None:
    for name, signature in signatures.items():
        names = _map_names(role, signature)
        for version in ("", *signature.versions[:1]) if names is not None else ():
            placement = Placement(name, version, names or Names())
            if _is_role_model(target, Model(role, name, version=version, names=placement.names)):
                return placement
    return None


def _map_names(role: Role, signature: Signature) -> Names | None:
    """Map the role's tensor names to those of a model, where they differ; None if the signature does not match."""
    inputs = _match_specs(role.inputs, signature.inputs, batching=role.batching)
    outputs = _match_specs(role.outputs, signature.outputs, batching=role.batching)
    return None if inputs is None or outputs is None else Names(inputs, outputs)


def _match_specs(specs: Sequence[TensorSpec], others: Sequence[TensorSpec], *, batching: bool) -> dict[str, str] | None:
    """Map the tensor names of a role (`specs`) to those of a model (`others`); None if datatypes or shapes differ.

    Tensors are matched by name if role and model have the same names, else by order. Equal names are omitted.

    """
    named = {other.name: other for other in others}
    if set(named) == {spec.name for spec in specs}:
        others = [named[spec.name] for spec in specs]
    if len(specs) != len(others):
        return None
    for spec, other in zip(specs, others, strict=True):
        shape = (-1, *spec.shape) if batching else spec.shape
        if spec.datatype != other.datatype or shape != other.shape:
            return None
    return {spec.name: other.name for spec, other in zip(specs, others, strict=True) if spec.name != other.name}


def _is_role_model(target: Target, model: Model) -> bool:
    """Whether the model returns the outputs of its role for sample values, and has the labels of the role."""
    form = "json" if model.role.is_json_capable else "binary"
    try:
        reply = target.infer(model.request(send=form, want=None if form == "json" else "binary"))
        expect(reply).tensors(model.expected(model.sample()))
    except UnmetError:
        return False
    return not model.role.name.startswith(("scores", "documented_scores")) or _has_role_labels(target, model)


def _has_role_labels(target: Target, model: Model) -> bool:
    """Whether each class of each output has the label that the role defines, or no label if the role has no labels.

    If the server does not classify an output, only roles without labels match.
    """
    for spec in model.role.outputs:
        wanted = RequestedOutput(spec.name, classification=max(1, prod(spec.shape)))
        reply = target.infer(model.request(send="json", outputs=[wanted]))
        output = reply.answer.output(spec.name) if reply.succeeded else None
        if output is None or output.array is None or output.datatype != "BYTES":
            return not model.role.labels  # classification is not supported, so labels cannot be compared
        labels = model.role.labels.get(spec.name, ())
        if not all(_has_label(bytes(text), labels) for text in output.array.reshape(-1)):
            return False
    return True


def _has_label(text: bytes, labels: Sequence[str]) -> bool:
    _, _, rest = text.decode("utf-8", "replace").partition(":")
    index, _, label = rest.partition(":")
    wanted = labels[int(index)] if index.isdecimal() and int(index) < len(labels) else ""
    return label == wanted
