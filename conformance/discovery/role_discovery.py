"""Discovery of a target: the extensions that it lists, those that work in a probe, and the roles that it fills.

Discovery only selects what is judged. An extension that is neither listed nor working is not applicable, nor is a check
whose role is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.discovery import offered_extensions
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.roles.placement import Placement
from conformance.roles.roles import load as load_roles
from conformance.spec.extensions import EXTENSIONS, GRPC, HTTP, OVER_GRPC, OVER_HTTP, PROTOCOL
from conformance.spec.text import escape_text
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target


def discover_roles(
    target: Target,
    wanted: Sequence[str] = (),
    placements: Mapping[str, Placement] | None = None,
    progress: Progress = ignore_progress,
) -> DiscoveryResult:
    """Discover extensions and roles of a target, and store the roles in `target.roles`.

    Args:
        target: a target before discovery.
        wanted: the extensions to judge, whether offered or not; empty: those that the target offers.
        placements: role -> model; None: look for models with the names of roles.
        progress: receives progress messages.

    Raises:
        TargetLost: the target does not answer.
        SettingsError: a role is placed on a model that the target does not serve.
    """
    survey, transports = DiscoveryResult(), target.settings.transports
    if HTTP in transports:
        offered_extensions.read_http_metadata(target, survey)
    if GRPC in transports:
        offered_extensions.read_grpc_metadata(target, survey)
    survey.roles = _find_roles(target, progress) if placements is None else _place_roles(target, placements, progress)
    target.broken = [one for one in target.broken if not one.is_deliberate]  # how it reports a missing model
    for extension in OVER_HTTP if HTTP in transports else ():
        probes = offered_extensions.PROBES[extension](target)
        offered_extensions.record_extension(survey, extension, wanted, probes)
    offered_extensions.record_extension(survey, PROTOCOL, wanted or EXTENSIONS, ())
    for extension in OVER_GRPC if GRPC in transports else ():
        probes = offered_extensions.probe_scored_roles_over_grpc(target)
        offered_extensions.record_extension(survey, extension, wanted, probes)
    return survey


def _find_roles(target: Target, progress: Progress) -> dict[str, str]:
    """Find the roles whose names are names of models."""
    every = load_roles()
    target.roles, found = {role: role for role in every}, {}
    for number, role in enumerate(every, 1):
        progress(f"asking for models: {number}/{len(every)}")
        if offered_extensions.find_absence(target, role) is None:
            found[role] = role
    target.roles = found
    return target.roles


def _place_roles(target: Target, placements: Mapping[str, Placement], progress: Progress) -> dict[str, str]:
    """Set the roles from `placements`; expect that the target serves all of their models."""
    target.placements = placements
    target.roles = {role: placement.model for role, placement in placements.items()}
    for number, (role, name) in enumerate(target.roles.items(), 1):
        progress(f"asking for models: {number}/{len(target.roles)}")
        if reply := offered_extensions.find_absence(target, role):
            raise SettingsError(
                f"role {role}: {target.settings.url} serves no model {name}: {escape_text(reply.outcome())}"
            )
    return target.roles
