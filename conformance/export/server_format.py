"""What the formats have in common: a role as data, and files that are copied as they stand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.roles.roles import MAX_BATCH, Role, TensorSpec
from conformance.spec import data_files

TEMPLATES = data_files.PACKAGE_FOLDER / "export" / "templates"
# The names are no identifiers: these are no packages, and their files import each other by bare name, as exported.
COMPUTE = TEMPLATES / "all-servers" / "role_compute.py"


@dataclass(frozen=True, slots=True)
class Format:
    """How one server is given its models.

    Attributes:
        name: as `--format` takes it.
        listens: member of a role map -> where the server listens, unless told otherwise: `url`, or `grpc` where it has
            no HTTP.
        refusal: returns why the server cannot serve a role, in a few words, or None.
        write: writes the roles, by the names of their models, into a folder.
    """

    name: str
    listens: Mapping[str, str]
    refusal: Callable[[Role], str | None]
    write: Callable[[Path, Mapping[str, Role]], None]

    @property
    def templates(self) -> Path:
        """The folder of its templates."""
        return TEMPLATES / f"{self.name}-server"


def refuse_datatypes(*datatypes: str) -> Callable[[Role], str | None]:
    """Return what says why a server without these datatypes cannot serve a role, or None."""

    def refusal(role: Role) -> str | None:
        used = {spec.datatype for spec in (*role.inputs, *role.outputs)}
        missing = [datatype for datatype in datatypes if datatype in used]
        return f"it has no datatype {' and no '.join(missing)}" if missing else None

    return refusal


def describe_role(role: Role) -> dict[str, Any]:
    """Return what an exported model has to know of its role. Shapes are whole: -1 in front of those of a batch."""
    entry = {
        "role": role.name,
        "purpose": role.purpose,
        "compute": role.compute,
        "batching": role.batching,
        "inputs": describe_tensors(role, role.inputs),
        "outputs": describe_tensors(role, role.outputs),
    }
    return entry | ({"table": list(role.table)} if role.table else {})


def describe_tensors(role: Role, specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
    """Return inputs or outputs as model metadata has them."""
    batch = [-1] if role.batching else []
    return [{"name": spec.name, "datatype": spec.datatype, "shape": [*batch, *spec.shape]} for spec in specs]


def find_max_batch(role: Role) -> int:
    """Return the largest batch, or 0 where the model does not batch."""
    return MAX_BATCH if role.batching else 0


def write_json(path: Path, content: object) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def copy_files(folder: Path, *files: Path) -> None:
    """Copy files into a folder."""
    for file in files:
        shutil.copyfile(file, folder / file.name)
