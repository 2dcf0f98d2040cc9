"""`app.py`, a server of one's own by Starlette, with `roles.json` by the names of the models: signatures and labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.export.server_format import COMPUTE, TEMPLATES, Format, copy, lacks, plain, write_json
from conformance.roles.roles import Role

_CODE = tuple(TEMPLATES / "python-server" / name for name in ("app.py", "inference.py", "tensors.py"))


def _write(folder: Path, models: Mapping[str, Role]) -> None:
    write_json(folder / "roles.json", {name: plain(role) | {"labels": role.labels} for name, role in models.items()})
    copy(folder, *_CODE, COMPUTE)


FORMAT = Format("python", {"url": "http://127.0.0.1:8000"}, lacks(), _write)
