"""The files of a registry's maintainers: the policy in `registry.toml`, and revocations in `revoked.toml`.

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
# Demands that a registry can make of a manifest; all are on by default.
DEMANDS = ("product_url", "licence", "provenance", "lasting_key")


class RegistryError(UserError):
    """A registry cannot be read or built; the message is one line."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a registry.

    Attributes:
        url: the address of the site, ending in a slash.
        suites: accepted suite version -> last accepted day of a run, or None for no limit.
        vendors: name of a vendor -> ids of its signing keys.
        third_parties: name of a third party -> ids of its signing keys.
        demands: the demands that a manifest has to meet, a subset of `DEMANDS`.
        max_bytes: the maximum size of a folder.
        interoperable: whether products that are interoperable but not conformant are accepted.
        partial: whether products with a partial verdict are accepted.
        self_tests: whether certifications of the suite's own server are accepted.
    """

    title: str
    url: str
    suites: Mapping[str, date | None]
    vendors: Mapping[str, tuple[str, ...]]
    third_parties: Mapping[str, tuple[str, ...]]
    demands: tuple[str, ...] = DEMANDS
    max_bytes: int = MAX_FOLDER_BYTES
    interoperable: bool = False
    partial: bool = False
    self_tests: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A revocation or dispute of a certification.

    Attributes:
        requirement: the disputed requirement; empty if the notice is about something else.
        url: the URL of the discussion; may be empty.
    """

    certification: str
    on: date
    reason: str
    requirement: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Notices:
    """The revocations and disputes of a registry, by certification."""

    revoked: Mapping[str, Notice]
    disputed: Mapping[str, Notice]


def read(root: Path) -> Policy:
    """Read `registry.toml` of a registry. Raises RegistryError: the file is missing, or does not match its schema."""
    if not (root / POLICY).exists():
        raise RegistryError(f"{root / POLICY} does not exist: name the folder of a registry, which has this file")
    document = _read_document(root / POLICY, "registry")
    return Policy(
        title=document["title"],
        url=document["url"].rstrip("/") + "/",
        suites={suite["version"]: _parse_day(suite.get("until")) for suite in document["suites"]},
        vendors={name: tuple(entry["keys"]) for name, entry in document.get("vendors", {}).items()},
        third_parties={name: tuple(entry["keys"]) for name, entry in document.get("third_parties", {}).items()},
        demands=tuple(document.get("demands", DEMANDS)),
        max_bytes=document.get("most_bytes", MAX_FOLDER_BYTES),
        interoperable=document.get("interoperable", False),
        partial=document.get("partial", False),
        self_tests=document.get("self_tests", False),
    )


def read_notices(root: Path) -> Notices:
    """Read `revoked.toml` of a registry; a missing file means no notices.

    Raises RegistryError: the file cannot be read, or does not match its schema.
    """
    path = root / NOTICES
    document = _read_document(path, "revoked") if path.exists() else {}
    revoked, disputed = (
        {
            entry["certification"]: Notice(**entry | {"on": date.fromisoformat(entry["on"])})
            for entry in document.get(kind, ())
        }
        for kind in ("revoked", "disputed")
    )
    return Notices(revoked, disputed)


def _parse_day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _read_document(path: Path, schema: str) -> dict[str, Any]:
    """Read a TOML file that matches a schema; dates become strings, whether quoted or not."""
    try:
        document: dict[str, Any] = json.loads(json.dumps(files.parse_toml(files.read_text(path)), default=str))
    except files.UnreadableError as error:
        raise RegistryError(f"{path}: {error}") from error
    if fault := schemas.find_error(document, schemas.load_schema(schema), checks_formats=True):
        raise RegistryError(f"{path}: {schemas.describe_error(fault)}")
    return document
