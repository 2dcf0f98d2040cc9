"""Servers that these tests share: over gRPC, and one with a low limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.grpc_serving import GrpcConnection, serve
from tests.support.serving import Server, run_server


@pytest.fixture(scope="session")
def opened() -> Iterator[GrpcConnection]:
    with serve() as one:
        yield one


@pytest.fixture(scope="session")
def small_server() -> Iterator[Server]:
    with run_server("--max-body", "1000") as started:
        yield started
