"""What reads along on one connection: it is given copies of what passes, and can neither change nor delay it."""

from __future__ import annotations

from typing import Protocol


class Tap(Protocol):
    """Reads one connection."""

    def sent(self, data: bytes) -> None:
        """Take bytes of the client."""

    def came(self, data: bytes) -> None:
        """Take bytes of the server."""

    def ended(self) -> None:
        """Learn that nothing more will come from either side."""
