"""One server for all these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Server, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as started:
        yield started
