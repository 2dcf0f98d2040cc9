"""`manifest.json` of a certification folder: who certifies what, and the digest of every other file.

`schemas/manifest.schema.json` says what each member means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from conformance.spec import data_files, files
from conformance.spec.outcome import CONFORMANT
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError

NAME, SCHEMA = "manifest.json", 3
REPORT, RECORDING, NOTE = "report.json.xz", "run.har.xz", "REPRODUCE.md"
# Made of the report alone, so that they can be made again to see whether they are what it says.
PAGES = ("report.html", "report.md", "badge.svg")


class CertificationError(UserError):
    """A folder cannot be made or read; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Who certifies what; members are those of the schema.

    Attributes:
        profile: what is certified: a key of `profiles.PROFILES`.
        standing: as what: `conformant`, `partial` or `interoperable`.
        coverage: of a partial one: how many MUSTs that apply were `met`, `of` how many.
        suite: `version` and `digest` of the suite, and `ledger`, the version of its requirements.
        key: of the signature: `id`, `public_key`, and whether it is `lasting`.
        alias_of: `name` and `version` that the server reports where the label has others, and the `reason`.
        third_party: who made the run where it was not the vendor: `name`, `contact` and `key`.
        placements: role -> placement, as plain data, where the target's models have other names than the roles.
        models: deployed model that was judged -> its table, as `config.given_inputs` reads it; None where none was.
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
    models: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Product and version."""
        return f"{self.product} {self.product_version}"

    @property
    def certified_as(self) -> str:
        """The standing, with the coverage of one that is partial."""
        return f"{self.standing} ({describe_coverage(self.coverage)})" if self.coverage else self.standing

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"


def describe_coverage(coverage: Mapping[str, int]) -> str:
    """Return a coverage in words."""
    return f"{coverage['met']} of {coverage['of']} MUSTs judged and met"


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
    document = _document(path)
    if isinstance(document, dict) and document.get("schema") not in (SCHEMA, None):
        schema = escape_text(json.dumps(document["schema"]), 20)
        raise CertificationError(
            f"{path} has schema {schema}, and this suite reads {SCHEMA}: verify it with the suite that made it"
            " (--with-suite)"
        )
    if problem := find_schema_fault(document):
        raise CertificationError(f"{path} is no manifest: {problem}")
    del document["schema"]
    return Manifest(**document)


def find_schema_fault(document: Any) -> str | None:
    """Return where and how a document does not fit the schema, as one line; None where it does."""
    found = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    return None if found is None else f"{escape_text(found.json_path)}: {escape_text(found.message)}"


def find_unfit_member(made: Manifest) -> tuple[str, str] | None:
    """Return the first member of a manifest that does not fit, and what it has to be; None where all fit.

    Args:
        made: without digests of files, which are not looked at.
    """
    whole = replace(made, files=dict.fromkeys((REPORT, RECORDING, *PAGES, NOTE), "0" * 64))
    for found in _validator().iter_errors(json.loads(whole.text())):
        member = str(found.absolute_path[0])
        return member, _schema()["properties"][member]["description"]
    return None


def read_suite_version(folder: Path) -> str | None:
    """Return the version of the suite that made a folder, whatever its manifest's schema; None where it has none.

    Raises:
        CertificationError: there is no manifest that can be read.
    """
    document = _document(folder / NAME)
    suite = document.get("suite") if isinstance(document, dict) else None
    found = suite.get("version") if isinstance(suite, dict) else None
    form = _schema()["$defs"]["version"]
    return found if jsonschema.Draft202012Validator(form).is_valid(found) else None


def _document(path: Path) -> Any:
    try:
        return files.parse_json(files.read_text(path))
    except files.NotOpenedError as error:
        raise CertificationError(f"{path}: {error}") from error
    except files.UnreadableError as error:
        raise CertificationError(f"{path} is no manifest: {error}") from error


@cache
def _schema() -> dict[str, Any]:
    path = data_files.find_folder("schemas") / "manifest.schema.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(_schema(), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
