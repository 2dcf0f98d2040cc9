"""Model roles: the model signatures that checks use, from `roles.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from conformance.spec import data_files
from conformance.wire.datatypes import DATATYPES, lookup

MAX_BATCH = 64


# Datatypes without a JSON form: a server may refuse them in JSON.
BINARY_ONLY = frozenset(datatype.name for datatype in DATATYPES.values() if not datatype.has_json_form)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output: `shape` excludes the batch dimension, -1 is a variable dimension."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def has_json_form(self) -> bool:
        """Whether its datatype has a JSON form."""
        return lookup(self.datatype).has_json_form


@dataclass(frozen=True, slots=True)
class Role:
    """A model's signature and computation; the fields are those of `roles.toml`."""

    name: str
    purpose: str
    compute: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batching: bool = False
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    table: tuple[float, ...] = ()

    @property
    def is_json_capable(self) -> bool:
        """Whether every tensor has a JSON form."""
        return not any(not spec.has_json_form for spec in (*self.inputs, *self.outputs))

    @property
    def is_optional(self) -> bool:
        """Whether a server without this role can still be judged completely, unless only this role covers a MUST.

        No document of the protocol names BF16, and not every server can deploy a model without dimensions.
        """
        specs = (*self.inputs, *self.outputs)
        return any(not lookup(spec.datatype).is_standard or (not spec.shape and not self.batching) for spec in specs)


@cache
def load() -> Mapping[str, Role]:
    """Return every role by name, in the order of `roles.toml`."""
    return {name: _parse_role(name, entry) for name, entry in data_files.load_toml("roles/roles.toml").items()}


@cache
def map_identities() -> Mapping[str, str]:
    """Return, for each datatype, the role that returns tensors of this datatype unchanged, if there is one."""
    every = ((name, f"identity_{name.lower()}") for name in DATATYPES)
    return {name: role for name, role in every if role in load()}


def _parse_role(name: str, entry: Mapping[str, Any]) -> Role:
    return Role(
        name,
        entry["purpose"],
        entry["compute"],
        _parse_specs(entry["inputs"]),
        _parse_specs(entry["outputs"]),
        entry.get("batching", False),
        entry.get("labels", {}),
        tuple(entry.get("table", ())),
    )


def _parse_specs(entries: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(entry["name"], entry["datatype"], tuple(entry["shape"])) for entry in entries)
