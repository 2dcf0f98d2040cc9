"""The adapters of real clients that need no more than the tests do, on a few rows; `tox -e clients` has all of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conformance.clients.adapter import AdapterProcess
from conformance.clients.peer.peer import Peer
from conformance.judging.client_session import ClientJudge
from conformance.spec.outcome import Outcome
from tests.clients.sightings import collect_rows

CLIENTS = Path(__file__).parents[2] / "targets" / "clients"
ADAPTERS = {
    "tritonclient.http": ("http", sys.executable, "adapters/tritonclient_http.py"),
    "tritonclient.http.aio": ("http", sys.executable, "adapters/tritonclient_http_aio.py"),
    "tritonclient.grpc": ("grpc", sys.executable, "adapters/tritonclient_grpc.py"),
    "tritonclient.grpc.aio": ("grpc", sys.executable, "adapters/tritonclient_grpc_aio.py"),
    "oip-node": ("http", shutil.which("node") or "node", "node/adapter.mjs"),
}
ROWS = {
    "http": {
        ("client.reads-every-datatype", "INT64-json"): Outcome.PASS,
        ("client.sends-inputs-in-order", "C-B-A"): Outcome.PASS,
        ("client.gives-each-caller-its-own-answer", "32-binary"): Outcome.PASS,
        ("client.reads-every-datatype", "BYTES-binary"): Outcome.PASS,
    },
    "grpc": {
        ("client-grpc.reads-every-datatype", "INT64-raw"): Outcome.PASS,
        ("client-grpc.reads-every-datatype", "INT64-typed"): Outcome.FAIL,
    },
}


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer() as opened:
        yield opened


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_real_client_is_judged(peer: Peer, name: str) -> None:
    transport, program, adapter = ADAPTERS[name]
    with closing(AdapterProcess((program, str(CLIENTS / adapter)))) as opened:
        assert (opened.introduction.name, opened.introduction.transports) == (name, (transport,))
        judge = ClientJudge(opened, opened.introduction, peer)
        cases = {(one[0].id, one[1].id): one for one in collect_rows((transport,))}
        found = {row: judge(*cases[row]).outcome for row in ROWS[transport]}
    assert found == ROWS[transport]
