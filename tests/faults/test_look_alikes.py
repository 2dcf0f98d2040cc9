"""Each MUST names the valid server that comes closest to failing it: its answers look different, and it is spared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from conformance.judging.selection import Subjects, list_profile_rows
from conformance.spec import ledger
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.ledger import Level, Party, Requirement
from conformance.spec.outcome import Outcome
from conformance.transport.exchange import Exchange
from reference_server.faults import Fault, load, switch_on
from tests.support import valid_servers
from tests.support.samples import select_answering
from tests.support.sightings import MET, Server, open_session, run_server, serve_grpc
from tests.support.step_tracing import Rows
from tests.support.tables import on_each, own_id

SPARED = (*MET, Outcome.ADVISORY)
FEW_ROWS = 8  # of a requirement, one of each of its checks first; the others if these do not tell the servers apart
MUSTS = [one for one in ledger.load().values() if one.party is Party.SERVER and one.level is Level.MUST]
EVERY_ROW = list_profile_rows("certify", subjects=Subjects(robustness=True), transports=TRANSPORTS)
ROWS_BEHIND_DISCOVERY = [case for case in EVERY_ROW if not case.check.judges_discovery]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


@on_each(MUSTS, own_id)
def test_a_valid_server_looks_wrong_and_is_spared(entry: Requirement, *, server: Server) -> None:
    rows = select_answering(ROWS_BEHIND_DISCOVERY, [entry.id])
    look_alike = valid_servers.load()[entry.look_alike]
    differs = any(looks_different(server, some, look_alike) for some in (rows[:FEW_ROWS], rows[FEW_ROWS:]))
    assert differs, f"{entry.look_alike} answers {len(rows)} rows as the bundled server does"


@pytest.mark.parametrize("transport", ["", "grpc-"])
def test_classes_called_string_are_read_as_bytes(transport: str, server: Server) -> None:
    golden = ("golden.valid-case-is-answered", "grpc.golden-call-is-answered")
    rows = [
        case
        for case in EVERY_ROW
        if (case.check.id in golden and "class" in case.row.id) or case.row.id == "classes-scores_labelled-brief"
    ]
    over = [case for case in rows if case.check.is_over_grpc == bool(transport)]
    outcomes = [outcome for outcome, _ in judge(server, over, load()[f"{transport}classes-have-datatype-string"])]
    assert [outcome for outcome in outcomes if outcome not in SPARED] == []
    assert Outcome.PASS in outcomes


def looks_different(server: Server, rows: Rows, look_alike: Fault) -> bool:
    """Return whether a valid server answers some rows otherwise than the bundled server; none of them may fail."""
    unusual = list(judge(server, rows, look_alike))
    assert [outcome for outcome, _ in unusual if outcome not in SPARED] == []
    return any(usual != other for usual, other in zip(judge(server, rows, None), unusual, strict=True))


def judge(server: Server, rows: Rows, variation: Fault | None) -> Iterator[tuple[Outcome, list[Any]]]:
    """Yield the outcome of each row, and all that the server answers in it."""
    with ExitStack() as stack:
        if variation:
            stack.enter_context(switch_on(variation))
        server.replace()
        address = stack.enter_context(serve_grpc(server)) if any(check.is_over_grpc for check, _ in rows) else None
        session = stack.enter_context(open_session(server.url, address))
        for case in rows:
            answers: list[Any] = []
            session.target.journal = lambda call, found=answers: found.extend(map(read_answer, call.exchanges))
            yield session.judge(case).outcome, answers
    server.replace()


def read_answer(exchange: Exchange) -> Any:
    """Return what the server sent, without the header that differs between equal answers."""
    return exchange.status, exchange.body, [(name, value) for name, value in exchange.headers if name.lower() != "date"]
