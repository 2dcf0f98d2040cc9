"""The browser that all tests of report pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support import chromium


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    assert pytestconfig.cache is not None
    with chromium.run_browser(pytestconfig.cache.mkdir("chromium")) as running:
        yield running
