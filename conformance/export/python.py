"""`app.py`, a server of one's own by Starlette, with `roles.json` by the names of the models: signatures and labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.export.server_format import (
    COMPUTE,
    TEMPLATES,
    Format,
    copy_files,
    describe_role,
    refuse_datatypes,
    write_json,
)
from conformance.roles.roles import Role

_CODE = tuple(TEMPLATES / "python-server" / name for name in ("app.py", "inference.py", "tensors.py"))


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(
        folder / "roles.json", {name: describe_role(role) | {"labels": role.labels} for name, role in models.items()}
    )
    copy_files(folder, *_CODE, COMPUTE)


FORMAT = Format("python", {"url": "http://127.0.0.1:8000"}, refuse_datatypes(), _write)
