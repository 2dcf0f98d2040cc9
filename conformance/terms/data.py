"""Where the data files are: the one place that knows.

In an installed wheel `schemas/` and `fixtures/` lie inside this package; in a checkout they stand at the top level.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]


def folder(name: str) -> Path:
    """Return the folder `schemas` or `fixtures`.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for parent in (PACKAGE, PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"{name}/ is missing: reinstall oip-conformance")


def toml(name: str) -> dict[str, Any]:
    """Return the parsed `name`, a TOML file of this package (`terms/ledger.toml`, `roles/roles.toml`)."""
    with (PACKAGE / name).open("rb") as file:
        return tomllib.load(file)
