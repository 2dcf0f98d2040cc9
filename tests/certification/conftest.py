"""What the tests of certification share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.certification import profiles
from tests.support.certifying import SCORING
from tests.support.servers import bundled


@pytest.fixture(scope="module")
def few_models_are_enough() -> Iterator[None]:
    """Profiles demand every role, which is a test's own matter; a server with few models is judged sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "_missing_roles", lambda _report: [])
        patch.setattr(profiles, "_need_more", lambda _rows, _demanded: True)
        yield


@pytest.fixture(scope="session")
def scoring() -> Iterator[str]:
    """The URL of a reference server with one model, that has labels."""
    with bundled(SCORING) as url:
        yield url
