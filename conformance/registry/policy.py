"""What the keepers of a registry have written: `registry.toml`, what they demand, and `revoked.toml`, what fell.

`schemas/registry.schema.json` and `schemas/revoked.schema.json` explain the members.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from conformance.certification.sealing import MAX_FOLDER_BYTES
from conformance.spec import files, schemas
from conformance.spec.user_error import UserError

POLICY, NOTICES = "registry.toml", "revoked.toml"
# What a registry can demand of a manifest; each by default.
DEMANDS = ("product_url", "licence", "provenance", "lasting_key")


class RegistryError(UserError):
    """A registry cannot be read or built; the message is one line."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a registry demands.

    Attributes:
        title: of the site; `url` where it is, ending in a slash.
        suites: version of a suite whose certifications are taken -> the last day on which new ones are; None: no end.
        vendors: name -> ids of the keys that they sign with; `third_parties` likewise.
        demands: of `DEMANDS`.
        most_bytes: of a folder.
        interoperable: whether servers are taken that are interoperable, and not conformant; `partial` likewise.
        self_tests: whether certifications of the suite's own server are taken.
    """

    title: str
    url: str
    suites: Mapping[str, date | None]
    vendors: Mapping[str, tuple[str, ...]]
    third_parties: Mapping[str, tuple[str, ...]]
    demands: tuple[str, ...] = DEMANDS
    most_bytes: int = MAX_FOLDER_BYTES
    interoperable: bool = False
    partial: bool = False
    self_tests: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """What the keepers say of a certification.

    Attributes:
        certification: the SHA-256 of its manifest.
        on: the day; `reason` why.
        requirement: the one that is in dispute; empty where it is another matter.
        url: where it is discussed; empty where nowhere.
    """

    certification: str
    on: date
    reason: str
    requirement: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Notices:
    """Revocations and disputes, by certification."""

    revoked: Mapping[str, Notice]
    disputed: Mapping[str, Notice]


def read(root: Path) -> Policy:
    """Read `registry.toml` of a registry.

    Raises:
        RegistryError: it is not there, or not of its form.
    """
    document = _document(root / POLICY, "registry")
    return Policy(
        title=document["title"],
        url=document["url"].rstrip("/") + "/",
        suites={suite["version"]: _day(suite.get("until")) for suite in document["suites"]},
        vendors={name: tuple(entry["keys"]) for name, entry in document.get("vendors", {}).items()},
        third_parties={name: tuple(entry["keys"]) for name, entry in document.get("third_parties", {}).items()},
        demands=tuple(document.get("demands", DEMANDS)),
        most_bytes=document.get("most_bytes", MAX_FOLDER_BYTES),
        interoperable=document.get("interoperable", False),
        partial=document.get("partial", False),
        self_tests=document.get("self_tests", False),
    )


def read_notices(root: Path) -> Notices:
    """Read `revoked.toml` of a registry; without one nothing is revoked.

    Raises:
        RegistryError: it cannot be read, or is not of its form.
    """
    path = root / NOTICES
    document = _document(path, "revoked") if path.exists() else {}
    revoked, disputed = (
        {
            entry["certification"]: Notice(**entry | {"on": date.fromisoformat(entry["on"])})
            for entry in document.get(kind, ())
        }
        for kind in ("revoked", "disputed")
    )
    return Notices(revoked, disputed)


def _day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _document(path: Path, schema: str) -> dict[str, Any]:
    """Return what a file says; days are text, whether they have quotes or not."""
    try:
        document: dict[str, Any] = json.loads(json.dumps(files.parse_toml(files.read_text(path)), default=str))
    except files.UnreadableError as error:
        raise RegistryError(f"{path}: {error}") from error
    if fault := schemas.find_fault(document, schemas.load_schema(schema), checks_formats=True):
        raise RegistryError(f"{path}: {schemas.describe_fault(fault)}")
    return document
