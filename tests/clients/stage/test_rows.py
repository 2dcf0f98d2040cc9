"""Every row, on honest clients: none is accused, and what one cannot is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from conformance import checks
from conformance.clients.client import Client
from conformance.clients.peer import Peer
from conformance.terms.check import Check, Row, all_rows
from conformance.terms.extensions import HTTP
from tests.clients.stage.plain_client import PlainClient

OVER_HTTP = all_rows(checks.of_area("client"))


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    before = threading.active_count()
    with Peer() as opened:
        yield opened
    assert threading.active_count() <= before


@pytest.fixture(scope="module")
def plain() -> Iterator[PlainClient]:
    client = PlainClient()
    yield client
    client.close()


@pytest.mark.parametrize(("check", "row"), OVER_HTTP, ids=lambda one: getattr(one, "id", None))
def test_a_plain_client_passes(check: Check, row: Row, peer: Peer, plain: PlainClient) -> None:
    assert check.over == (HTTP,)
    check.body(Client(plain, peer, HTTP), *row.values)
