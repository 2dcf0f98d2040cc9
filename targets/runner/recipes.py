"""The recipes by name: a folder's recipe.toml, with what one of its versions says otherwise.

recipe.toml holds what all versions of a server share, and a table for each of them, the newest first. The newest has
the folder's name, `triton`; another has its number behind that, `triton-2.39`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from known_failures import KnownFailure, read_known

TARGETS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Recipe:
    """What recipe.toml says of one version, and the files beside it.

    Attributes:
        folder: of the server.
        version: its key in `versions` of recipe.toml.
        title: the server with its whole version.
        format: of `oip-conformance models export`; empty if the server gets other models than the roles.
        prepare: the script in the folder that writes these models.
        models: the names of these models.
        extensions: to judge, if not those that the server offers.
        listens: where it is judged: `http`, on `http_port`, `grpc`, on `grpc_port`, or both.
        command: starts the server in the foreground. In it, and in `environment`, `copies` and `library`, a name in
            braces stands for a value of `Place`.
        environment: of the server, over a clean one.
        packages: the file that pins them.
        without: datatypes that this version lacks, beside those that its format never has.
        copies: files to copy after the installation, target by source.
        library: a shared library that has to be there, or empty; `library_hint` says where it comes from.
        ends: whether the run ends the server.
        outcome: the verdict and exit status of the run, and patterns of its `why`.
    """

    name: str
    folder: str
    version: str
    title: str
    listens: Sequence[str]
    command: Sequence[str]
    environment: Mapping[str, str]
    outcome: Mapping[str, Any]
    format: str = ""
    prepare: str = ""
    models: Sequence[str] = ()
    extensions: Sequence[str] = ()
    ends: bool = False
    packages: str = "requirements.txt"
    without: Sequence[str] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    library: str = ""
    library_hint: str = ""

    @property
    def requirements(self) -> Path:
        """The pinned packages."""
        return TARGETS / self.folder / self.packages

    @property
    def known(self) -> list[KnownFailure]:
        """What is known to be wrong with this version."""
        return read_known(TARGETS / self.folder / "expected.toml", self.version)


def _read() -> Iterator[Recipe]:
    for path in TARGETS.glob("*/recipe.toml"):
        shared, folder = tomllib.loads(path.read_text(encoding="utf-8")), path.parent.name
        for place, (version, own) in enumerate(shared.pop("versions").items()):
            name = f"{folder}-{version}" if place else folder
            yield Recipe(name, folder, version, **{**shared, **own})


RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in sorted(_read(), key=lambda recipe: recipe.name)}
