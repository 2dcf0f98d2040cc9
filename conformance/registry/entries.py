"""The verified certifications of a registry: every folder below its root that has a manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from conformance.certification import manifest, other_suite, verifying
from conformance.certification.manifest import CertificationError, Manifest, ReportedProduct
from conformance.certification.profiles import GRPC_ALONE, OVER_GRPC
from conformance.certification.verifying import Folder, RequiredSigners
from conformance.registry.policy import Notice, Notices, Policy
from conformance.report.badge import COLORS
from conformance.report.report_file import ReportError
from conformance.roles.declared_limits import describe_limits
from conformance.spec import ledger
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Party
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NONCONFORMANT, Outcome
from conformance.spec.tally import Tally, tally_report
from conformance.spec.text import escape_text
from conformance.spec.version import __version__

# Folders of a registry's repository that hold no certifications.
_EXCLUDED_FOLDERS = {".git", ".github", "node_modules"}


class Status(StrEnum):
    """The status of a certification; if several apply, the first of them in this order counts."""

    REFUSED = "not verified"
    REVOKED = "revoked"
    EXPIRED = "expired"
    DISPUTED = "disputed"
    VALID = "valid"


# Colours of badges; white text is readable on all of them.
STATUS_COLORS = {
    Status.VALID: COLORS[CONFORMANT],
    Status.REVOKED: COLORS[NONCONFORMANT],
    Status.EXPIRED: "57606a",
    Status.DISPUTED: COLORS[INCOMPLETE],
}
SHORT_ID = 16


@dataclass(frozen=True)
class Entry:
    """A certification in a registry.

    Attributes:
        relative_path: the path of the folder, relative to the root of the registry.
        notice: the maintainers' notice if the certification is revoked or disputed, else None.
    """

    folder: Folder
    relative_path: str
    refusals: tuple[str, ...]
    notice: Notice | None
    status: Status

    @property
    def manifest(self) -> Manifest:
        """The manifest; a refused folder may have none."""
        return self.folder.manifest

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the manifest."""
        return manifest.compute_digest(self.folder.path / manifest.NAME)

    # --- what pages show of a verified certification

    @property
    def site_folder(self) -> str:
        """The folder of the certification's pages in the site, ending in a slash."""
        return f"certifications/{self.id[:SHORT_ID]}/"

    @property
    def page(self) -> str:
        """The path of the certification's page in the site."""
        return f"{self.site_folder}index.html"

    @property
    def reported(self) -> ReportedProduct:
        """The name and version that the server or client reports."""
        return manifest.read_reported_product(self.folder.report)

    @property
    def is_over_grpc(self) -> bool:
        """Whether gRPC was judged."""
        report = self.folder.report
        if self.is_client:
            return GRPC in report["target"]["transports"]
        return OVER_GRPC in report["options"]["extensions"]

    @property
    def is_client(self) -> bool:
        """Whether the certified product is a client, not a server."""
        return self.manifest.party == Party.CLIENT

    @property
    def grpc_note(self) -> str:
        """A note that gRPC was judged, in addition to HTTP or instead of it; empty if the profile says which."""
        if self.manifest.profile == GRPC_ALONE:
            return ""
        is_alone = self.is_client and HTTP not in self.folder.report["target"]["transports"]
        return ("gRPC alone" if is_alone else "also gRPC") if self.is_over_grpc else ""

    @cached_property
    def musts(self) -> Tally:
        """The outcomes of the MUSTs."""
        return tally_report(self.folder.report)

    @cached_property
    def advice(self) -> Tally:
        """The outcomes of the SHOULDs."""
        return tally_report(self.folder.report, "SHOULD")

    @property
    def limited_standing(self) -> str:
        """`interoperable` or `partial`, if the product is not fully conformant; otherwise empty."""
        return "" if self.manifest.standing == CONFORMANT else self.manifest.standing

    @property
    def limits(self) -> str:
        """The declared limits of the product in words; empty if there are none."""
        return describe_limits(self.manifest.limits)

    @property
    def color(self) -> str:
        """The color of the badge."""
        return COLORS[self.manifest.standing] if self.status is Status.VALID else STATUS_COLORS[self.status]

    @property
    def unmet(self) -> list[dict[str, str]]:
        """The MUSTs that the product does not meet; only an interoperable product has any."""
        return self._list_requirements(Outcome.FAIL)

    @property
    def unfollowed_shoulds(self) -> list[dict[str, str]]:
        """The SHOULDs that the product does not follow."""
        return self._list_requirements(Outcome.ADVISORY)

    def _list_requirements(self, outcome: Outcome) -> list[dict[str, str]]:
        """Return id, URL and statement of the requirements with an outcome; statements are from this suite's ledger.

        Reports of early suites have a path instead of a URL for a requirement's page; such a path is not linked.
        """
        known = ledger.load()
        return [
            {
                "id": each["id"],
                "url": each["url"] if each["url"].startswith("https://") else "",
                "statement": known[each["id"]].statement if each["id"] in known else "",
            }
            for each in self.folder.report["requirements"]
            if each["verdict"] == outcome
        ]

    @property
    def signer(self) -> str:
        """A short description of the signer."""
        third = self.manifest.third_party
        own = "vendor" if self.manifest.key["lasting"] else "self-attested"
        return f"{own}, {third['name']}" if third else own

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts from the manifest for display: name and value."""
        made, third = self.manifest, self.manifest.third_party
        key = made.key["id"] + ("" if made.key["lasting"] else " (made for this folder alone)")
        given = [
            ("profile", made.profile),
            ("certified as", made.certified_as),
            ("suite", f"{made.suite['version']}, requirements {made.suite['ledger']}"),
            ("judged", f"{made.started} to {made.finished}"),
            ("valid until", made.expires),
            ("licence", made.licence),
            ("image", made.container),
            ("version shown by", made.version_command),
            ("contact", made.contact),
            ("key", key),
            ("run by", third and f"{third['name']} ({third['contact']}), key {third['key']['id']}"),
        ]
        return [(name, value) for name, value in given if value]

    @property
    def message(self) -> str:
        """The text of the badge."""
        version = escape_text(self.manifest.product_version, 30)
        if self.status is not Status.VALID:
            return f"{self.status} {version}"
        coverage = self.manifest.coverage
        part = f" {coverage['met']}/{coverage['of']}" if coverage else ""
        kind = "client, " if self.is_client else ""
        standing = f"{self.limited_standing}{part}, " if self.limited_standing else ""
        return " ".join(filter(None, (f"{kind}{standing}{self.manifest.profile}", self.limits, version)))


def find_folders(root: Path) -> list[Path]:
    """Return every folder below a root that has a manifest, in order."""
    found = (path.parent for path in root.rglob(manifest.NAME))
    return sorted(path for path in found if not _EXCLUDED_FOLDERS & set(path.relative_to(root).parts))


def read(path: Path, root: Path, policy: Policy, notices: Notices, day: date) -> Entry:
    """Verify a folder; return its entry, with the status of the certification on `day`."""
    folder = Folder(path)
    relative_path = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    if refusals := tuple(_find_refusals(folder, policy)):
        return Entry(folder, relative_path, refusals, None, Status.REFUSED)
    found = manifest.compute_digest(path / manifest.NAME)
    revoked, disputed = notices.revoked.get(found), notices.disputed.get(found)
    is_expired = manifest.is_expired(folder.manifest.expires, day)
    return Entry(
        folder, relative_path, (), revoked or disputed, _choose_status(revoked, disputed, is_expired=is_expired)
    )


def _choose_status(revoked: Notice | None, disputed: Notice | None, *, is_expired: bool) -> Status:
    if revoked:
        return Status.REVOKED
    if is_expired:
        return Status.EXPIRED
    return Status.DISPUTED if disputed else Status.VALID


def _find_refusals(folder: Folder, policy: Policy) -> Iterator[str]:
    """Yield why a folder is invalid, according to the version of the suite that made the folder."""
    try:
        version = manifest.read_suite_version(folder.path)
        if version in (None, __version__):
            yield from verifying.find_refusal_reasons(folder, RequiredSigners())
        elif version not in policy.suites:
            yield f"suite {version} made the folder; this registry does not accept certifications of that version"
        elif not (verification := other_suite.verify(folder.path, version)).holds:
            yield from verification.lines
        else:
            _ = folder.manifest, folder.report  # raises if this suite cannot read them
    except (CertificationError, ReportError) as error:
        yield str(error)
