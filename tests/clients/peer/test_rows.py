"""The rows of quick on tritonclient, which is accused only of what it does; and what each row is about."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.clients.adapter import AdapterProcess
from conformance.clients.client import Client
from conformance.clients.inference import Result
from conformance.clients.peer.peer import Peer
from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.check import Case, list_rows
from conformance.spec.extensions import GRPC, HTTP
from tests.support.sampling import select_quick
from tests.support.tables import on_each, row_name

ADAPTERS = Path(__file__).parents[3] / "targets" / "clients" / "adapters"
OVER_HTTP = list_rows(checks.list_area_checks("client"))
OVER_GRPC = list_rows(checks.list_area_checks("client-grpc"))
# What tritonclient does not meet, whichever row shows it: it states no content type, sends NaN and FP16 as JSON where
# that is asked for, leaves a version in the path as it is, reads -0 as 0, takes lengths that do not add up and an
# answer without outputs, and reads no typed contents.
KNOWN = {
    "CLIENT-SENDS-POST",
    "CLIENT-READS-NUMBERS",
    "CLIENT-SENDS-CONTENT-TYPE",
    "CLIENT-SENDS-JSON",
    "CLIENT-SENDS-FP16",
    "CLIENT-REFUSES-WRONG",
    "CLIENT-REFUSES-WRONG/grpc",
    "CLIENT-READS-FORM/grpc",
}


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    before = set(threading.enumerate())
    with Peer() as opened:
        yield opened
    assert [thread.name for thread in threading.enumerate() if thread not in before and not thread.daemon] == []


@pytest.fixture(scope="module")
def http() -> Iterator[AdapterProcess]:
    with closing(AdapterProcess((sys.executable, str(ADAPTERS / "tritonclient_http.py")))) as adapter:
        yield adapter


@pytest.fixture(scope="module")
def grpc() -> Iterator[AdapterProcess]:
    with closing(AdapterProcess((sys.executable, str(ADAPTERS / "tritonclient_grpc.py")))) as adapter:
        yield adapter


def unmet_by(client: Client, case: Case) -> str | None:
    """Return the requirement that a client does not meet on a row, or None."""
    try:
        case.check.body(client, *case.row.values)
    except (NotApplicableError, BlockedError):
        return None
    except UnmetError as unmet:
        named = unmet.requirement or case.requirements[0]
        return (to_grpc_requirement(named) if client.is_over_grpc else named) or named
    return None


@on_each(select_quick(OVER_HTTP), row_name)
def test_tritonclient_over_http(case: Case, *, peer: Peer, http: AdapterProcess) -> None:
    assert unmet_by(Client(http, peer, HTTP), case) in {None, *KNOWN}


@on_each(select_quick(OVER_GRPC), row_name)
def test_tritonclient_over_grpc(case: Case, *, peer: Peer, grpc: AdapterProcess) -> None:
    assert unmet_by(Client(grpc, peer, GRPC), case) in {None, *KNOWN}


def test_what_tritonclient_does_not_read_is_named(peer: Peer, grpc: AdapterProcess) -> None:
    found = {
        (case.row.id, unmet_by(Client(grpc, peer, GRPC), case))
        for case in OVER_GRPC
        if case.check.id == "client-grpc.reads-the-form-that-comes"
    }
    typed = {row for row, name in found if name == "CLIENT-READS-FORM/grpc"}
    assert typed == {"typed", "unpacked", "typed-unknown-fields"}


# Until gRPC has noticed that a connection has ended: otherwise a call behind the dropped ones fails, too.
NOTICE_S = 1.0


class Dropping:
    """tritonclient, whose next calls after a failed one fail before anything is sent."""

    def __init__(self, client: AdapterProcess, calls: int) -> None:
        self._client, self._calls, self._left = client, calls, 0
        self.introduction = client.introduction
        self.close = client.close

    def infer(self, *asked: Any, **options: Any) -> list[Result]:
        """Make the inferences, or fail."""
        if self._left:
            self._left -= 1
            time.sleep(NOTICE_S)
            return [Result(error="the connection is gone")]
        results = self._client.infer(*asked, **options)
        self._left = self._calls * any(one.error is not None for one in results)
        return results


@pytest.mark.parametrize(
    ("row_id", "calls", "expected"),
    [
        ("after-closed", 1, None),
        ("after-closed", 2, "CLIENT-GOES-ON/grpc"),
        ("after-cut-off", 1, "CLIENT-GOES-ON/grpc"),
    ],
)
def test_one_call_may_meet_the_old_connection(
    peer: Peer, grpc: AdapterProcess, row_id: str, calls: int, expected: str | None
) -> None:
    case = next(pair for pair in OVER_GRPC if (pair[0].id, pair[1].id) == ("client-grpc.goes-on-after-errors", row_id))
    assert unmet_by(Client(Dropping(grpc, calls), peer, GRPC), case) == expected


# --- the rows themselves ----------------------------------------------------------------------------------------------


@on_each(OVER_HTTP + OVER_GRPC, row_name)
def test_a_row_answers_for_clients_over_its_transport(case: Case) -> None:
    entries = [ledger.get_requirement(name) for name in case.requirements]
    assert {entry.party for entry in entries} == {ledger.Party.CLIENT}
    assert {entry.area for entry in entries} == {case.check.area}
    assert case.check.over == ((GRPC,) if case.check.area == "client-grpc" else (HTTP,))


def test_no_check_of_clients_is_run_on_servers() -> None:
    assert {check.id for check, _ in OVER_HTTP + OVER_GRPC} & {check.id for check in checks.load()} == set()
