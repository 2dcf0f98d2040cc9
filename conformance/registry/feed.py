"""The Atom feed of a registry: certifications, and what became of them on a day that somebody wrote down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.registry.entries import Status
from conformance.registry.policy import Policy
from conformance.registry.site_entries import SiteEntry

EPOCH = "1970-01-01T00:00:00+00:00"  # of a feed without items


@dataclass(frozen=True, slots=True)
class FeedItem:
    """What the feed tells of a certification; `kind` keeps apart what is told of the same one."""

    kind: str
    place: str
    updated: str
    title: str
    author: str
    summary: str


def make_items(found: Iterable[SiteEntry], policy: Policy) -> list[FeedItem]:
    """Return the items, the latest first."""
    every = [item for entry in found for item in _items(entry, policy)]
    return sorted(every, key=lambda item: (item.updated, item.place, item.kind), reverse=True)


def _items(entry: SiteEntry, policy: Policy) -> Iterator[FeedItem]:
    made = entry.made
    what = f"{made.label} by {made.vendor}, profile {made.profile}"
    summary = f"{entry.musts.sentence}. Valid until {made.expires}."
    said = f"Certified as {made.certified_as}" if entry.less else "Certified"
    yield FeedItem("certified", entry.page, made.finished, f"{said}: {what}", made.vendor, summary)
    if entry.notice:
        is_revoked = entry.status is Status.REVOKED
        kind, word = ("revoked", "Revoked") if is_revoked else ("disputed", "In dispute")
        on = f"{entry.notice.on}T00:00:00+00:00"
        yield FeedItem(kind, entry.page, on, f"{word}: {what}", policy.title, entry.notice.reason)
