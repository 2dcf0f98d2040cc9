"""The server for the clients under test: the bundled one, or what `oip-conformance client watch` puts before it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from conformance.transport.reference import ReferenceServer


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """Start the server and stop it afterwards, or go where a watch says."""
    if watched := os.environ.get("OIP_TARGET_URL"):
        yield watched
        return
    server = ReferenceServer()
    yield server.url
    server.stop()
