"""Valid servers that differ from the reference server: none of them may fail a check.

A valid server (a variation) is made like a fault, by replacing a step of the reference server. `breaks` names the
SHOULDs that the server does not meet; the suite advises about these and nothing else. Where the documents leave a
point open, a variation takes the other reading.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from reference_server.faults import Fault


@cache
def load() -> dict[str, Fault]:
    """Return every variation by name, in the order of the modules."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Fault)]
    return {variation.name: variation for variation in found}
