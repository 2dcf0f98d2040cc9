"""`frontend.py`, which starts Dynamo's KServe gRPC frontend with every model, and `roles.json` by the models' names."""

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
    copy_files(folder, TEMPLATES / "dynamo-server" / "frontend.py", COMPUTE)


FORMAT = Format("dynamo", {"grpc": "127.0.0.1:8787"}, refuse_datatypes("FP16", "BF16"), _write)
