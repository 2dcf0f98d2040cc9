"""Puts bytes together a slice at a time: between slices others have their turn, and at the end nothing is copied.

`b"".join` keeps every other thread waiting until it is through, which for 60 MB takes longer than anybody should wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

SLICE = 1024 * 1024  # bytes; a fraction of a millisecond


def join_parts(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the parts, one behind the other."""
    views = [memoryview(part) for part in parts]
    if sum(map(len, views)) <= SLICE:
        return b"".join(views)
    whole = BytesIO()
    for view in views:
        for start in range(0, len(view), SLICE):
            whole.write(view[start : start + SLICE])
    return whole.getvalue()
