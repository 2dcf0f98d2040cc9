"""A server that ends: the row that is failed for it, once; and a network that fails, for which no row is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if
from conformance.judging.judge import Judge
from conformance.spec.check import Case, Check, Row
from conformance.spec.extensions import HTTP
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.verdict import conclude
from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.restart import MAX_RUNS, Restart
from conformance.transport.settings import Settings, make_settings
from conformance.transport.target import MIN_UNANSWERED_LOOKS, Target
from conformance.transport.target_client import MAX_LOOKS, make_simple_request
from conformance.transport.unreachable import TargetLostError, UnreachableError
from conformance.wire.request import Message

LIVE = Message("/v2/health/live", method="GET")
CLOSED = TransportFailure(FailureKind.CLOSED, "connection closed without an answer")
ANSWERED, BROKEN = Exchange(0, LIVE, "http://h", status=200), Exchange(0, LIVE, "http://h", failure=CLOSED)


class EndingTarget(Target):
    """A target that has these exchanges, and then no more."""

    def __init__(self, *exchanges: Exchange, is_refused: bool = True) -> None:
        super().__init__(Settings("http://h", timeout=0.01))
        self.left, self.is_refused = list(exchanges), is_refused

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        if not self.left:
            raise UnreachableError("cannot connect to http://h: gone", is_refused=self.is_refused)
        return replace(self.left.pop(0), message=message)


def twice(target: Target) -> None:
    target.send(LIVE)
    target.send(LIVE)


def sending(target: Target) -> None:
    target.send(LIVE)


def looking(target: Target) -> None:
    expect(target.send(LIVE)).answered()


def looking_twice(target: Target) -> None:
    with block_if(lambda: not target.send(LIVE).succeeded, "nothing is answered"):
        looking(target)


def judge_bodies(target: Target, *bodies: Callable[[Target], None], several: bool = False) -> list[CheckResult]:
    discovery_result = DiscoveryResult(offered={"binary_tensor_data": "listed"})
    judge = Judge(target, discovery_result, is_one_of_several=several)
    return [
        judge(case)
        for k, body in enumerate(bodies)
        for case in Check(f"state.{k}", ("OIP-ANSWER",), None, (Row(""),), body).cases
    ]


def read_message(result: CheckResult) -> str:
    if result.failure is not None:
        return f"{result.outcome} {result.failure.requirement}"
    return f"{result.outcome} {result.reason.kind}" if result.reason else str(result.outcome)


GONE = f"{Outcome.ERROR} {ReasonKind.TARGET_LOST}"
OWN, ALIVE, ALIVE_LEGAL = "fail OIP-ANSWER", "fail OIP-ALIVE", "fail OIP-ALIVE-LEGAL"


@pytest.mark.parametrize(
    ("exchanges", "bodies", "expected", "since"),
    [
        # the row sees that its request is not answered
        ([ANSWERED, BROKEN], [looking, looking, looking, looking], ["pass", ALIVE_LEGAL, GONE, GONE], "state.1"),
        # it does not look
        ([ANSWERED, BROKEN], [looking, twice, looking, looking], ["pass", ALIVE_LEGAL, GONE, GONE], "state.1"),
        ([ANSWERED, BROKEN], [sending, sending, looking], ["pass", ALIVE_LEGAL, GONE], "state.1"),
        ([ANSWERED, BROKEN], [twice, looking, looking], [ALIVE_LEGAL, GONE, GONE], "state.0"),
        # it looks, and asks for more before it says so
        ([ANSWERED, BROKEN], [looking, looking_twice, looking], ["pass", ALIVE_LEGAL, GONE], "state.1"),
        # all was answered, and nobody is there any more: somebody may have stopped it
        ([ANSWERED, ANSWERED], [looking, looking, looking, looking], ["pass", "pass", GONE, GONE], ""),
        ([ANSWERED], [twice, looking], [GONE, GONE], ""),
        ([ANSWERED, replace(ANSWERED, status=400)], [looking, looking, looking], ["pass", OWN, GONE], "state.1"),
        # nothing was ever answered
        ([], [looking, looking], [GONE, GONE], ""),
    ],
)
def test_one_row_is_failed_for_the_end(
    exchanges: list[Exchange], bodies: list[Callable[[Target], None]], expected: list[str], since: str
) -> None:
    results = judge_bodies(EndingTarget(*exchanges), *bodies)
    assert list(map(read_message, results)) == expected
    reasons = {result.reason.subject for result in results if result.reason}
    assert reasons <= {"cannot connect to http://h: gone" + (f", since {since}" if since else "")}


OF_A_ROW = [("HTTP-KEEPALIVE", ALIVE_LEGAL), ("OIP-TWICE", ALIVE), ("OIP-REFUSAL", ALIVE), ("OIP-ID", ALIVE_LEGAL)]


def judge_in_rows_of(requirement: str, target: Target, *bodies: Callable[[Target], None]) -> list[CheckResult]:
    judge = Judge(target, DiscoveryResult(offered={"binary_tensor_data": "listed"}))
    return [judge(Case(Check("state.0", (requirement,), None, (Row(""),), body), Row(""))) for body in bodies]


@pytest.mark.parametrize(("own", "named"), OF_A_ROW)
def test_what_is_sent_says_whether_it_is_legal(own: str, named: str) -> None:
    results = judge_in_rows_of(own, EndingTarget(ANSWERED, BROKEN), sending, sending, sending)
    assert list(map(read_message, results)) == ["pass", named, GONE]


@pytest.mark.parametrize(("own", "interoperable"), [("OIP-ID", False), ("OIP-REFUSAL", None)])
def test_who_ends_after_a_legal_request_is_not_interoperable(own: str, interoperable: bool | None) -> None:
    results = judge_in_rows_of(own, EndingTarget(ANSWERED, BROKEN), looking, sending, sending)
    assert conclude(results, lost="it is gone").interoperable is interoperable


# --- a server that comes back -----------------------------------------------------------------------------------------


BAD_GATEWAY = Exchange(0, LIVE, "http://h", status=502)
GONE_FOR = MAX_LOOKS + 2  # connections that something accepts for a server that is gone


class RestartedTarget(Target):
    """A target that a supervisor restarts: each request ends it if `ends` says so, for some connections."""

    def __init__(
        self, ends: Callable[[int], bool], *, instead: Exchange | None = None, down: int | None = None
    ) -> None:
        super().__init__(Settings("http://h", timeout=2))
        self.ends, self.requests, self.instead, self.gone_for = ends, 0, instead, 0
        self.down = (GONE_FOR if instead else 1) if down is None else down
        self.send(make_simple_request())

    def pause(self, seconds: float) -> None:
        """Do not wait: connections are counted."""

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        if self.gone_for:
            self.gone_for -= 1
            if self.instead is None:
                raise UnreachableError("cannot connect", is_refused=True) from ConnectionRefusedError()
            return replace(self.instead, message=message)
        self.requests += message.path == LIVE.path
        if message.path == LIVE.path and self.ends(self.requests):
            self.gone_for = self.down
            return replace(self.instead or BROKEN, message=message)
        return replace(ANSWERED, message=message)


@pytest.mark.parametrize(("own", "named"), OF_A_ROW)
@pytest.mark.parametrize("body", [sending, looking])
@pytest.mark.parametrize(("instead", "requests"), [(None, 3), (BROKEN, 4), (BAD_GATEWAY, 4)])
def test_who_is_restarted_after_its_end_fails_the_row(
    body: Callable[[Target], None], own: str, named: str, instead: Exchange | None, requests: int
) -> None:
    target = RestartedTarget(lambda _: True, instead=instead)
    (result,) = judge_in_rows_of(own, target, body)
    assert read_message(result) == f"fail {named.removeprefix('fail ')}"
    assert (target.requests, target.lost) == (requests, None)


@pytest.mark.parametrize("instead", [BROKEN, BAD_GATEWAY])
def test_a_supervisor_that_is_fast_hides_no_end(instead: Exchange) -> None:
    target = RestartedTarget(lambda _: True, instead=instead, down=MIN_UNANSWERED_LOOKS)
    assert list(map(read_message, judge_in_rows_of("OIP-ID", target, looking))) == [ALIVE_LEGAL]


@pytest.mark.parametrize(
    ("ends", "instead", "down"),
    [
        (lambda _: True, None, 0),  # closes each connection, and lives
        (lambda _: True, BROKEN, MIN_UNANSWERED_LOOKS - 1),  # and closes the next connections
        (lambda _: True, BAD_GATEWAY, 0),
        (lambda count: count == 1, None, 1),  # restarts by itself in this moment
        (lambda count: count <= 2, None, 1),  # and once more
        (lambda count: count <= 3, BROKEN, GONE_FOR),
    ],
)
def test_who_closes_connections_or_restarts_has_not_ended(
    ends: Callable[[int], bool], instead: Exchange | None, down: int
) -> None:
    for body, expected in ((sending, "pass"), (looking, "fail OIP-ID")):
        (result,) = judge_in_rows_of("OIP-ID", RestartedTarget(ends, instead=instead, down=down), body)
        assert read_message(result) == expected


@pytest.mark.parametrize("instead", [BROKEN, BAD_GATEWAY])
def test_who_finds_a_dead_server_is_asked_again(instead: Exchange) -> None:
    """The server has ended between two requests: no row is accused."""
    target = RestartedTarget(lambda _: False, instead=instead)
    target.gone_for = GONE_FOR
    assert list(map(read_message, judge_in_rows_of("OIP-ID", target, looking, looking))) == ["pass", "pass"]


class LimitedTarget(RestartedTarget):
    """A target that answers so many connections in a time, and no others."""

    left = 3.0

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        self.left += 1 / (2 * MAX_LOOKS)  # time passes with every connection
        if self.left < 1:
            return replace(self.instead or BROKEN, message=message)
        self.left -= 1
        return replace(ANSWERED, message=message)


@pytest.mark.parametrize("instead", [BROKEN, BAD_GATEWAY, replace(BAD_GATEWAY, status=503)])
def test_who_limits_the_rate_of_requests_has_not_ended(instead: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    target = LimitedTarget(lambda _: False, instead=instead, down=0)
    results = judge_in_rows_of("OIP-ID", target, *[sending] * 6)
    assert set(map(read_message, results)) == {"pass"}


def test_who_answers_one_request_in_many_has_not_ended() -> None:
    """A limit on the rate of requests leaves others unanswered as well, which the control shows."""
    limited = [ANSWERED, *[BROKEN] * (MAX_LOOKS + 1)]
    assert not EndingTarget(*limited, *limited).ends_server(LIVE)


def test_no_row_is_failed_where_the_network_fails() -> None:
    results = judge_bodies(EndingTarget(ANSWERED, is_refused=False), twice, looking)
    assert list(map(read_message, results)) == [GONE, GONE]


def test_a_request_beside_those_of_others_is_not_blamed_for_its_own_requirement() -> None:
    for body in (looking, twice, looking_twice):
        results = judge_bodies(EndingTarget(ANSWERED, BROKEN), looking, body, looking, several=True)
        assert list(map(read_message, results)) == ["pass", ALIVE, GONE]
    lives = [ANSWERED] * 3  # also when it is asked whether it does
    answered = judge_bodies(EndingTarget(ANSWERED, BROKEN, *lives), looking, looking, looking, several=True)
    assert list(map(read_message, answered)) == ["pass", OWN, "pass"]


class CommandedTarget(Target):
    """A target that ends at each request but GET v2 and health, and is there again once the command has run."""

    def __init__(self, started: Path, command: str) -> None:
        super().__init__(make_settings("http://h", timeout=0.1, restart=command))
        self.started, self.answered = started, {HTTP}

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        if not self.started.exists():
            raise UnreachableError("cannot connect", is_refused=True) from ConnectionRefusedError()
        if message.path == LIVE.path:
            self.started.unlink()
            return replace(BROKEN, message=message)
        return replace(ANSWERED, message=message)


@pytest.mark.parametrize(
    ("command", "expected", "lost"),
    [
        ("touch started", ["fail OIP-ALIVE-LEGAL"] * 2, None),
        ("", ["fail OIP-ALIVE-LEGAL", GONE], "cannot connect"),
        (
            "echo no; exit 3",
            ["fail OIP-ALIVE-LEGAL", GONE],
            "cannot connect; the restart command ended with exit status 3",
        ),
    ],
)
def test_the_restart_command_starts_a_target_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, expected: list[str], lost: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "started").touch()
    target = CommandedTarget(tmp_path / "started", command)
    assert list(map(read_message, judge_in_rows_of("OIP-ID", target, sending, sending))) == expected
    assert target.lost == lost
    assert target.settings.restart.output == ("no\n" if "no" in command else "")
    assert command not in repr(target.settings) or not command


def test_a_restart_command_runs_once_for_all_sessions_and_not_forever(tmp_path: Path) -> None:
    restart = Restart(f"echo >> {tmp_path / 'ran'}")
    assert restart.run(0)
    assert restart.run(0)  # another session, which saw the same crash
    assert (tmp_path / "ran").read_text() == "\n"
    restart.runs = MAX_RUNS
    assert not restart.run(MAX_RUNS)
    assert (tmp_path / "ran").read_text() == "\n"


# --- credentials ------------------------------------------------------------------------------------------------------


TOKEN = "tok-Sup3rS3cret"  # noqa: S105 - made up


def _lost(*_: object) -> None:
    raise TargetLostError(f"cannot connect to proxy with {TOKEN}")


def test_a_reason_for_programs_holds_no_credentials_either() -> None:
    target = Target(Settings("http://127.0.0.1:9", headers=(("Authorization", f"Bearer {TOKEN}"),)))
    check = Check("state.made", ("OIP-ALIVE",), None, (Row(""),), _lost, over=(HTTP,))
    discovery_result = DiscoveryResult()
    discovery_result.offered["protocol"] = discovery_result.offered["binary_tensor_data"] = "listed"
    result = Judge(target, discovery_result)(Case(check, Row("")))
    assert result.reason is not None
    assert result.reason.kind is ReasonKind.TARGET_LOST
    assert result.reason.subject == f"cannot connect to proxy with {'*' * len(TOKEN)}"
    assert TOKEN not in result.message
