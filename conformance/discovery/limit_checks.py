"""Compares the limits that the target file declares with the models of the target.

A limit that the server contradicts is an error of the file, found before the first row: a verdict would name a limit
that the server does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.discovery import deployed_model, placement_search
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.offered_extensions import request_model_metadata, send_request
from conformance.roles.declared_limits import find_excess, find_excess_of_role
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec
from conformance.roles.roles import load_with_packs as load_roles
from conformance.spec.text import escape_text
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, RequestedOutput

Specs = Sequence[TensorSpec]


class ContradictedLimitError(SettingsError):
    """The server contradicts a limit that its target file declares."""

    def __init__(self, limit: str, model: str, excess: str) -> None:
        super().__init__(
            f"limits.{limit}: model {escape_text(model, 100)} of the server {excess}: correct the limit, or stop "
            "serving the model"
        )


def apply_limits(target: Target, found: DiscoveryResult) -> None:
    """Remove the roles beyond the limits of the target file from a discovery result.

    Raises:
        ContradictedLimitError: a model of the server exceeds a limit.
        TargetLostError: the target does not answer.
    """
    found.limits = dict(target.limits)
    if not target.limits:
        return
    for name, specs in _iterate_models(target, found):
        if excess := find_excess(target.limits, remove_batch(specs)):
            raise ContradictedLimitError(excess[0], name, f"has {excess[1]}")
    if (most := target.limits.get("max_batch")) is not None:
        _expect_batch_limit(target, found, max(most + 1, 2))
    if not target.limits.get("labels", True):
        _expect_no_labels(target, found)
    target.broken = [one for one in target.broken if not one.is_deliberate]  # how it refuses a batch or a path
    every = load_roles()
    kept = {name: model for name, model in found.roles.items() if not find_excess_of_role(target.limits, every[name])}
    found.roles = target.roles = kept


def remove_batch(specs: Specs) -> list[TensorSpec]:
    """Return declared tensors without the first dimension if it may be a batch: it is variable, and not the only one.

    The metadata of a model do not say whether it takes batches.
    """
    return [
        replace(spec, shape=spec.shape[1:]) if len(spec.shape) > 1 and spec.shape[0] < 0 else spec for spec in specs
    ]


def _iterate_models(target: Target, found: DiscoveryResult) -> Iterator[tuple[str, Specs]]:
    """Yield the models of the target, each with its tensors: those judged, and those that the target lists."""
    for name in found.roles:
        if (model := target.model(name)) is not None:
            signature = placement_search.parse_signature(request_model_metadata(target, model))
            yield model.name, signature.tensors if signature else (*model.role.inputs, *model.role.outputs)
    for model in map(deployed_model.from_dict, found.models.values()):
        yield model.name, (*model.role.inputs, *model.role.outputs)
    names = [name for name in placement_search.list_models(target) if name not in found.roles.values()]
    for name, signature in placement_search.read_signatures(target, names).items():
        yield name, signature.tensors


def _expect_batch_limit(target: Target, found: DiscoveryResult, size: int) -> None:
    for model, request in _iterate_batches(target, found, size):
        if send_request(target, request).succeeded:
            raise ContradictedLimitError("max_batch", model.name, f"answers a batch of {size}")


def _expect_no_labels(target: Target, found: DiscoveryResult) -> None:
    for model in filter(None, map(target.model, found.roles)):
        for output in model.role.labels:
            wanted = [RequestedOutput(output, classification=1)]
            answer = send_request(target, model.request(send=model.plain_input_form, outputs=wanted)).answer
            arrays = [item.array for item in answer.outputs if item.datatype == "BYTES" and item.array is not None]
            if any(text.count(b":") > 1 for array in arrays for text in array.flat):
                raise ContradictedLimitError("labels", model.name, "returns a label")


def _iterate_batches(target: Target, found: DiscoveryResult, size: int) -> Iterator[tuple[Model, InferRequest]]:
    """Yield a plain request with a batch of this size to each model that takes batches, or may take them."""
    for name in found.roles:
        model = target.model(name)
        if model is not None and model.role.batching:
            batch = replace(model, max_batch=None).sample(size)
            yield model, model.request(batch, send=model.plain_input_form, want=model.plain_output_form)
    for model in map(deployed_model.from_dict, found.models.values()):
        specs = (*model.role.inputs, *model.role.outputs)
        if not model.trouble and all(len(spec.shape) > 1 and spec.shape[0] < 0 for spec in specs):
            tensors = model.repeat_to_batch(model.tensors, size)
            yield model, replace(model, tensors=tensors).build_plain_request()
