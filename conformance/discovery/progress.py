"""How a survey tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

# Is told a few words, as often as there is something new.
Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """Tell nobody."""
