"""Servers that are different and right: none of them may fail a check.

Made as faults are, by replacing a step of the reference server; here `breaks` names the SHOULDs that the server misses,
for which it is advised and no more. Where the documents leave a point open, the other reading stands here.
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
