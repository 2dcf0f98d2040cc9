"""The placement of a role on a target: which model fills the role, with which version and tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.wire.request import Names


@dataclass(frozen=True, slots=True)
class Placement:
    """The model that fills a role on a target.

    Attributes:
        version: the version of the model; empty to let the target choose.
        names: the model's tensor names, where they differ from the role's.
    """

    model: str
    version: str = ""
    names: Names = field(default_factory=Names)

    def to_dict(self) -> dict[str, Any]:
        """Return the placement as JSON-compatible data."""
        inputs, outputs = dict(self.names.inputs), dict(self.names.outputs)
        return {"model": self.model, "version": self.version, "inputs": inputs, "outputs": outputs}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Placement:
        """Build a placement from the result of `to_dict`, or from an entry of a `--target-config` file."""
        names = Names(entry.get("inputs", {}), entry.get("outputs", {}))
        return cls(entry["model"], entry.get("version", ""), names)


def add_versions(
    placements: Mapping[str, Placement], roles: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, Placement]:
    """Return the placements with these versions: role -> version; `roles` has the model of each role."""
    named = {role: replace(placements.get(role, Placement(roles[role])), version=one) for role, one in versions.items()}
    return {**placements, **named}
