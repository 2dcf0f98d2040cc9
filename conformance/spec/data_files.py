"""Finds the data files of the suite.

In an installed wheel the folders `schemas/` and `fixtures/` are inside this package; in a checkout they are beside it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PACKAGE_FOLDER = Path(__file__).parents[1]


def find_folder(name: str) -> Path:
    """Return the path of the folder `schemas` or `fixtures`.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for parent in (PACKAGE_FOLDER, PACKAGE_FOLDER.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"{name}/ is missing: reinstall oip-conformance")


def load_toml(name: str) -> dict[str, Any]:
    """Parse a TOML file of this package; `name` is its path, such as `roles/roles.toml`."""
    with (PACKAGE_FOLDER / name).open("rb") as file:
        return tomllib.load(file)
