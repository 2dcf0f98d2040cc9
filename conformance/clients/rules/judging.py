"""One request held against every rule of its transport."""

from __future__ import annotations

from conformance.clients.miss import Judged
from conformance.wire.received import Received


def judged(received: Received) -> Judged:
    """Return what a request of a client meets and misses. Pure, never raises, linear in the size of the request.

    A request that asks for no inference is judged by nothing.
    """
    return Judged()
