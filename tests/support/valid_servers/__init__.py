"""Valid servers that differ from the reference server: none of them may fail a check.

A valid server (a variation) is made like a fault, by replacing a step of the reference server. `breaks` names the
SHOULDs that the server does not meet; the suite advises about these and nothing else. Where the documents leave a
point open, a variation takes the other reading.
"""

from __future__ import annotations

from functools import cache

from reference_server.faults import Fault, collect


@cache
def load() -> dict[str, Fault]:
    """Return every variation by name, in the order of the modules."""
    return collect(__name__, __path__)
