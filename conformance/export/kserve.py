"""`server.py`, which starts KServe's ModelServer with every model, and `roles.json` by the names of the models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.export.server_format import COMPUTE, TEMPLATES, Format, copy, lacks, plain, write_json
from conformance.roles.roles import Role


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(folder / "roles.json", {name: plain(role) for name, role in models.items()})
    copy(folder, TEMPLATES / "kserve-server" / "server.py", COMPUTE)


FORMAT = Format("kserve", {"url": "http://127.0.0.1:8080"}, lacks("BF16"), _write)
