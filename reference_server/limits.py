"""Limits on request size and time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What is beyond them is refused.

    Attributes:
        head: bytes of request line and headers together, but for those that come with the first.
        body: bytes of a body as it arrives, and without its coding.
        patience: seconds for a whole head, for the next part of a body, and for a part of an answer to be taken.
        body_seconds: for a whole body.
        json: bytes of the JSON of a request.
        elements: values in the JSON of a request, elements of an output in JSON, and elements of BYTES.
        containers: arrays, objects and members of objects in the JSON of a request.
        entries: of `inputs`, and of `outputs`.
        connections: that are open at a time.
    """

    head: int = 64 * 1024
    body: int = 64 * 1024 * 1024
    patience: float = 10.0
    body_seconds: float = 300.0
    json: int = 16 * 1024 * 1024
    elements: int = 2 * 1024 * 1024
    containers: int = 64 * 1024
    entries: int = 1024
    connections: int = 1000


DEFAULT = Limits()
_in_force = [DEFAULT]


def get_limits() -> Limits:
    """Return the limits of this process: those for what is read from a body, whichever transport it came over."""
    return _in_force[-1]


def set_limits(limits: Limits) -> None:
    """Have this process keep to these limits."""
    _in_force[-1] = limits
