"""The bundled reference server for the clients under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.transport.reference import ReferenceServer


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """Start the server and stop it afterwards."""
    server = ReferenceServer()
    yield server.url
    server.stop()
