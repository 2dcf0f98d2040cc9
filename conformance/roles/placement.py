"""Where a target has a role: under which model, in which version, with which names of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.wire.request import Names


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a target has a role: the model, its version ("" for the target's choice), and its tensors' names there."""

    model: str
    version: str = ""
    names: Names = field(default_factory=Names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        inputs, outputs = dict(self.names.inputs), dict(self.names.outputs)
        return {"model": self.model, "version": self.version, "inputs": inputs, "outputs": outputs}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Placement:
        """Return what `to_dict` made plain data of, or what a file has of it."""
        names = Names(entry.get("inputs", {}), entry.get("outputs", {}))
        return cls(entry["model"], entry.get("version", ""), names)
