"""The progress bar of requirement outcomes: its parts, for pages to draw."""

from __future__ import annotations

from conformance.spec.tally import Tally


def compute_parts(tally: Tally) -> list[tuple[str, int, float, float]]:
    """Return the parts of a bar: kind, count, where it begins and how wide it is, of 100; none that is empty."""
    beside = tally.not_offered + tally.beside
    total = tally.applying + beside or 1
    counts = (
        ("pass", tally.met),
        ("fail", tally.failed),
        ("blocked", tally.stuck),
        ("absent", tally.unseen + beside),
    )
    begins, found = 0.0, []
    for kind, count in counts:
        width = 100 * count / total
        found.append((kind, count, round(begins, 3), round(width, 3)))
        begins += width
    return [part for part in found if part[1]]
