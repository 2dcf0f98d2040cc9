"""What pages of a comparison share: their words, and lists cut to a length that can be read."""

from __future__ import annotations

from collections.abc import Sequence

TITLE = "Conformance of model servers, side by side"
WRITTEN_BY = "Written by `oip-conformance compare`, from the reports that `--conformance-report` leaves; not by hand."
ROWS = 3
SEEN = 4


def more(rows: Sequence[str]) -> str:
    """Return the first rows by name, and how many there are beside."""
    named = ", ".join(row or "-" for row in rows[:ROWS])
    return named if len(rows) <= ROWS else f"{named} and {len(rows) - ROWS} more"


def seen(observed: Sequence[tuple[str, int]]) -> list[str]:
    """Return what was observed, each with how often."""
    shown = [what if count == 1 else f"{what} ({count})" for what, count in observed[:SEEN]]
    return [*shown, f"and {len(observed) - SEEN} more"] if len(observed) > SEEN else shown
