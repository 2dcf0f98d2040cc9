"""Model roles: the signatures and computations of the models that checks need, from `roles.toml`.

A pack may have roles of its own, in a file of the same form; they are known once the pack is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from conformance.spec import data_files
from conformance.wire.datatypes import DATATYPES, has_json_form, lookup

MAX_BATCH = 64


# The roles of loaded packs, by name; `load` does not return them.
_OF_PACKS: dict[str, Role] = {}
# Datatypes without a JSON form: a server may refuse them in JSON.
BINARY_ONLY = frozenset(datatype.name for datatype in DATATYPES.values() if not datatype.has_json_form)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A declared input or output. In a role, `shape` excludes the batch dimension; -1 is a variable dimension."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def has_json_form(self) -> bool:
        """Whether JSON can represent the datatype of the tensor."""
        return has_json_form(self.datatype)


@dataclass(frozen=True, slots=True)
class Role:
    """The signature and the computation of a model that checks need; the fields are those of `roles.toml`.

    `pack`: the pack that defines the role; empty for a role of the suite.
    """

    name: str
    purpose: str
    compute: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batching: bool = False
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    table: tuple[float, ...] = ()
    versions: tuple[str, ...] = ()
    optional: bool = False
    pack: str = ""

    @property
    def is_json_capable(self) -> bool:
        """Whether JSON can represent every input and output."""
        return not any(not spec.has_json_form for spec in (*self.inputs, *self.outputs))

    @property
    def computes_floats(self) -> bool:
        """Whether arithmetic makes the floats of the outputs, whose last bits may then differ; else they are moved."""
        return self.compute not in ("identity", "documented_raw")

    @property
    def is_optional(self) -> bool:
        """Whether a server can be judged completely without a model for this role, unless a MUST needs the role.

        Roles with BF16 are optional, because no document of the protocol names BF16. Roles that have a tensor without
        dimensions are optional, because some servers cannot deploy them. `optional` says it of other roles.

        """
        specs = (*self.inputs, *self.outputs)
        return self.optional or any(
            not lookup(spec.datatype).is_standard or (not spec.shape and not self.batching) for spec in specs
        )


@cache
def load() -> Mapping[str, Role]:
    """Return name -> role for the roles of the suite, in the order of `roles.toml`."""
    return parse_roles(data_files.load_toml("roles/roles.toml"))


def load_with_packs() -> Mapping[str, Role]:
    """Return name -> role for the roles of the suite, and then for those of loaded packs."""
    return {**load(), **_OF_PACKS} if _OF_PACKS else load()


def load_for_packs(packs: Collection[str]) -> Mapping[str, Role]:
    """Return name -> role for the roles of some loaded packs."""
    return {name: role for name, role in _OF_PACKS.items() if role.pack in packs}


def add_roles_of_pack(found: Mapping[str, Role]) -> None:
    """Let `load_with_packs` return the roles of a pack as well."""
    _OF_PACKS.update(found)


@cache
def map_identity_roles() -> Mapping[str, str]:
    """Return datatype -> name of the role that returns its tensors unchanged, for each datatype with such a role."""
    every = ((name, f"identity_{name.lower()}") for name in DATATYPES)
    return {name: role for name, role in every if role in load()}


def parse_roles(entries: Mapping[str, Mapping[str, Any]], pack: str = "") -> dict[str, Role]:
    """Return name -> role for the entries of a `roles.toml`, that of the suite or that of a pack."""
    return {name: _parse_role(name, entry, pack) for name, entry in entries.items()}


def _parse_role(name: str, entry: Mapping[str, Any], pack: str) -> Role:
    return Role(
        name,
        entry["purpose"],
        entry["compute"],
        _parse_specs(entry["inputs"]),
        _parse_specs(entry["outputs"]),
        entry.get("batching", False),
        entry.get("labels", {}),
        tuple(entry.get("table", ())),
        tuple(entry.get("versions", ())),
        entry.get("optional", False),
        pack,
    )


def _parse_specs(entries: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(entry["name"], entry["datatype"], tuple(entry["shape"])) for entry in entries)
