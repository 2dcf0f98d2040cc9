"""The placement of a role on a target: model name, version, and tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.wire.request import Names


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of a role on a target: its model, version ("" for the target's choice), and tensor names."""

    model: str
    version: str = ""
    names: Names = field(default_factory=Names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        inputs, outputs = dict(self.names.inputs), dict(self.names.outputs)
        return {"model": self.model, "version": self.version, "inputs": inputs, "outputs": outputs}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Placement:
        """Build a placement from the plain data of `to_dict`, or from an entry of a file."""
        names = Names(entry.get("inputs", {}), entry.get("outputs", {}))
        return cls(entry["model"], entry.get("version", ""), names)
