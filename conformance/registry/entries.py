"""The certifications of a registry: every folder below its root that has a manifest, verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from conformance import __version__
from conformance.certification import manifest, other_suite, validity, verifying
from conformance.certification.manifest import CertificationError, Manifest
from conformance.certification.verifying import Folder, RequiredSigners
from conformance.registry.policy import Notice, Notices, Policy
from conformance.report.report_file import ReportError

# What a registry's repository has beside certifications.
_NOT_LOOKED_INTO = {".git", ".github", "node_modules"}


class Status(StrEnum):
    """What became of a certification; the first that applies."""

    REFUSED = "not verified"
    REVOKED = "revoked"
    EXPIRED = "expired"
    DISPUTED = "disputed"
    VALID = "valid"


@dataclass(frozen=True)
class Entry:
    """A certification in a registry.

    Attributes:
        folder: where it is.
        place: the same, from the root of the registry.
        refusals: why it is not verified.
        notice: what the keepers say of it, where they have revoked it or it is in dispute.
        status: on the day for which it was asked.
    """

    folder: Folder
    place: str
    refusals: tuple[str, ...]
    notice: Notice | None
    status: Status

    @property
    def made(self) -> Manifest:
        """The manifest; what is not verified may have none."""
        return self.folder.made

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the manifest."""
        return manifest.digest(self.folder.path / manifest.NAME)


def find_folders(root: Path) -> list[Path]:
    """Return every folder below a root that has a manifest, in order."""
    found = (path.parent for path in root.rglob(manifest.NAME))
    return sorted(path for path in found if not _NOT_LOOKED_INTO & set(path.relative_to(root).parts))


def read(path: Path, root: Path, policy: Policy, notices: Notices, day: date) -> Entry:
    """Verify a folder; return it with its status on a day."""
    folder = Folder(path)
    place = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    if refusals := tuple(_refusals(folder, policy)):
        return Entry(folder, place, refusals, None, Status.REFUSED)
    found = manifest.digest(path / manifest.NAME)
    revoked, disputed = notices.revoked.get(found), notices.disputed.get(found)
    is_over = validity.is_expired(folder.made.expires, day)
    return Entry(folder, place, (), revoked or disputed, _status(revoked, disputed, is_over=is_over))


def _status(revoked: Notice | None, disputed: Notice | None, *, is_over: bool) -> Status:
    if revoked:
        return Status.REVOKED
    if is_over:
        return Status.EXPIRED
    return Status.DISPUTED if disputed else Status.VALID


def _refusals(folder: Folder, policy: Policy) -> Iterator[str]:
    """Yield why a folder does not hold, by the suite that made it."""
    try:
        version = manifest.read_suite_version(folder.path)
        if version in (None, __version__):
            yield from verifying.reasons(folder, RequiredSigners())
        elif version not in policy.suites:
            yield f"it is of suite {version}, whose certifications are not taken"
        elif not (said := other_suite.verify(folder.path, version)).holds:
            yield from said.lines
        else:
            _ = folder.made, folder.report  # this suite has to be able to show them
    except (CertificationError, ReportError) as error:
        yield str(error)
