"""What watched clients come to: a result for each client and requirement, by level, with the first wrong request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from conformance.clients.recording.records import RecordedAnswer, RecordedExchange
from conformance.clients.rules.rule import Violation
from conformance.clients.traffic import CLAIMS, MAX_CLIENTS, OTHERS, UNNAMED, Traffic, get_check_id, list_requirements
from conformance.judging.client_failure import describe_violation
from conformance.judging.conclusion import conclude_watch, summarize_clients
from conformance.spec import ledger
from conformance.spec.extensions import GRPC, HTTP, TRANSPORTS
from conformance.spec.ledger import Level
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.wire.client_request import ClientRequest
from conformance.wire.grpc_request import GRPC_METHOD
from tests.support.bare_requests import BINARY, JSON_PART, PATH

OCTETS = "application/octet-stream"
LENGTH = "CLIENT-SENDS-HEADER-LENGTH"
CALL = b"\n\x01m"  # model_name: "m"


def sent(
    number: int, agent: str = "a/1", body: bytes = BINARY, length: int = len(JSON_PART), kind: str = OCTETS
) -> RecordedExchange:
    headers = [("User-Agent", agent)] if agent else []
    headers += [("Content-Type", kind), ("Inference-Header-Content-Length", str(length))]
    headers += [("Content-Length", str(len(body))), ("X-Name", f"n{number}")]
    return RecordedExchange(number, ClientRequest("POST", PATH, tuple(headers), body))


def called(number: int, agent: str = "g/1") -> RecordedExchange:
    path = "/inference.GRPCInferenceService/ModelInfer"
    return RecordedExchange(number, ClientRequest(GRPC_METHOD, path, (("user-agent", agent),), CALL))


def traffic(*requests: RecordedExchange, header: str | None = None, strict: bool = False) -> Traffic:
    made = Traffic(partial(describe_violation, find_url=lambda _: "http://h"), header, strict=strict)
    for one in requests:
        made.add_request(one)
        made.add_answer(one)
    return made


def find_result(results: Sequence[CheckResult], requirement: str, row: str) -> CheckResult:
    (found,) = [one for one in results if one.requirements == [requirement] and one.row == row]
    return found


def test_every_requirement_that_a_request_alone_can_miss_is_watched() -> None:
    of_clients = {entry.name for entry in ledger.load_for_party(ledger.Party.CLIENT)}
    sending = {name for name in of_clients if name.startswith("CLIENT-SENDS-")}
    meant = {
        "CLIENT-SENDS-VALUES",
        "CLIENT-SENDS-OUTPUTS",
        "CLIENT-SENDS-LITTLE-ENDIAN",
        "CLIENT-SENDS-OVERRIDE",
        "CLIENT-SENDS-MINUS-ZERO",
    }
    observed = {entry.name for entry in ledger.load_for_party(ledger.Party.CLIENT) if entry.level is Level.OBSERVE}
    assert set(CLAIMS) == sending - meant | observed
    ids = [get_check_id(entry.id) for transport in TRANSPORTS for entry in list_requirements(transport)]
    assert len(set(ids)) == len(ids) >= 30
    assert all(one.startswith("client.watched-") for one in ids)


def test_a_result_counts_requests_and_shows_the_first_wrong_one() -> None:
    wrong = sent(2, length=len(JSON_PART) - 1)
    results = traffic(sent(1), wrong, sent(3), sent(4, length=1)).list_results()
    found = find_result(results, LENGTH, "a/1")
    assert found.outcome is Outcome.FAIL
    assert found.id == "client.watched-header-counts-the-json"
    assert "2 of 4 requests, first in request 2" in found.message
    assert found.failure is not None
    assert found.failure.requirement == LENGTH
    assert found.failure.sent.startswith("request 2, POST ")
    assert found.failure.bytes[1].startswith(f"{len(JSON_PART) - 1:04x}  7d 01 00 00 00 ")
    assert found.failure.bytes[1].endswith("<- JSON")
    assert found.failure.evidence is not None
    assert found.failure.evidence["request"]["length"] == len(BINARY)


def test_requirement_without_matching_request_is_not_applicable() -> None:
    results = traffic(sent(1)).list_results()
    raw = find_result(results, "CLIENT-SENDS-RAW", "a/1")
    assert raw.outcome is Outcome.NOT_APPLICABLE
    assert raw.has_reason(ReasonKind.NOT_FOR_THIS_TARGET)
    assert find_result(results, LENGTH, "a/1").outcome is Outcome.PASS


@pytest.mark.parametrize(("strict", "outcome"), [(False, Outcome.ADVISORY), (True, Outcome.FAIL)])
def test_a_should_advises_unless_that_is_to_fail(strict: bool, outcome: Outcome) -> None:
    results = traffic(sent(1, kind="text/plain"), strict=strict).list_results()
    assert find_result(results, "CLIENT-SENDS-CONTENT-TYPE", "a/1").outcome is outcome


def test_clients_are_told_apart_by_user_agent_or_a_header() -> None:
    requests = sent(1), sent(2, agent="b/2", length=1), sent(3, agent=""), called(4), called(5, agent="b/2")
    found = traffic(*requests)
    assert {name: sender.requests for name, sender in found.clients.items()} == {
        "a/1": {HTTP: 1},
        "b/2": {HTTP: 1, GRPC: 1},
        UNNAMED: {HTTP: 1},
        "g/1": {GRPC: 1},
    }
    outcomes = {one.row: one.outcome for one in found.list_results() if one.requirements == [LENGTH]}
    assert outcomes == {"a/1": Outcome.PASS, "b/2": Outcome.FAIL, UNNAMED: Outcome.PASS}
    assert list(traffic(*requests, header="x-name").clients) == ["n1", "n2", "n3", UNNAMED]


def test_names_are_safe_short_and_not_endlessly_many() -> None:
    hostile = sent(0, agent="\x1b[31m\u202e" + "x" * 500)
    found = traffic(hostile, *(sent(number, agent=f"c{number}") for number in range(1, MAX_CLIENTS + 50)))
    names = list(found.clients)
    assert len(names) == MAX_CLIENTS + 1
    assert names[-1] == OTHERS
    assert all(name.isprintable() and len(name) < 130 for name in names)
    assert found.clients[OTHERS].count == 50


def test_only_the_first_miss_of_each_kind_is_told() -> None:
    made = traffic()
    wrong = [sent(number, length=1) for number in range(1, 4)]
    assert [[first.violation.requirement for first in made.add_request(one)] for one in wrong] == [[LENGTH], [], []]
    assert [[first.failure is not None for first in made.add_answer(one)] for one in wrong] == [[True], [], []]


def test_a_miss_is_shown_with_its_answer_and_without_one() -> None:
    made = traffic()
    wrong = sent(1, length=1)
    made.add_request(wrong)
    (found,) = [one for one in made.list_results() if one.failure]
    assert found.failure is not None
    assert found.failure.answer == "no answer arrived"
    answered = replace(wrong, answer=RecordedAnswer(400, (), b'{"error": "no"}'))
    failure = describe_violation(answered, Violation(LENGTH, "1", "2", None), lambda _: "http://h")
    assert failure.answer == 'HTTP 400, {"error": "no"}'


def test_what_is_no_inference_is_not_judged() -> None:
    made = traffic(RecordedExchange(1, ClientRequest("GET", "/v2/health/ready", (("User-Agent", "a"),))))
    assert made.clients == {}
    assert made.list_results() == []


def test_a_body_that_was_not_kept_is_judged_by_its_head_alone() -> None:
    received = replace(sent(1).received, body=b"")
    results = traffic(RecordedExchange(1, received, is_whole=False)).list_results()
    judged = [one.requirements[0] for one in results if one.outcome is not Outcome.NOT_APPLICABLE]
    assert judged == ["CLIENT-SENDS-POST"]
    lower = replace(received, method="PUT")
    assert [
        one.outcome for one in traffic(RecordedExchange(1, lower, is_whole=False)).list_results() if one.failure
    ] == ["fail"]


def test_a_call_is_shown_in_words_and_bytes() -> None:
    miss = Violation("CLIENT-SENDS-MEMBERS/grpc", "a name", "none", 1)
    failure = describe_violation(called(7), miss, lambda _: "grpc://h")
    assert failure.sent == 'request 7, ModelInfer over gRPC, 3 bytes: model_name: "m"'
    assert failure.bytes == [f"0001  01 6d{'':20}.m   <- byte 1 of the message"]


def test_a_raw_request_is_shown_where_its_tensor_is_wrong() -> None:
    headers = (("Inference-Header-Content-Length", "0"), ("Content-Type", OCTETS))
    raw = RecordedExchange(1, ClientRequest("POST", PATH, headers, b"\x05\0\0\0ab"))
    failure = describe_violation(raw, Violation("CLIENT-SENDS-RAW", "a length of 2", "5", 4), lambda _: "http://h")
    assert failure.bytes == [f"0004  61 62{'':20}ab   <- byte 4 of the tensor"]


@pytest.mark.parametrize(
    ("requests", "stopped", "verdict", "complete"),
    [
        ((), "", "incomplete", False),
        ((sent(1),), "", "partial", True),  # it says nothing of how answers are read
        ((sent(1),), "interrupted", "incomplete", False),
        ((sent(1, length=1),), "", "nonconformant", True),
        ((sent(1, length=1),), "interrupted", "nonconformant", False),
        ((called(1),), "", "partial", True),
    ],
)
def test_the_verdict_is_by_the_rules_for_servers(
    requests: tuple[RecordedExchange, ...], stopped: str, verdict: str, complete: bool
) -> None:
    conclusion = conclude_watch(traffic(*requests).list_results(), None, stopped)
    assert conclusion.verdict.verdict == verdict
    assert conclusion.is_complete is complete
    assert conclusion.verdict.why
    assert conclusion.coverage.has_gap is bool(requests)


@pytest.mark.parametrize(("request_", "interoperable"), [(sent(1), None), (sent(1, length=1), False)])
def test_a_watch_that_was_cut_short_knows_who_is_not_interoperable(
    request_: RecordedExchange, interoperable: bool | None
) -> None:
    assert conclude_watch(traffic(request_).list_results(), None, "interrupted").verdict.interoperable is interoperable


@pytest.mark.parametrize(
    ("names", "name", "version"),
    [
        (["python-requests/2.31"], "python-requests", "2.31"),
        (["grpc-python/1.85 grpc-c/58 (linux)"], "grpc-python", "1.85 grpc-c/58 (linux)"),
        (["my client"], "my client", None),
        (["a/1", "b/2"], "a/1, b/2", None),
        ([], None, None),
    ],
)
def test_a_report_names_the_clients(names: list[str], name: str | None, version: str | None) -> None:
    discovery_result = summarize_clients(traffic(sent(1)).list_results(), names)
    assert (discovery_result.name, discovery_result.version) == (name, version)
    assert set(discovery_result.offered) == {"protocol", "binary_tensor_data"}


# --- what a client makes of answers -----------------------------------------------------------------------------------


def observe(*answers: tuple[bytes, RecordedAnswer | None], over_grpc: bool = False) -> dict[str, str]:
    """Return what is observed of a client whose requests, told apart by their bodies, have these answers."""
    made = traffic()
    for number, (body, answer) in enumerate(answers, 1):
        one = called(number) if over_grpc else sent(number, body=body)
        made.add_request(one)
        one.answer = answer
        made.add_answer(one)
    return {one.requirements[0]: one.observation for one in made.list_results() if one.outcome is Outcome.OBSERVED}


OTHER = BINARY[:-1] + b"\x7f"
FINE, BUSY = RecordedAnswer(200), RecordedAnswer(503)


def test_a_request_that_comes_again_after_an_error_is_observed() -> None:
    again = [(BINARY, BUSY)] * 4
    expected = {"CLIENT-REPEATS": "the client repeated a request 3 times after status 503"}
    assert observe(*again) == observe((OTHER, FINE), *again, (OTHER, FINE)) == expected
    unanswered = RecordedAnswer(trouble="the connection ended without an answer")
    assert observe((BINARY, unanswered), (BINARY, FINE)) == {
        "CLIENT-REPEATS": "the client repeated a request 1 time after no answer"
    }
    failed = RecordedAnswer(503, code="UNAVAILABLE")
    assert observe((CALL, failed), (CALL, failed), over_grpc=True) == {
        "CLIENT-REPEATS/grpc": "the client repeated a request 1 time after UNAVAILABLE"
    }


@pytest.mark.parametrize(
    "answers",
    [
        [(BINARY, FINE), (BINARY, FINE)],
        [(BINARY, BUSY), (OTHER, BUSY)],
        [(BINARY, BUSY), (OTHER, FINE), (BINARY, FINE)],
    ],
)
def test_other_requests_are_no_repetitions(answers: list[tuple[bytes, RecordedAnswer | None]]) -> None:
    assert observe(*answers) == {}


def test_a_reset_on_a_right_answer_is_observed() -> None:
    made = traffic()
    for number, answer in enumerate((FINE, BUSY, RecordedAnswer(200, trouble="cut short")), 1):
        one = sent(number)
        made.add_request(one)
        one.answer = answer
        made.add_answer(one)
        made.add_reset(one)
    found = find_result(made.list_results(), "CLIENT-LEAVES", "a/1")
    assert found.observation == "the client reset the connection 1 time after a successful answer"
    assert conclude_watch(made.list_results(), None, "").verdict.verdict == "partial"
