"""A certification as the site shows it, and the products that have some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from conformance.certification import label
from conformance.certification.label import ReportedServer
from conformance.certification.manifest import Manifest
from conformance.certification.profiles import OVER_GRPC
from conformance.registry.entries import Entry, Status
from conformance.registry.policy import Notice
from conformance.report.badge import COLORS
from conformance.spec import ledger
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, NONCONFORMANT, Outcome
from conformance.spec.tally import Tally, tally_report
from conformance.spec.text import escape_text

# Of badges; white letters can be read on all of them.
STATUS_COLORS = {
    Status.VALID: COLORS[CONFORMANT],
    Status.REVOKED: COLORS[NONCONFORMANT],
    Status.EXPIRED: "57606a",
    Status.DISPUTED: COLORS[INCOMPLETE],
}
SHORT_ID = 16
_NO_SLUG = re.compile(r"[^a-z0-9.]+")


@dataclass(frozen=True)
class SiteEntry:
    """A certification that is verified; its members are those of the entry, and what pages say of it."""

    entry: Entry

    @property
    def made(self) -> Manifest:
        """The manifest."""
        return self.entry.made

    @property
    def report(self) -> Any:
        """The report."""
        return self.entry.folder.report

    @property
    def id(self) -> str:
        """The SHA-256 of the manifest."""
        return self.entry.id

    @property
    def place(self) -> str:
        """The folder, from the root of the registry."""
        return self.entry.place

    @property
    def status(self) -> Status:
        """What became of it."""
        return self.entry.status

    @property
    def notice(self) -> Notice | None:
        """What the keepers say of it."""
        return self.entry.notice

    @property
    def directory(self) -> str:
        """Where its pages are in the site, ending in a slash."""
        return f"certifications/{self.id[:SHORT_ID]}/"

    @property
    def page(self) -> str:
        """Its page in the site."""
        return f"{self.directory}index.html"

    @property
    def reported(self) -> ReportedServer:
        """What the server calls itself."""
        return label.read_reported_server(self.report)

    @property
    def is_over_grpc(self) -> bool:
        """Whether it is over gRPC, too."""
        return OVER_GRPC in self.report["options"]["extensions"]

    @cached_property
    def musts(self) -> Tally:
        """What became of the requirements."""
        return tally_report(self.report)

    @cached_property
    def advice(self) -> Tally:
        """What became of the advice."""
        return tally_report(self.report, "SHOULD")

    @property
    def less(self) -> str:
        """What it is certified as, where that is less than conformant; else empty."""
        return "" if self.made.standing == CONFORMANT else self.made.standing

    @property
    def color(self) -> str:
        """Of its badge."""
        return COLORS[self.made.standing] if self.status is Status.VALID else STATUS_COLORS[self.status]

    @property
    def unmet(self) -> list[dict[str, str]]:
        """The MUSTs that an interoperable server does not meet."""
        return self._requirements(Outcome.FAIL)

    @property
    def unheeded(self) -> list[dict[str, str]]:
        """The advice that was not followed."""
        return self._requirements(Outcome.ADVISORY)

    def _requirements(self, outcome: Outcome) -> list[dict[str, str]]:
        """Return the requirements that came to an outcome; statements are those of this suite's ledger.

        The page of one has a URL, or in the report of an early suite a path, which leads nowhere from here.
        """
        known = ledger.load()
        return [
            {
                "id": each["id"],
                "url": each["url"] if each["url"].startswith("https://") else "",
                "statement": known[each["id"]].statement if each["id"] in known else "",
            }
            for each in self.report["requirements"]
            if each["verdict"] == outcome
        ]

    @property
    def signer(self) -> str:
        """Who signed, in a few words."""
        third = self.made.third_party
        own = "vendor" if self.made.key["lasting"] else "self-attested"
        return f"{own}, {third['name']}" if third else own

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the manifest says, for people, each with its name."""
        made, third = self.made, self.made.third_party
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
        """What a badge says."""
        version = escape_text(self.made.product_version, 30)
        if self.status is not Status.VALID:
            return f"{self.status} {version}"
        coverage = self.made.coverage
        part = f" {coverage['met']}/{coverage['of']}" if coverage else ""
        return f"{f'{self.less}{part}, ' if self.less else ''}{self.made.profile} {version}"


@dataclass(frozen=True)
class Product:
    """A product of a vendor, with its certifications, the newest first."""

    vendor: str
    name: str
    entries: Sequence[SiteEntry]

    @property
    def place(self) -> str:
        """Its place in the index, and in the folder of badges."""
        return f"{make_slug(self.vendor)}/{make_slug(self.name)}"

    def of_profile(self, profile: str) -> list[SiteEntry]:
        """Return its certifications for a profile."""
        return [entry for entry in self.entries if entry.made.profile == profile]


def group_by_product(found: Iterable[SiteEntry]) -> list[Product]:
    """Return the products that have certifications, by vendor and name."""
    groups: dict[tuple[str, str], list[SiteEntry]] = {}
    for entry in found:
        groups.setdefault((entry.made.vendor, entry.made.product), []).append(entry)
    return [
        Product(*key, sorted(group, key=lambda entry: (entry.made.finished, entry.id), reverse=True))
        for key, group in sorted(groups.items())
    ]


def make_slug(text: str) -> str:
    """Return a name of a file for a text: small letters, digits, hyphens; a digest where little of it is left."""
    found = _NO_SLUG.sub("-", text.casefold()).strip("-.")
    return found if found and 2 * len(found) >= len(text.strip()) else sha256(text.encode()).hexdigest()[:SHORT_ID]
