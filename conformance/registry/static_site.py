"""The static site of a registry: an index, a page for each certification with its report, badges, a feed, index.json.

No file of a folder is copied: pages, reports and badges are rendered from verified data, and Jinja2 escapes all text.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from markupsafe import Markup

from conformance.certification.profiles import PROFILES
from conformance.registry import checking, entries, policy
from conformance.registry.entries import SHORT_ID, Entry, Status
from conformance.registry.policy import Policy, RegistryError
from conformance.report import badge, formats
from conformance.report.output_files import convert_write_errors, make_empty_folder, write_atomically
from conformance.report.simple_page import build_environment
from conformance.spec.ledger import Party
from conformance.spec.outcome import CONFORMANT, GATES
from conformance.spec.text import escape_text

INDEX_SCHEMA = 1
EPOCH = "1970-01-01T00:00:00+00:00"  # update time of a feed without items
_NO_SLUG = re.compile(r"[^a-z0-9.]+")


def build(root: Path, site: Path, day: date) -> list[Entry]:
    """Verify every folder of a registry, and write its site for a day; return the certifications.

    `site`: a folder that is absent or empty.
    `day`: the day on which the site shows the certifications as valid or expired.

    Raises RegistryError: the registry's own files cannot be read, or the site cannot be written.
    """
    registry_policy, notices = policy.read(root), policy.read_notices(root)
    make_empty_folder(site, RegistryError)
    found = [
        _refuse_unknown_signer(entries.read(path, root, registry_policy, notices, day), registry_policy)
        for path in entries.find_folders(root)
    ]
    with convert_write_errors(site, RegistryError):
        for name, text in _render_files(found, registry_policy, day):
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
    return found


def _refuse_unknown_signer(entry: Entry, registry_policy: Policy) -> Entry:
    """Return the entry, marked as refused if the policy does not accept its signer or its self-test."""
    problems = () if entry.refusals else tuple(checking.find_signer_problems(entry.manifest, registry_policy))
    return replace(entry, refusals=problems, status=Status.REFUSED) if problems else entry


def _render_files(certifications: Sequence[Entry], registry_policy: Policy, day: date) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of the site."""
    verified = [entry for entry in certifications if entry.status is not Status.REFUSED]
    refused = [entry for entry in certifications if entry.status is Status.REFUSED]
    listed = group_by_product(verified)
    templates = build_environment("conformance.registry")
    templates.filters["quoted"] = shlex.quote
    shared: Mapping[str, Any] = {"policy": registry_policy, "day": day}
    index = templates.get_template("index.html.jinja")
    yield "index.html", index.render(**shared, up="", products=listed, refused=refused, profiles=list(PROFILES))
    feed_items = list_feed_items(verified, registry_policy)
    updated = feed_items[0].updated if feed_items else EPOCH
    yield "feed.xml", templates.get_template("feed.xml.jinja").render(**shared, items=feed_items, updated=updated)
    yield "index.json", json.dumps(_build_json_index(listed, refused, registry_policy), indent=1) + "\n"
    page = templates.get_template("certification.html.jinja")
    for entry in verified:
        yield entry.page, page.render(**shared, up="../../", entry=entry, badge=Markup(_draw_badge(entry)))  # noqa: S704 - our own
        yield f"{entry.site_folder}report.html", formats.FORMATS[".html"](entry.folder.report)
        yield from _render_badge_files(f"{entry.site_folder}badge", entry)
    for product in listed:
        yield from _draw_product_badges(product)


def _draw_product_badges(product: Product) -> Iterator[tuple[str, str]]:
    """Yield a product's badge files for each profile: for the newest valid certification, else for the newest one."""
    for profile in PROFILES:
        found = product.list_for_profile(profile)
        valid = [entry for entry in found if entry.status is Status.VALID]
        if found:
            yield from _render_badge_files(f"badges/{product.anchor}/{profile}", (valid or found)[0])


def _render_badge_files(name: str, entry: Entry) -> Iterator[tuple[str, str]]:
    is_well = entry.status is Status.VALID and entry.manifest.standing in GATES
    yield f"{name}.svg", _draw_badge(entry)
    yield f"{name}.json", badge.build_endpoint(entry.message, entry.color, is_error=not is_well)


def _draw_badge(entry: Entry) -> str:
    made = entry.manifest
    kind = ", client" if entry.is_client else ""
    title = f"{escape_text(made.label)}{kind}, {made.profile}: {made.certified_as}, {entry.status}"
    return badge.draw_badge(entry.message, entry.color, title)


def _build_json_index(listed: Sequence[Product], refused: Sequence[Entry], registry_policy: Policy) -> dict[str, Any]:
    certifications = [_build_index_entry(entry, product) for product in listed for entry in product.entries]
    folders = [
        {"folder": entry.relative_path, "reasons": [escape_text(reason, 400) for reason in entry.refusals]}
        for entry in refused
    ]
    return {
        "schema": INDEX_SCHEMA,
        "title": registry_policy.title,
        "url": registry_policy.url,
        "certifications": certifications,
        "not_verified": folders,
    }


def _build_index_entry(entry: Entry, product: Product) -> dict[str, Any]:
    """Return the entry of a certification in `index.json`: its manifest without digests, its status and outcomes."""
    made = json.loads(entry.manifest.to_json())
    members = {name: value for name, value in made.items() if name not in ("schema", "files", "placements", "models")}
    notice = entry.notice
    said = notice and {
        "on": str(notice.on), "reason": notice.reason, "requirement": notice.requirement, "url": notice.url
    }  # fmt: skip
    tallies = {
        level: {"met": tally.met, "not_met": tally.failed, "applying": tally.applying}
        for level, tally in (("MUST", entry.musts), ("SHOULD", entry.advice))
    }
    return {
        "id": entry.id,
        "party": entry.manifest.party,
        "status": str(entry.status),
        "standing": entry.manifest.standing,
        "notice": said,
        "folder": entry.relative_path,
        "page": entry.page,
        "badge": f"badges/{product.anchor}/{made['profile']}.json",
        "over_grpc": entry.is_over_grpc,
        "reported": {"name": entry.reported.name, "version": entry.reported.version},
        "requirements": tallies,
        "manifest": members,
    }


# --- products ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A product of a vendor, a server or a client, with its certifications, newest first."""

    vendor: str
    name: str
    party: str
    entries: Sequence[Entry]

    @property
    def anchor(self) -> str:
        """The product's anchor in the index page, which is also the path of its badges in the folder `badges`."""
        path = f"{make_slug(self.vendor)}/{make_slug(self.name)}"
        return path if self.party == Party.SERVER else f"{path}/{self.party}"

    def list_for_profile(self, profile: str) -> list[Entry]:
        """Return the product's certifications for a profile, newest first."""
        return [entry for entry in self.entries if entry.manifest.profile == profile]


def group_by_product(certifications: Iterable[Entry]) -> list[Product]:
    """Return the products with certifications, sorted by vendor, name and party."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in certifications:
        made = entry.manifest
        groups.setdefault((made.vendor, made.product, made.party), []).append(entry)
    return [
        Product(*key, sorted(group, key=lambda entry: (entry.manifest.finished, entry.id), reverse=True))
        for key, group in sorted(groups.items())
    ]


def make_slug(text: str) -> str:
    """Return a file name for a text: lower-case letters, digits and hyphens; a digest replaces an unusable text."""
    found = _NO_SLUG.sub("-", text.casefold()).strip("-.")
    return found if found and 2 * len(found) >= len(text.strip()) else sha256(text.encode()).hexdigest()[:SHORT_ID]


# --- the feed ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An event of a certification in the feed; `kind` says whether it was certified, revoked or disputed."""

    kind: str
    page: str
    updated: str
    title: str
    author: str
    summary: str


def list_feed_items(certifications: Iterable[Entry], registry_policy: Policy) -> list[FeedItem]:
    """Return the items of the Atom feed: new certifications, and dated revocations and disputes."""
    every = [item for entry in certifications for item in _iterate_events(entry, registry_policy)]
    return sorted(every, key=lambda item: (item.updated, item.page, item.kind), reverse=True)


def _iterate_events(entry: Entry, registry_policy: Policy) -> Iterator[FeedItem]:
    """Yield the feed item of a certification, and that of its revocation or dispute."""
    made = entry.manifest
    kind = "client, " if entry.is_client else ""
    what = f"{made.label} by {made.vendor}, {kind}profile {made.profile}"
    summary = f"{entry.musts.sentence}. Valid until {made.expires}."
    said = f"Certified as {made.certified_as}" if made.certified_as != CONFORMANT else "Certified"
    yield FeedItem("certified", entry.page, made.finished, f"{said}: {what}", made.vendor, summary)
    if entry.notice:
        is_revoked = entry.status is Status.REVOKED
        kind, word = ("revoked", "Revoked") if is_revoked else ("disputed", "In dispute")
        on = f"{entry.notice.on}T00:00:00+00:00"
        yield FeedItem(kind, entry.page, on, f"{word}: {what}", registry_policy.title, entry.notice.reason)
