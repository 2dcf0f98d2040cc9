"""The servers for which roles are exported: which roles each server can serve, and which files it needs.

The models' functions and the code of each server are files in `templates/`, copied unchanged; the differences between
roles are data.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final

from conformance.roles.roles import MAX_BATCH, Role, TensorSpec
from conformance.spec import data_files

TEMPLATES = data_files.PACKAGE_FOLDER / "export" / "templates"
# The folder names are not identifiers, so these are not packages; their files import each other by bare name.
COMPUTE = TEMPLATES / "all-servers" / "role_compute.py"


@dataclass(frozen=True, slots=True)
class Format:
    """The export format of one server.

    Attributes:
        name: value of `--format`.
        listens: member of a role map -> the server's default address: `url`, or `grpc` if it has no HTTP.
        refusal: returns in a few words why the server cannot serve a role; None if it can.
        write: writes the roles, keyed by model name, into a folder.
    """

    name: str
    listens: Mapping[str, str]
    refusal: Callable[[Role], str | None]
    write: Callable[[Path, Mapping[str, Role]], None]

    @property
    def templates(self) -> Path:
        """The folder with the templates of this format."""
        return TEMPLATES / f"{self.name}-server"


def refuse_datatypes(*datatypes: str) -> Callable[[Role], str | None]:
    """Return a function that returns why a server without these datatypes cannot serve a role; None if it can."""

    def refusal(role: Role) -> str | None:
        used = {spec.datatype for spec in (*role.inputs, *role.outputs)}
        missing = [datatype for datatype in datatypes if datatype in used]
        return f"it has no datatype {' and no '.join(missing)}" if missing else None

    return refusal


def refuse_versions(role: Role) -> str | None:
    """Return why a server whose models have one version cannot serve a role; None if it can."""
    return "its models have one version" if role.versions else None


def describe_role(role: Role, version: str = "") -> dict[str, Any]:
    """Return the role data for an exported model. Shapes include the batch dimension, as a leading -1."""
    entry = {
        "role": role.name,
        "purpose": role.purpose,
        "compute": role.compute,
        "batching": role.batching,
        "inputs": describe_tensors(role, role.inputs),
        "outputs": describe_tensors(role, role.outputs),
    }
    return entry | ({"table": list(role.table)} if role.table else {}) | ({"version": version} if version else {})


def describe_tensors(role: Role, specs: Iterable[TensorSpec]) -> list[dict[str, Any]]:
    """Return the tensors of a role (inputs or outputs) in the format of model metadata."""
    batch = [-1] if role.batching else []
    return [{"name": spec.name, "datatype": spec.datatype, "shape": [*batch, *spec.shape]} for spec in specs]


def write_json(path: Path, content: object) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def copy_files(folder: Path, *files: Path) -> None:
    """Copy files into a folder."""
    for file in files:
        shutil.copyfile(file, folder / file.name)


def _write_roles(server: str, *names: str, has_labels: bool = False) -> Callable[[Path, Mapping[str, Role]], None]:
    """Return a function that writes `roles.json`, keyed by model name, and the server's code."""
    code = [TEMPLATES / f"{server}-server" / name for name in names]

    def write(folder: Path, models: Mapping[str, Role]) -> None:
        entries = {
            name: describe_role(role) | ({"labels": role.labels} if has_labels else {}) for name, role in models.items()
        }
        write_json(folder / "roles.json", entries)
        copy_files(folder, *code, COMPUTE)

    return write


# --- MLServer: settings.json, the runtime, and `NAME/` with model-settings.json and role.json -------------------------

# With workers, the default, MLServer 1.7 does not start with a recent uvloop. Ports and addresses are omitted, because
# the environment cannot override settings in this file.
_MLSERVER_SETTINGS: Final = {"debug": False, "parallel_workers": 0}


def _write_mlserver(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(folder / "settings.json", _MLSERVER_SETTINGS)
    copy_files(folder, TEMPLATES / "mlserver-server" / "role_models.py", COMPUTE)
    for name, role, version in _list_versions(models):
        model = folder / (f"{name}-{version}" if version else name)
        model.mkdir()
        write_json(model / "role.json", describe_role(role, version))
        settings = {
            "name": name,
            **({"versions": list(role.versions)} if version else {}),  # as the metadata list them
            "implementation": "role_models.RoleModel",
            "parameters": {"uri": "./role.json"} | ({"version": version} if version else {}),
            "inputs": describe_tensors(role, role.inputs),
            "outputs": describe_tensors(role, role.outputs),
        }
        write_json(model / "model-settings.json", settings)


def _list_versions(models: Mapping[str, Role]) -> Iterator[tuple[str, Role, str]]:
    """Yield the name, the role and the version of each model; a role without versions has one, an empty string."""
    for name, role in models.items():
        for version in role.versions or ("",):
            yield name, role, version


# --- Triton's python backend: `models/NAME/` with config.pbtxt, label files and `1/`; models share no files -----------

_TRITON_CODE = (TEMPLATES / "triton-server" / "model.py", TEMPLATES / "triton-server" / "triton_tensors.py", COMPUTE)

_CONFIG = Template("""\
name: "$name"
backend: "python"
max_batch_size: $max_batch
$tensors$versions
instance_group [ { count: 1 kind: KIND_CPU } ]
""")
_TENSOR = Template('$side [ { name: "$name" data_type: $datatype dims: [ $dims ]$labels } ]')
_LABELS = Template(' label_filename: "$file"')


def _refuse_triton(role: Role) -> str | None:
    rank0 = any(not spec.shape for spec in (*role.inputs, *role.outputs))
    return "its config.pbtxt cannot declare a tensor without dimensions" if rank0 and not role.batching else None


def _write_triton(folder: Path, models: Mapping[str, Role]) -> None:
    for name, role, version in _list_versions(models):
        model = folder / "models" / name
        code = model / (version or "1")
        code.mkdir(parents=True)
        (model / "config.pbtxt").write_text(_build_triton_config(name, role), encoding="utf-8")
        for output, labels in role.labels.items():
            (model / _build_label_file_name(output)).write_text(
                "".join(f"{label}\n" for label in labels), encoding="utf-8"
            )
        write_json(code / "role.json", describe_role(role, version))
        copy_files(code, *_TRITON_CODE)


def _build_triton_config(name: str, role: Role) -> str:
    lines = [_format_triton_tensor("input", spec) for spec in role.inputs]
    lines += [_format_triton_tensor("output", spec, has_labels=spec.name in role.labels) for spec in role.outputs]
    return _CONFIG.substitute(
        name=name,
        max_batch=MAX_BATCH if role.batching else 0,
        tensors="\n".join(lines),
        versions="\nversion_policy: { all { } }" if role.versions else "",
    )


def _format_triton_tensor(side: str, spec: TensorSpec, *, has_labels: bool = False) -> str:
    return _TENSOR.substitute(
        side=side,
        name=spec.name,
        datatype="TYPE_STRING" if spec.datatype == "BYTES" else f"TYPE_{spec.datatype}",
        dims=", ".join(map(str, spec.shape)),
        labels=_LABELS.substitute(file=_build_label_file_name(spec.name)) if has_labels else "",
    )


def _build_label_file_name(output: str) -> str:
    return f"labels_{output}.txt"


def _combine(*refusals: Callable[[Role], str | None]) -> Callable[[Role], str | None]:
    return lambda role: next(filter(None, (refusal(role) for refusal in refusals)), None)


FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        Format("triton", {"url": "http://127.0.0.1:8000"}, _refuse_triton, _write_triton),
        Format(
            "kserve", {"url": "http://127.0.0.1:8080"}, _combine(refuse_versions, refuse_datatypes("BF16")),
            _write_roles("kserve", "server.py"),
        ),
        Format("mlserver", {"url": "http://127.0.0.1:8080"}, refuse_datatypes("BF16"), _write_mlserver),
        Format(
            "dynamo", {"grpc": "127.0.0.1:8787"}, _combine(refuse_versions, refuse_datatypes("FP16", "BF16")),
            _write_roles("dynamo", "frontend.py"),
        ),
        Format(
            "python", {"url": "http://127.0.0.1:8000"}, refuse_versions,
            _write_roles("python", "app.py", "inference.py", "tensors.py", has_labels=True),
        ),
    )
}  # fmt: skip
