"""`manifest.json` of a certification folder: who certifies what, and the digest of every other file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from conformance.terms import data, files
from conformance.terms.text import safe
from conformance.terms.user_error import UserError

NAME, SCHEMA = "manifest.json", 1
REPORT, RECORDING, NOTE = "report.json", "run.har", "REPRODUCE.md"
# Made of the report alone, so that they can be made again to see whether they are what it says.
PAGES = ("report.html", "report.md", "badge.svg")


class CertificationError(UserError):
    """A folder cannot be made or read; the message is one line."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Who certifies what.

    Attributes:
        profile: what is certified: a key of `profiles.PROFILES`.
        placements: role -> placement, as plain data, where the target's models have other names than the roles.
        files: name -> SHA-256.
    """

    vendor: str
    product: str
    product_version: str
    contact: str
    profile: str
    placements: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        CertificationError: there is none, or it does not fit the schema.
    """
    path = folder / NAME
    try:
        document = files.json_of(files.read_text(path))
    except files.NotOpenedError as error:
        raise CertificationError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise CertificationError(f"{path} is no manifest: {error}") from error
    schema = json.loads((data.folder("schemas") / "manifest.schema.json").read_text(encoding="utf-8"))
    fault = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if fault is not None:
        raise CertificationError(f"{path} is no manifest: {safe(fault.json_path)}: {safe(fault.message)}")
    del document["schema"]
    return Manifest(**document)
