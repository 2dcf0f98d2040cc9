"""Certification folders to be forged: what is in one, edited in memory and sealed again as a careful forger would."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.certification import manifest
from conformance.report import formats
from conformance.report.json_report import digest

Document = dict[str, Any]


@dataclass
class Folder:
    """The files of a folder that say something, as plain data."""

    report: Document
    har: Document
    manifest: Document

    def row(self, check: str, row: str | None = None) -> Document:
        """Return a row of the report."""
        return next(each for each in self.report["checks"] if each["id"] == check and row in (None, each["row"]))

    def entries(self, scope: str) -> list[Document]:
        """Return the entries of the recording whose scope begins so."""
        return [entry for entry in self.har["log"]["entries"] if entry["_scope"].startswith(scope)]


def load(folder: Path) -> Folder:
    """Read a folder."""
    return Folder(*(json.loads((folder / name).read_text()) for name in ("report.json", "run.har", "manifest.json")))


def seal(found: Folder, source: Path, target: Path, *, with_har: bool) -> None:
    """Write a folder with all its digests made right, and its pages made anew."""
    found.report["footer"]["checks"] = len(found.report["checks"])
    found.report["footer"]["digest"] = digest(found.report)
    (target / "report.json").write_text(formats.FORMATS[".json"](found.report), encoding="utf-8")
    if with_har:
        (target / "run.har").write_text(json.dumps(found.har))
    else:
        os.link(source / "run.har", target / "run.har")
    for page in manifest.PAGES:
        formats.write(found.report, target / page)
    os.link(source / "REPRODUCE.md", target / "REPRODUCE.md")
    found.manifest["files"] = {name: manifest.digest(target / name) for name in found.manifest["files"]}
    (target / "manifest.json").write_text(json.dumps(found.manifest))


def answer(entry: Document, edit: Callable[[bytes], bytes]) -> None:
    """Change the body of a recorded answer, its lengths with it."""
    content = entry["response"]["content"]
    body = edit(b64decode(content["text"]))
    content["text"], content["size"] = b64encode(body).decode(), len(body)
    entry["response"]["bodySize"] = len(body)
