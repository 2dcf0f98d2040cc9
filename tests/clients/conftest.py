"""What tests of clients share: a scripted peer, and a bundled server behind a watch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.clients.peer.peer import Peer
from tests.clients.sightings import SharedPeer
from tests.support.servers import run_bundled


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer() as opened:
        yield opened


@pytest.fixture(scope="module")
def stage() -> Iterator[SharedPeer]:
    """A peer for the altered clients of this process."""
    with SharedPeer() as opened:
        yield opened


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """The URL of a bundled server with one model."""
    with run_bundled("--model=identity_int32") as url:
        yield url
