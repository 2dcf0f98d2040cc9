"""How long a certification is valid: to the day that it says, at most a year after its run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

LONGEST = timedelta(days=365)


def latest(finished: str) -> date:
    """Return the last day on which a certification by a run that ended then can be valid."""
    return datetime.fromisoformat(finished).date() + LONGEST


def today() -> date:
    """Return the day, in UTC."""
    return datetime.now(UTC).date()


def is_over(expires: str, day: date | None = None) -> bool:
    """Say whether a certification that expires on a day is no longer valid on another; None: today."""
    return (day or today()) > date.fromisoformat(expires)
