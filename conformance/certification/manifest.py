"""`manifest.json` of a certification folder: the product, its certifier, and the digest of every other file.

`schemas/manifest.schema.json` explains each member. The label, `product` and `product_version`, is compared with the
name and version that the server or client reports in the recording. Case is ignored, and in names also characters other
than letters and digits. If the two still differ, `alias_of` must state the reported name and version, and the reason.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from conformance.roles.declared_limits import Limits, describe_limits
from conformance.spec import files, schemas
from conformance.spec.ledger import Party
from conformance.spec.outcome import CONFORMANT
from conformance.spec.report import Report
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError

NAME, SCHEMA = "manifest.json", 3
REPORT, RECORDING, NOTE = "report.json.xz", "run.har.xz", "REPRODUCE.md"
# Generated from the report alone, so that verification can generate them again and compare.
PAGES = ("report.html", "report.md", "badge.svg")
MAX_VALIDITY = timedelta(days=365)  # after the run
BUNDLED = "oip-reference-server"
_NO_PRODUCT = f"the suite's own server, {BUNDLED}, is not a product: use --self-test to try this command"
_NO_SELF_TEST = "--self-test needs the suite's own server, and this is another server"
_NO_WORD = re.compile(r"[\W_]+")


class CertificationError(UserError):
    """A folder cannot be made or read; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a certification: who certifies which product. The schema explains the members.

    Attributes:
        profile: a key of `profiles.PROFILES`.
        standing: `conformant`, `partial` or `interoperable`.
        coverage: the number of MUSTs `met`, and the number `of` applicable MUSTs; None unless the standing is partial.
        suite: `version` and `digest` of the suite, and `ledger`, the version of its requirements.
        key: the signing key: its `id`, its `public_key`, and whether it is `lasting`, not made for this folder alone.
        party: what was judged, a server or a client.
        alias_of: the reported `name` and `version` if they differ from the label, and the `reason`.
        third_party: `name`, `contact` and `key` of whoever made the run; None if the vendor made the run.
        placements: role -> placement, as plain data, if the target's models are not named like the roles.
        limits: the limits that the target file declares (`roles.declared_limits`); None if there are none.
        packs: name, version and digest of each pack that was judged beside the profile; None if none was.
        models: judged deployed model -> its table, as `config.given_inputs` reads it; None if none was judged.
        files: name -> SHA-256.
    """

    vendor: str
    product: str
    product_version: str
    contact: str
    product_url: str | None = None
    licence: str | None = None
    container: str | None = None
    version_command: str | None = None
    alias_of: Mapping[str, str] | None = None
    self_test: bool = False
    party: str = Party.SERVER
    profile: str
    standing: str = CONFORMANT
    coverage: Mapping[str, int] | None = None
    suite: Mapping[str, str]
    started: str
    finished: str
    expires: str
    key: Mapping[str, Any]
    third_party: Mapping[str, Any] | None = None
    placements: Mapping[str, Any] | None = None
    limits: Limits | None = None
    packs: Sequence[Mapping[str, str]] | None = None
    models: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name and version of the product, as certified."""
        return f"{self.product} {self.product_version}"

    @property
    def certified_as(self) -> str:
        """The standing as text, with the declared limits; "partial" is followed by the coverage."""
        coverage = f"({describe_coverage(self.coverage)})" if self.coverage else ""
        return " ".join(filter(None, (self.standing, describe_limits(self.limits), coverage)))

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        members = asdict(self)
        if self.party == Party.SERVER:
            del members["party"]
        for optional in ("limits", "packs"):
            if not members[optional]:
                del members[optional]
        return json.dumps({"schema": SCHEMA, **members}, indent=1) + "\n"


def describe_coverage(coverage: Mapping[str, int]) -> str:
    """Return the coverage of a partial certification as text, such as "97 of 121 MUSTs judged and met"."""
    return f"{coverage['met']} of {coverage['of']} MUSTs judged and met"


def compute_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    Raises CertificationError: the manifest is missing or does not match the schema.
    """
    path = folder / NAME
    document = _read_document(path)
    if isinstance(document, dict) and document.get("schema") not in (SCHEMA, None):
        schema = escape_text(json.dumps(document["schema"]), 20)
        raise CertificationError(
            f"{path} has schema {schema}, and this suite reads {SCHEMA}: verify it with the suite that made it"
            " (--with-suite)"
        )
    if fault := schemas.find_error(document, schemas.load_schema("manifest"), checks_formats=True):
        raise CertificationError(f"{path} is no manifest: {schemas.describe_error(fault)}")
    del document["schema"]
    return Manifest(**document)


def find_invalid_member(made: Manifest) -> tuple[str, str] | None:
    """Return the first invalid member of a manifest, and what the schema says about it; None if all are valid.

    `made`: a manifest, without the digests of files, which are not checked.
    """
    whole = replace(made, files=dict.fromkeys((REPORT, RECORDING, *PAGES, NOTE), "0" * 64))
    schema = schemas.load_schema("manifest")
    fault = schemas.find_error(json.loads(whole.to_json()), schema, checks_formats=True)
    if fault is None:
        return None
    member = str(fault.absolute_path[0])
    return member, schema["properties"][member]["description"]


def read_suite_version(folder: Path) -> str | None:
    """Return the version of the suite that made a folder, for any manifest schema; None if the manifest has none.

    Raises CertificationError: the manifest is missing or unreadable.
    """
    document = _read_document(folder / NAME)
    suite = document.get("suite") if isinstance(document, dict) else None
    found = suite.get("version") if isinstance(suite, dict) else None
    form = schemas.load_schema("manifest")["$defs"]["version"]
    return found if schemas.find_error(found, form) is None else None


def _read_document(path: Path) -> Any:
    try:
        return files.parse_json(files.read_text(path))
    except files.NotOpenedError as error:
        raise CertificationError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise CertificationError(f"{path} is no manifest: {error}") from error


# --- the label --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportedProduct:
    """Name and version from a server's metadata, or from a client's adapter; empty if not reported."""

    name: str
    version: str

    @property
    def text(self) -> str:
        """The name and the version as text."""
        return f"{self.name or '(no name)'} {self.version or '(no version)'}"

    @property
    def is_bundled(self) -> bool:
        """Whether the product is the suite's bundled server."""
        return _normalise_name(self.name) == _normalise_name(BUNDLED)


def read_reported_product(report: Report) -> ReportedProduct:
    """Return the name and version that the server or client reported."""
    target = report["target"]
    return ReportedProduct(target["name"] or "", target["version"] or "")


def find_label_faults(made: Manifest, found: ReportedProduct) -> Iterator[str]:
    """Yield each contradiction between the label of a manifest and the name and version that the product reports."""
    if made.self_test != found.is_bundled:
        yield _NO_SELF_TEST if made.self_test else _NO_PRODUCT
    elif not made.self_test:
        yield from _find_product_faults(made, found)


def _find_product_faults(made: Manifest, found: ReportedProduct) -> Iterator[str]:
    alias = made.alias_of
    if alias and (alias["name"], alias["version"]) != (found.name, found.version):
        given = ReportedProduct(alias["name"], alias["version"])
        yield (
            f"the certification is an alias of {escape_text(given.text)},"
            f" and the {made.party} reports {escape_text(found.text)}"
        )
    elif not alias and not _matches_label(made, found):
        yield (
            f"the label is {escape_text(made.label)}, and the {made.party} reports {escape_text(found.text)}:"
            " if both are right, give --alias-of with the reported NAME VERSION, and --alias-reason"
        )


def _matches_label(made: Manifest, found: ReportedProduct) -> bool:
    """Return whether a label equals the name and version that the product reports, ignoring spelling differences."""
    is_version = _normalise_version(made.product_version) == _normalise_version(found.version)
    return _normalise_name(made.product) == _normalise_name(found.name) and is_version


def _normalise_name(name: str) -> str:
    return _NO_WORD.sub("", name.casefold())


def _normalise_version(version: str) -> str:
    return version.strip().casefold().removeprefix("v")


# --- validity ---------------------------------------------------------------------------------------------------------


def find_last_valid_day(finished: str) -> date:
    """Return the latest permitted expiry day for a run that ended at `finished`."""
    return datetime.fromisoformat(finished).date() + MAX_VALIDITY


def get_today() -> date:
    """Return the current day, in UTC."""
    return datetime.now(UTC).date()


def is_expired(expires: str, day: date | None = None) -> bool:
    """Say whether a certification that expires on `expires` is expired on `day`; None means today."""
    return (day or get_today()) > date.fromisoformat(expires)
