"""Certification folders to be forged: what is in one, edited in memory and sealed again as a careful forger would.

A forger has no key of the vendor's, and signs with one of their own.
"""

from __future__ import annotations

import json
import lzma
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.certification import manifest, note, sealing
from conformance.certification.manifest import Manifest
from conformance.report import formats
from conformance.report.json_report import compute_digest
from conformance.transport.har import NAME
from tests.support.run_archives import expand_archive

Document = dict[str, Any]
Edit = Callable[["FolderContents"], Any]
FORGER = sealing.make_throwaway_key()


@dataclass
class FolderContents:
    """The files of a folder that say something, as plain data."""

    report: Any
    har: Document
    manifest: Document
    note: str = ""

    def row(self, check: str, row: str | None = None) -> Document:
        return next(each for each in self.report["rows"] if each["check"] == check and row in (None, each["row"]))

    def entries(self, scope: str) -> list[Document]:
        """Return the entries of the recording whose scope begins so."""
        return [entry for entry in self.har["log"]["entries"] if entry["_scope"].startswith(scope)]


def load(folder: Path) -> FolderContents:
    report: Document = json.loads(lzma.decompress((folder / manifest.REPORT).read_bytes()))
    made: Document = json.loads((folder / manifest.NAME).read_text())
    return FolderContents(report, expand_archive(folder / NAME), made)


def forge(original: FolderContents, source: Path, target: Path, edit: Edit, *, with_har: bool = False) -> None:
    """Fill a folder with what an edited copy of another says; without `with_har`, the recording is as it was."""
    har = original.har if with_har else {}
    found = FolderContents(*json.loads(json.dumps([original.report, har, original.manifest, original.note])))  # a copy
    edit(found)
    seal(found, source, target, with_har=with_har)


def seal(found: FolderContents, source: Path, target: Path, *, with_har: bool) -> None:
    """Write a folder with all its digests made right, its pages made anew, and a signature."""
    found.report["footer"]["rows"] = len(found.report["rows"])
    found.report["footer"]["digest"] = compute_digest(found.report)
    (target / manifest.REPORT).write_text(formats.FORMATS[".json"](found.report), encoding="utf-8")
    if with_har:
        (target / NAME).write_text(json.dumps(found.har))
    else:
        os.link(source / NAME, target / NAME)
    for page in manifest.PAGES:
        formats.write(found.report, target / page)
    said = {name: value for name, value in found.manifest.items() if name != "schema"}
    (target / manifest.NOTE).write_text(found.note or note.render(Manifest(**said), found.report))
    found.manifest["key"] = sealing.describe_key(FORGER, lasting=found.manifest["key"]["lasting"])
    found.manifest["files"] = {name: manifest.compute_digest(target / name) for name in found.manifest["files"]}
    (target / manifest.NAME).write_text(json.dumps(found.manifest))
    sealing.sign(target, FORGER)


def edit_answer(entry: Document, edit: Callable[[bytes], bytes]) -> None:
    """Change the body of a recorded answer, its lengths with it."""
    content = entry["response"]["content"]
    body = edit(b64decode(content["text"]))
    content["text"], content["size"] = b64encode(body).decode(), len(body)
    entry["response"]["bodySize"] = len(body)


def link_files(source: Path, target: Path) -> None:
    for path in source.iterdir():
        os.link(path, target / path.name)
