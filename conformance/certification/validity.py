"""How long a certification is valid: to the day that it says, at most a year after its run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

MAX_VALIDITY = timedelta(days=365)


def find_last_valid_day(finished: str) -> date:
    """Return the last day on which a certification by a run that ended then can be valid."""
    return datetime.fromisoformat(finished).date() + MAX_VALIDITY


def get_today() -> date:
    """Return the day, in UTC."""
    return datetime.now(UTC).date()


def is_expired(expires: str, day: date | None = None) -> bool:
    """Say whether a certification that expires on a day is no longer valid on another; None: today."""
    return (day or get_today()) > date.fromisoformat(expires)
