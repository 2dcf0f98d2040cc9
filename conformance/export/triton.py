"""A model repository for Triton's python backend: `models/NAME/` with config.pbtxt, label files and `1/`.

Each model is whole: it can be moved to another repository by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from conformance.export.server_format import (
    COMPUTE,
    TEMPLATES,
    Format,
    copy_files,
    describe_role,
    find_max_batch,
    write_json,
)
from conformance.roles.roles import Role, TensorSpec

_CODE = (TEMPLATES / "triton-server" / "model.py", TEMPLATES / "triton-server" / "triton_tensors.py", COMPUTE)

_CONFIG = Template("""\
name: "$name"
backend: "python"
max_batch_size: $max_batch
$tensors
instance_group [ { count: 1 kind: KIND_CPU } ]
""")
_TENSOR = Template('$side [ { name: "$name" data_type: $datatype dims: [ $dims ]$labels } ]')
_LABELS = Template(' label_filename: "$file"')


def _refusal(role: Role) -> str | None:
    rank0 = any(not spec.shape for spec in (*role.inputs, *role.outputs))
    return "its config.pbtxt cannot declare a tensor without dimensions" if rank0 and not role.batching else None


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    for name, role in models.items():
        model = folder / "models" / name
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(_config(name, role), encoding="utf-8")
        for output, labels in role.labels.items():
            (model / _label_file(output)).write_text("".join(f"{label}\n" for label in labels), encoding="utf-8")
        write_json(model / "1" / "role.json", describe_role(role))
        copy_files(model / "1", *_CODE)


def _config(name: str, role: Role) -> str:
    lines = [_tensor("input", spec) for spec in role.inputs]
    lines += [_tensor("output", spec, has_labels=spec.name in role.labels) for spec in role.outputs]
    return _CONFIG.substitute(name=name, max_batch=find_max_batch(role), tensors="\n".join(lines))


def _tensor(side: str, spec: TensorSpec, *, has_labels: bool = False) -> str:
    return _TENSOR.substitute(
        side=side,
        name=spec.name,
        datatype="TYPE_STRING" if spec.datatype == "BYTES" else f"TYPE_{spec.datatype}",
        dims=", ".join(map(str, spec.shape)),
        labels=_LABELS.substitute(file=_label_file(spec.name)) if has_labels else "",
    )


def _label_file(output: str) -> str:
    return f"labels_{output}.txt"


FORMAT = Format("triton", {"url": "http://127.0.0.1:8000"}, _refusal, _write)
