"""A folder for `mlserver start`: settings.json, the runtime, and `NAME/` with model-settings.json and role.json.

Ports and addresses are left out of settings.json, because what stands there cannot be changed by the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.export.server_format import (
    COMPUTE,
    TEMPLATES,
    Format,
    copy_files,
    describe_role,
    describe_tensors,
    refuse_datatypes,
    write_json,
)
from conformance.roles.roles import Role

# With workers, which are its default, MLServer 1.7 does not start beside a recent uvloop.
_SETTINGS = {"debug": False, "parallel_workers": 0}


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(folder / "settings.json", _SETTINGS)
    copy_files(folder, TEMPLATES / "mlserver-server" / "role_models.py", COMPUTE)
    for name, role in models.items():
        (folder / name).mkdir()
        write_json(folder / name / "role.json", describe_role(role))
        settings = {
            "name": name,
            "implementation": "role_models.RoleModel",
            "parameters": {"uri": "./role.json"},
            "inputs": describe_tensors(role, role.inputs),
            "outputs": describe_tensors(role, role.outputs),
        }
        write_json(folder / name / "model-settings.json", settings)


FORMAT = Format("mlserver", {"url": "http://127.0.0.1:8080"}, refuse_datatypes("BF16"), _write)
