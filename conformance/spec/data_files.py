"""Finds the data files of the suite.

In an installed wheel the folders `schemas/` and `fixtures/` are inside this package; in a checkout they are beside it.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

PACKAGE_FOLDER = Path(__file__).parents[1]


def find_folder(name: str) -> Path:
    """Return the path of the folder `schemas` or `fixtures`.

    Raises FileNotFoundError: the installation is incomplete.
    """
    for parent in (PACKAGE_FOLDER, PACKAGE_FOLDER.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"{name}/ is missing: reinstall oip-conformance")


def load_toml(name: str) -> dict[str, Any]:
    """Parse a TOML file of this package; `name` is its path, such as `roles/roles.toml`."""
    with (PACKAGE_FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def compute_digest(folders: Iterable[Path], excluded: Mapping[Path, Collection[str]] = MappingProxyType({})) -> str:
    """Return the SHA-256 of the names and contents of all files in some folders, except caches and hidden files.

    Args:
        folders: the folders; their order counts, and where they are does not.
        excluded: folder -> names of entries in it that are left out.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for parts in sorted(_walk_files(str(folder), excluded.get(folder, ()))):
            with open(os.path.join(folder, *parts), "rb") as file:
                content = file.read()
            digest.update(f"{folder.name}/{'/'.join(parts)}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def _walk_files(folder: str, excluded: Collection[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the relative path of each file below a folder, except caches, hidden files and `excluded` names.

    There are about 1,300 files; pathlib would take as long as a short run of the suite.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__" or entry.name.startswith(".") or entry.name in excluded:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from ((entry.name, *below) for below in _walk_files(entry.path))
            elif entry.is_file():
                yield (entry.name,)
