"""How much of a client's a server takes, and how long it waits for the rest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What is beyond them is refused.

    Attributes:
        head: bytes of request line and headers together, but for those that come with the first.
        body: bytes of a body as it arrives, and without its coding.
        patience: seconds for a whole head, and for the next part of a body.
        body_seconds: for a whole body.
    """

    head: int = 64 * 1024
    body: int = 64 * 1024 * 1024
    patience: float = 10.0
    body_seconds: float = 300.0


DEFAULT = Limits()
