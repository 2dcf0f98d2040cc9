"""What a judge says of a server that turns hostile in one exchange: never that it is right, and of nothing unrelated.

Single rows are judged in this process, against the bundled server behind a proxy; a few whole runs are narrowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.selection import list_profile_rows
from conformance.judging.session import Session
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.exchange import FailureKind
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from tests.hostile import misbehaviours
from tests.hostile.bounds import RunResult, expect_within, run
from tests.hostile.misbehaviours.bodies import NASTY
from tests.hostile.misbehaviours.rows import make_answer, make_head
from tests.hostile.proxy import (
    HostileProxy,
    Misbehaviour,
    Turn,
    Wire,
    match_exchange,
    match_from,
    match_from_word,
    match_word,
    run_hostile_proxy,
)
from tests.support.tables import on_each, own_name

# What an answer that came whole may be said to lack; of one that did not, only the row's own requirement is missed.
OF_ANSWERS = {"HTTP-LENGTH", "OIP-JSON", "OIP-OUTPUT-MEMBERS", "OIP-OUTPUTS-ALL", "OIP-SHAPE"}
ALIVE = "OIP-ALIVE"
UNANSWERED = {FailureKind.TIMEOUT, FailureKind.CLOSED, FailureKind.BROKEN}
ROWS = {f"{case.check.id}[{case.row.id}]": case for case in list_profile_rows("certify")}
ANSWERED = "ordering.request-follows-its-json[INT64-BOOL-FP32-BYTES]"
REFUSED = "sizes.wrong-size-is-refused[last-byte-missing]"


@pytest.fixture(scope="module")
def peer(small: str) -> Iterator[HostileProxy]:
    with run_hostile_proxy(small, lambda _: None) as found:
        yield found


@pytest.fixture(scope="module")
def discovery_result(small: str) -> DiscoveryResult:
    with Session(Target(Settings(small))) as session:
        return session.discover()


def judged(
    peer: HostileProxy, discovery_result: DiscoveryResult, row: Case, does: Misbehaviour, at: Turn
) -> CheckResult:
    """Judge one row against a peer that is hostile at a turn of it."""
    peer.misbehaves, peer.at = does, at
    peer.rewind()
    settings = Settings(peer.url, timeout=1.5, max_answer=3_000_000)
    with Session(Target(settings), discovery_result) as session:
        return session.judge(row)


@on_each(misbehaviours.ROWS, own_name)
def test_misbehaviour_fails_requirement_of_row(
    misbehaviour: misbehaviours.Row, *, peer: HostileProxy, discovery_result: DiscoveryResult
) -> None:
    result = judged(
        peer, discovery_result, ROWS[ANSWERED], misbehaviour.does, match_exchange(1)
    )  # 0 asks whether the model answers
    assert peer.turned == 1
    if set(misbehaviour.status) & set(BUSY_STATUSES):  # asked again, a server that was busy answers
        assert result.outcome is Outcome.PASS
        return
    assert result.outcome is Outcome.FAIL
    assert result.failure is not None
    is_whole = 200 in misbehaviour.status and (not misbehaviour.kinds or misbehaviour.may_be_whole)
    related = {*result.requirements, *(OF_ANSWERS if is_whole or 204 in misbehaviour.status else ())}
    assert result.failure.requirement in related


@on_each(misbehaviours.ROWS, own_name)
def test_a_row_that_waits_for_a_refusal_takes_nothing_else_for_one(
    misbehaviour: misbehaviours.Row, *, peer: HostileProxy, discovery_result: DiscoveryResult
) -> None:
    result = judged(peer, discovery_result, ROWS[REFUSED], misbehaviour.does, match_exchange(1))
    # A status of 500 and more is a refusal, too, for which another row advises. A coded answer is the honest refusal.
    is_refusal = any(status is not None and status >= 400 for status in misbehaviour.status)
    is_refusal = is_refusal or misbehaviour.name == "codes-its-honest-answer"
    assert peer.turned == 1
    assert (result.outcome is Outcome.PASS) == is_refusal, result.message
    if result.failure is not None:
        is_answered = any(misbehaviour.status) or UNANSWERED.isdisjoint(misbehaviour.kinds)
        is_silent = not is_answered and UNANSWERED.issuperset(misbehaviour.kinds)
        others = () if is_silent else result.requirements
        assert result.failure.requirement in (*others, ALIVE if is_answered else "OIP-ERROR")


# --- whole runs -------------------------------------------------------------------------------------------------------


def ended(small: str, folder: Path, does: Misbehaviour, at: Turn, *arguments: str) -> RunResult:
    with run_hostile_proxy(small, does, at) as peer:
        found = run(folder, f"--target-url={peer.url}", "--target-timeout=1", *arguments)
    expect_within(found)
    return found


def resets(wire: Wire) -> None:
    wire.reset()


def redirects(wire: Wire) -> None:
    wire.send(make_answer(302, "Location: /v2", "Connection: close"))


def floods(wire: Wire) -> None:
    wire.send(make_head(200, "Connection: close"))
    while True:
        wire.send(bytes(1_000_000))


def gives_nasty_errors(wire: Wire) -> None:
    body = ('{"error":"%s","outputs":[{"name":"%s"}]}' % (NASTY, NASTY)).encode()  # noqa: UP031
    wire.send(
        make_answer(400, f"X-{NASTY[-1:].isascii()}: 1", "Content-Type: text/plain", "Connection: close", body=body)
    )


def test_a_proxy_that_only_passes_on_is_not_seen(small: str, tmp_path: Path) -> None:
    found = ended(small, tmp_path, resets, lambda *_: False, "-k", "request-follows-its-json")
    assert (found.status, found.failed()) == (0, {})


def test_redirects_alone_are_no_server_to_judge(small: str, tmp_path: Path) -> None:
    found = ended(small, tmp_path, redirects, match_from(0))
    assert (found.status, found.verdict, found.failed()) == (6, "incomplete", {})


def test_an_endless_flood_ends_the_run(small: str, tmp_path: Path) -> None:
    found = ended(small, tmp_path, floods, match_word(b"/infer"))
    assert found.verdict != "conformant"
    assert "never ends an answer" in found.why


def test_control_characters_are_escaped_in_all_outputs(small: str, tmp_path: Path) -> None:
    wanted = ("--conformance-report=r.html", "--conformance-report=r.md", "--junitxml=j.xml")
    in_rows = match_from_word(5, b"/multi/infer")  # behind the requests that ask whether the model answers
    found = ended(small, tmp_path, gives_nasty_errors, in_rows, "-k", "request-follows-its-json", "-vv", *wanted)
    assert found.failed()
    names = ("r.html", "r.md", "j.xml", "report.json")
    page, markdown, *others = [(tmp_path / name).read_text() for name in names]
    for text in (found.output, page, markdown, *others):
        assert not {"\x1b", "\x07", "\x00", "\u202e", "\u2028"} & set(text)
    for shown in (page, MarkdownIt("commonmark").render(markdown)):
        assert "&lt;script&gt;alert" in shown
        assert "<script>alert" not in shown
        assert 'href="javascript:' not in shown
