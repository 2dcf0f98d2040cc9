"""A plugin of a run for which few models are enough: a server with few is judged sooner than one with all of them."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.plugin import ending
from conformance.spec.coverage import FULL_COVERAGE, Coverage


def find_no_gap(*_: Any, **__: Any) -> Coverage:
    """Return that nothing is missing, whatever was judged."""
    return FULL_COVERAGE


pytest.MonkeyPatch().setattr(ending, "find_coverage", find_no_gap)  # for this process: a run of its own
