"""Targets that are there by their URL alone, and the names that they get."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

from conformance.fleet.fleet_error import FleetError
from conformance.spec import files
from conformance.transport.settings import strip_user

MAX_NAME_CHARS: Final = 100  # characters of a name, which is that of a folder
_NO_PART: Final = re.compile(r"[^A-Za-z0-9._-]+")


def read_urls(path: Path, entries: Mapping[str, Any]) -> list[str]:
    """Return the URLs of the table `discover`, each once.

    Args:
        path: of the fleet file, which the file of URLs is relative to.
        entries: the table.

    Raises:
        FleetError: that file cannot be read, or a line of it holds more than a URL.
    """
    listed = _lines(path, path.absolute().parent / entries["file"]) if "file" in entries else []
    return list(dict.fromkeys([*entries.get("urls", ()), *listed]))


def _lines(path: Path, file: Path) -> list[str]:
    try:
        lines = [line.partition("#")[0].split() for line in files.read_text(file).splitlines()]
    except files.UnreadableError as error:
        raise FleetError(f"{path}: discover.file {file}: {error}") from error
    for number, words in enumerate(lines, start=1):
        if len(words) > 1:
            raise FleetError(f"{path}: discover.file {file}: line {number} holds more than a URL")
    return [words[0] for words in lines if words]


def make_name(url: str, taken: Collection[str]) -> str:
    """Return a name for a URL: its host, port and path, without user and password.

    Args:
        url: as it is written; variables in it are not looked up.
        taken: names in lower case that others have.
    """
    place = strip_user(url).partition("://")[2] or url
    name = _NO_PART.sub("-", place).strip("-._")[: MAX_NAME_CHARS - 8].rstrip("-._") or "target"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each.lower() not in taken)
