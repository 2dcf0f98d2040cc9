"""Rows that name usual clients: a server that tells them from the judge is found; one that is only flaky is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from conformance.judging.selection import ROLES, list_area_rows
from conformance.judging.session import DISCOVERY_SCOPE, Session
from conformance.report.terminal import format_header
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import client_names, settings
from conformance.transport.client_names import COMMON_NAMES, OWN_CLIENT, choose_names, choose_seed
from conformance.transport.exchange import Call
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from reference_server import faults
from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, switch_on
from tests.support import valid_servers
from tests.support.sightings import Server
from tests.support.sightings import run_server as in_process

ROWS = list_area_rows("ordering", ROLES)[::3]
CHUNKED_ROWS = [
    case for case in list_area_rows("state", ROLES) if case.check.id == "state.many-small-chunks-are-one-body"
]
SEED = 7


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with in_process() as started:
        yield started


class JudgingResult:
    """What came of rows, and which calls were made for it."""

    def __init__(
        self, server: Server, seed: int | None, wrong: Fault | None = None, rows: Sequence[Case] = ROWS
    ) -> None:
        self.calls: list[Call] = []
        with switch_on(wrong or Fault("", (), (), lambda: None)):
            server.replace()
            target = Target(settings.make_settings(server.url))
            target.journal = self.calls.append
            with Session(target, seed=seed) as session:
                self.discovery_result = session.discover()
                self.results = [session.judge(case) for case in rows]
        server.replace()

    @property
    def failed(self) -> dict[str, str]:
        """Row -> the requirement that it fails."""
        return {f"{one.id}[{one.row}]": requirement_of(one) for one in self.results if one.outcome is Outcome.FAIL}

    @property
    def names(self) -> dict[str, set[str | None]]:
        """Scope -> the clients that its requests name; None is the suite."""
        found: dict[str, set[str | None]] = {}
        for call in self.calls:
            found.setdefault(call.scope, set()).update(message.header("User-Agent") for message in call.messages)
        return found


def requirement_of(result: CheckResult) -> str:
    return result.failure.requirement if result.failure else ""


def test_each_row_names_the_client_that_the_seed_chooses(server: Server) -> None:
    honest = JudgingResult(server, SEED)
    assert not honest.failed
    assert not [scope for scope in honest.names if ", again " in scope]
    names = honest.names
    assert names.pop(DISCOVERY_SCOPE) == {None, *(client.http for client in COMMON_NAMES.values())}
    for scope, found in names.items():
        client = choose_names(SEED, scope)[0]
        is_row = scope.endswith("]") and scope in {f"{check.id}[{row.id}]" for check, row in ROWS}
        assert found == ({client.http} if is_row and client is not OWN_CLIENT else {None}), scope
    assert set().union(*JudgingResult(server, None).names.values()) == {None}


def test_one_row_in_four_keeps_the_name_of_the_suite() -> None:
    chosen = [choose_names(SEED, f"row {k}") for k in range(4000)]
    assert 900 < sum(first is OWN_CLIENT for first, _ in chosen) < 1100
    assert {first for first, _ in chosen} == {OWN_CLIENT, *COMMON_NAMES.values()}
    assert all((first is OWN_CLIENT) is (second is not OWN_CLIENT) for first, second in chosen)
    assert chosen != [choose_names(SEED + 1, f"row {k}") for k in range(4000)]


def test_who_serves_the_judge_alone_fails_by_that(server: Server) -> None:
    wrong = JudgingResult(server, SEED, faults.load()["numbers-are-right-for-the-judge-alone"])
    assert set(wrong.failed.values()) == {"OIP-CLIENT-NAME"}
    assert all(choose_names(SEED, scope)[0] is not OWN_CLIENT for scope in wrong.failed)
    message = next(one.message for one in wrong.results if one.outcome is Outcome.FAIL)
    assert f"the same outcome as with the User-Agent {OWN_CLIENT.http}" in message


@pytest.mark.parametrize("seed", [0, 2])  # whose names let reads of one row end in sizes of chunks, and of another not
def test_a_longer_name_is_not_blamed_for_where_reads_end(server: Server, seed: int) -> None:
    wrong = faults.load()["chunk-size-in-two-reads-refused"]
    assert set(JudgingResult(server, seed, wrong, CHUNKED_ROWS).failed.values()) == {"HTTP-CHUNKED"}


def test_who_reads_chunks_of_the_judge_alone_fails_by_that(server: Server) -> None:
    @fault("app.Service.infer")
    async def wrong(original: Any, service: Any, http: Any) -> Any:
        if "transfer-encoding" in http.headers and http.headers["User-Agent"] != OWN_CLIENT.http:
            raise InferenceError("this client sends no chunks", status=400)
        return await original(service, http)

    assert set(JudgingResult(server, SEED, wrong, CHUNKED_ROWS).failed.values()) == {"OIP-CLIENT-NAME"}


def test_who_serves_everybody_but_the_judge_fails_by_that(server: Server) -> None:
    async def refuse_the_judge(original: Any, service: Any, http: Any) -> Any:
        is_plain = b"outputs" not in await http.body()
        if http.headers["User-Agent"] == OWN_CLIENT.http and not is_plain:
            raise InferenceError("this client is not served", status=403)
        return await original(service, http)

    wrong = JudgingResult(server, SEED, fault("app.Service.infer")(refuse_the_judge))
    assert set(wrong.failed.values()) == {"OIP-CLIENT-NAME"}
    assert all(choose_names(SEED, scope)[0] is OWN_CLIENT for scope in wrong.failed)


def test_no_row_names_a_client_that_the_server_refuses(server: Server) -> None:
    refused = valid_servers.load()["curl-and-requests-are-refused-by-name"]
    judged = JudgingResult(server, SEED, refused)
    assert not judged.failed
    assert judged.discovery_result.refused_clients == {"curl": "HTTP 403", "requests": "HTTP 403"}
    assert [line for line in format_header("http://h", judged.discovery_result, "certify", SEED) if "curl/" in line]
    rows = {case.key for case in ROWS}
    named = set().union(*(names for scope, names in judged.names.items() if scope in rows))
    accepted = {
        client.http for name, client in COMMON_NAMES.items() if name not in judged.discovery_result.refused_clients
    }
    assert named <= {None, *accepted}
    assert len(named) > 3


def test_who_refuses_all_clients_but_the_judge_fails_by_that(server: Server) -> None:
    async def refuse_clients(original: Any, service: Any, http: Any) -> Any:
        if http.headers["User-Agent"] != OWN_CLIENT.http:
            raise InferenceError("this client is not served", status=403)
        return await original(service, http)

    wrong = JudgingResult(server, SEED, fault("app.Service.infer")(refuse_clients))
    assert not wrong.discovery_result.refused_clients
    assert set(wrong.failed.values()) == {"OIP-CLIENT-NAME"}


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7])
def test_who_fails_now_and_then_fails_by_something_else(server: Server, period: int) -> None:
    seen = []

    async def refuse_some(original: Any, service: Any, http: Any) -> Any:
        seen.append(1)
        if len(seen) > 40 and len(seen) % period == 0:
            raise InferenceError("not now", status=400)
        return await original(service, http)

    assert "OIP-CLIENT-NAME" not in JudgingResult(server, SEED, fault("app.Service.infer")(refuse_some)).failed.values()


def test_what_a_server_misses_for_everybody_keeps_its_requirement(server: Server) -> None:
    wrong = faults.load()["binary-outputs-in-reverse"]
    assert JudgingResult(server, SEED, wrong).failed == JudgingResult(server, None, wrong).failed


def test_who_names_the_client_himself_has_that_name_in_every_row() -> None:
    plain, named = Settings("http://h"), Settings("http://h", headers=(("user-agent", "mine"),))
    assert (choose_seed("certify", plain), choose_seed("certify", plain, 5), choose_seed("quick", plain)) == (
        0,
        5,
        None,
    )
    assert choose_seed("certify", named, 5) is None
    assert client_names.DEFAULT_SEED == 0
