"""What pages of a comparison share: their words, and lists cut to a length that can be read."""

from __future__ import annotations

from collections.abc import Sequence

WRITTEN_BY = "Written by `oip-conformance compare`, from the reports that `--conformance-report` leaves; not by hand."
STEPS = "From version to version"
SAME = "They meet the same."
STEPS_TEXT = "What one version of a {} does not meet where another differs, and in how many rows of the checks."
WAYS_TEXT = "What the documents leave open, and which way each {} goes; in brackets how often, where it is not once."
ONLY_DIFFERENCES = "Only what differs between the columns is shown."
NO_DIFFERENCE = "None differs."
MAX_ROWS = 3
MAX_OBSERVATIONS = 4


def shorten_rows(rows: Sequence[str]) -> str:
    """Return the first rows by name, and how many there are beside."""
    named = ", ".join(row or "-" for row in rows[:MAX_ROWS])
    return named if len(rows) <= MAX_ROWS else f"{named} and {len(rows) - MAX_ROWS} more"


def format_change(word: str, rows: int) -> str:
    """Return what a version does about a requirement: a word, and how many rows do not meet it."""
    return f"{word}, {rows} row{'' if rows == 1 else 's'}" if rows else word


def format_observations(observed: Sequence[tuple[str, int]]) -> list[str]:
    """Return what was observed, each with how often."""
    shown = [what if count == 1 else f"{what} ({count})" for what, count in observed[:MAX_OBSERVATIONS]]
    return [*shown, f"and {len(observed) - MAX_OBSERVATIONS} more"] if len(observed) > MAX_OBSERVATIONS else shown
