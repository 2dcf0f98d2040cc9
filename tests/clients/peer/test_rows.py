"""The rows of quick, on clients in this process: an honest one is never accused, and another's only of what it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import checks
from conformance.clients.client import Client
from conformance.clients.inference import Result
from conformance.clients.peer.peer import Peer
from conformance.expect.attribution import to_grpc_requirement
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.check import Case, list_rows
from conformance.spec.extensions import GRPC, HTTP
from tests.clients.peer.plain_client import PlainClient
from tests.clients.peer.triton_clients import TritonClients
from tests.support.sampling import select_quick
from tests.support.tables import on_each, row_name

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
def plain() -> Iterator[PlainClient]:
    client = PlainClient()
    yield client
    client.close()


@pytest.fixture(scope="module")
def triton(peer: Peer) -> Iterator[TritonClients]:
    assert peer.grpc_address
    client = TritonClients()
    yield client
    client.close()


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
def test_an_honest_client_meets_every_row(case: Case, *, peer: Peer, plain: PlainClient) -> None:
    case.check.body(Client(plain, peer, HTTP), *case.row.values)


@on_each(select_quick(OVER_HTTP), row_name)
def test_tritonclient_over_http(case: Case, *, peer: Peer, triton: TritonClients) -> None:
    assert unmet_by(Client(triton, peer, HTTP), case) in {None, *KNOWN}


@on_each(OVER_GRPC, row_name)
def test_tritonclient_over_grpc(case: Case, *, peer: Peer, triton: TritonClients) -> None:
    assert unmet_by(Client(triton, peer, GRPC), case) in {None, *KNOWN}


def test_what_tritonclient_does_not_read_is_named(peer: Peer, triton: TritonClients) -> None:
    found = {
        (case.row.id, unmet_by(Client(triton, peer, GRPC), case))
        for case in OVER_GRPC
        if case.check.id == "client-grpc.reads-the-form-that-comes"
    }
    typed = {row for row, name in found if name == "CLIENT-READS-FORM/grpc"}
    assert typed == {"typed", "unpacked", "typed-unknown-fields"}


NOTICE_S = (
    0.3  # until gRPC has noticed that a connection has ended: otherwise a call behind the dropped ones fails, too
)


class Dropping:
    """tritonclient, whose next calls after a failed one fail before anything is sent."""

    introduction = TritonClients.introduction

    def __init__(self, client: TritonClients, calls: int) -> None:
        self._client, self._calls, self._left = client, calls, 0
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
    peer: Peer, triton: TritonClients, row_id: str, calls: int, expected: str | None
) -> None:
    case = next(pair for pair in OVER_GRPC if (pair[0].id, pair[1].id) == ("client-grpc.goes-on-after-errors", row_id))
    assert unmet_by(Client(Dropping(triton, calls), peer, GRPC), case) == expected


# --- the rows themselves ----------------------------------------------------------------------------------------------


@on_each(OVER_HTTP + OVER_GRPC, row_name)
def test_a_row_answers_for_clients_over_its_transport(case: Case) -> None:
    entries = [ledger.get_requirement(name) for name in case.requirements]
    assert {entry.party for entry in entries} == {ledger.Party.CLIENT}
    assert {entry.area for entry in entries} == {case.check.area}
    assert case.check.over == ((GRPC,) if case.check.area == "client-grpc" else (HTTP,))


def test_every_requirement_of_clients_has_a_row() -> None:
    answered = {name for case in OVER_HTTP + OVER_GRPC for name in case.requirements}
    judged = [entry for entry in ledger.load_for_party(ledger.Party.CLIENT) if entry.level is not ledger.Level.OBSERVE]
    assert sorted({entry.id for entry in judged} - answered) == []


def test_ids_are_unique_and_no_check_of_clients_is_run_on_servers() -> None:
    every = [case.ids for case in OVER_HTTP + OVER_GRPC]
    assert len(every) == len(set(every))
    assert {check.id for check, _ in OVER_HTTP + OVER_GRPC} & {check.id for check in checks.load()} == set()
