"""Discovery of a target: the extensions that the target lists, those that work in a probe, and its models for roles.

Discovery decides which checks run. The checks of an extension that is neither listed nor working are not applicable,
nor are the checks of a role without a model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from conformance.discovery import offered_extensions, placement_search
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.roles.model import Model
from conformance.roles.placement import Placement, add_versions
from conformance.roles.roles import Role, load_for_packs
from conformance.roles.roles import load as load_roles
from conformance.spec.text import escape_text
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target

MAX_VERSIONS = 3  # of a model that requests name until one is answered


def discover_roles(
    target: Target,
    wanted: Sequence[str] = (),
    placements: Mapping[str, Placement] | None = None,
    progress: Progress = ignore_progress,
    packs: Collection[str] = (),
) -> DiscoveryResult:
    """Discover the extensions of a target and the roles that its models fill; store the roles in `target.roles`.

    `target`: a target before discovery.
    `wanted`: the extensions to judge, whether offered or not; empty: those that the target offers.
    `placements`: role -> placement of its model; None: look for models with the names of roles.

    Raises:
        TargetLost: the target does not answer.
        SettingsError: `placements` names a model that the target does not serve.
    """
    result = DiscoveryResult()
    every = load_roles()
    own = _select_placements(placements, every)
    names = [placement.model for placement in own.values()] if own else every
    offered_extensions.read_server_metadata(target, result, names)
    transports = target.live_transports
    _fill_roles(target, result, every, own, progress)
    target.broken = [one for one in target.broken if not one.is_deliberate]  # how it reports a missing model
    offered_extensions.record_extensions(target, result, wanted, transports)
    if of_packs := load_for_packs(packs):  # last: they decide neither what is offered, nor the verdict of discovery
        broken = list(target.broken)
        _fill_roles(target, result, of_packs, _select_placements(placements, of_packs), progress)
        target.broken = broken
    return result


def _select_placements(
    placements: Mapping[str, Placement] | None, roles: Collection[str]
) -> Mapping[str, Placement] | None:
    """Return the placements of some roles; None if there is no map of roles."""
    return placements and {role: placement for role, placement in placements.items() if role in roles}


def _fill_roles(
    target: Target,
    result: DiscoveryResult,
    roles: Mapping[str, Role],
    placements: Mapping[str, Placement] | None,
    progress: Progress,
) -> None:
    """Find the models of these roles, and the versions that requests to them must name."""
    if placements is None:
        found = _find_roles(target, result, roles, progress)
    else:
        found = _place_roles(target, placements, progress)
    result.roles = target.roles = result.roles | found
    versions = _find_needed_versions(target, found)
    result.versions |= versions
    target.placements = add_versions(target.placements, result.roles, versions)


def _find_roles(
    target: Target, result: DiscoveryResult, every: Mapping[str, Role], progress: Progress
) -> dict[str, str]:
    """Return role -> model name for each role for which the target has a model of the same name.

    A model that only has the name of a role does not fill it; it is stored in `other_models`.
    """
    found: dict[str, str] = {}
    for number, (name, role) in enumerate(every.items(), 1):
        progress(f"looking for models: {number}/{len(every)}")
        model = Model(role, name)
        metadata = offered_extensions.request_model_metadata(target, model)
        signature = placement_search.parse_signature(metadata)
        if signature is not None and placement_search.is_other_model(target, model, signature):
            result.other_models[name] = signature.describe_inputs()
        elif placement_search.is_served(target, model, metadata):
            found[name] = name
    return found


def _find_needed_versions(target: Target, roles: Iterable[str]) -> dict[str, str]:
    """Return role -> a listed version of its model, if the server refuses plain requests without a version.

    "If a version is not provided the server may choose a version based on its own policies or return an error" (Open
    Inference Protocol, REST). A server that answers a model without a version is not asked further.
    """
    transports, found = target.live_transports, dict[str, str]()
    for role in roles:
        model = target.model(role)
        if model is None or model.version:
            continue
        if not any(offered_extensions.send_over(target, model, one).is_refusal for one in transports):
            if not found:
                break
            continue
        for version in offered_extensions.read_versions(offered_extensions.request_model_metadata(target, model))[
            :MAX_VERSIONS
        ]:
            named = replace(model, version=version)
            if all(offered_extensions.send_over(target, named, one).succeeded for one in transports):
                found[role] = version
                break
    return found


def _place_roles(target: Target, placements: Mapping[str, Placement], progress: Progress) -> dict[str, str]:
    """Return role -> model name for each role of `placements`.

    Raises SettingsError: the target does not serve one of the models.
    """
    found = {role: placement.model for role, placement in placements.items()}
    target.placements, target.roles = {**target.placements, **placements}, target.roles | found
    for number, (role, name) in enumerate(found.items(), 1):
        progress(f"looking for models: {number}/{len(found)}")
        if reply := placement_search.find_missing_model_reply(target, role):
            raise SettingsError(
                f"role {role}: {target.settings.url} serves no model {name}: {escape_text(reply.outcome())}"
            )
    return found
