"""`server.py`, which starts KServe's ModelServer with every model, and `roles.json` by the names of the models."""

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


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(folder / "roles.json", {name: describe_role(role) for name, role in models.items()})
    copy_files(folder, TEMPLATES / "kserve-server" / "server.py", COMPUTE)


FORMAT = Format("kserve", {"url": "http://127.0.0.1:8080"}, refuse_datatypes("BF16"), _write)
