"""What becomes of one row of a client: each way in which its body, or the adapter, can end it."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
import pytest

from conformance.clients.adapter import AdapterError, AdapterHangsError, AdapterLostError
from conformance.clients.answers.honest import USUAL
from conformance.clients.answers.honest_calls import CallStyle
from conformance.clients.answers.script import Script
from conformance.clients.client import Client
from conformance.clients.inference import Inference, Introduction, Result
from conformance.clients.peer.peer import Peer
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.judging.client_session import ClientJudge
from conformance.spec.check import Case, Check, Row
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.wire.tensor import Tensor

ONE = Inference("m", (Tensor("IN", "INT32", (1,), np.array([1], "<i4")),))
SCRIPT = Script(lambda inference: inference.inputs, USUAL, CallStyle())


@dataclass
class ScriptedAdapter:
    """An adapter in this process that gives these results, or raises."""

    gives: Sequence[Result] | AdapterError = field(default_factory=lambda: [Result(())])
    introduction: Introduction = field(default_factory=lambda: Introduction("scripted"))

    def infer(self, *_: object, **__: object) -> list[Result]:
        if isinstance(self.gives, AdapterError):
            raise self.gives
        return list(self.gives)

    def close(self) -> None:
        """Nothing was started."""


def asking(client: Client) -> None:
    """A claim."""
    client.infer(ONE, SCRIPT)


def raising(error: Exception) -> Callable[[Client], None]:
    def body(_: Client) -> None:
        """A claim."""
        raise error

    return body


def judged(
    peer: Peer,
    body: Callable[[Client], str | None] = asking,
    adapter: ScriptedAdapter | None = None,
    answers: str = "CLIENT-SENDS-SIZE",
    *,
    over: str = HTTP,
    strict: bool = False,
) -> CheckResult:
    row = Row("row")
    check = Check("client.some-claim", (answers,), None, (row,), body, (over,))
    asked = adapter or ScriptedAdapter()
    return ClientJudge(asked, asked.introduction, peer, strict=strict)(Case(check, row))


def test_a_body_that_returns_is_satisfied(peer: Peer) -> None:
    found = judged(peer)
    assert (found.outcome, found.claim, found.area, found.extension) == (
        Outcome.PASS,
        "A claim.",
        "client",
        "binary_tensor_data",
    )


LEVELS = [("CLIENT-SENDS-SIZE", False, Outcome.FAIL), ("CLIENT-ENDS", False, Outcome.ADVISORY)]
LEVELS += [("CLIENT-ENDS", True, Outcome.FAIL)]


@pytest.mark.parametrize(("requirement", "strict", "outcome"), LEVELS)
def test_outcome_follows_level_of_named_requirement(
    peer: Peer, requirement: str, strict: bool, outcome: Outcome
) -> None:
    unmet = UnmetError("one", "two", requirement=requirement)
    found = judged(peer, raising(unmet), answers="CLIENT-SENDS-VALUES", strict=strict)
    assert found.outcome is outcome
    assert found.failure is not None
    assert (found.failure.requirement, found.failure.sent, found.failure.asked) == (requirement, "", "")
    assert found.message == "expected one, got two"


def test_over_grpc_it_is_the_requirement_there(peer: Peer) -> None:
    speaks = ScriptedAdapter(introduction=Introduction("scripted", transports=("grpc",)))
    unmet = UnmetError("one", "two", requirement="CLIENT-ENDS")
    found = judged(peer, raising(unmet), speaks, "CLIENT-SENDS-VALUES/grpc", over=GRPC)
    assert found.failure is not None
    assert found.failure.requirement == "CLIENT-ENDS/grpc"
    assert found.area == "client-grpc"


WITHOUT_VERDICT = {
    "not applicable": (NotApplicableError("no\x1b[31m"), Outcome.NOT_APPLICABLE, ReasonKind.NOT_FOR_THIS_TARGET),
    "blocked": (BlockedError("no\x1b[31m"), Outcome.BLOCKED, ReasonKind.SIMPLER_IS_WRONG),
    "lost": (AdapterLostError("no\x1b[31m"), Outcome.ERROR, ReasonKind.TARGET_LOST),
    "broke": (AdapterError("no\x1b[31m"), Outcome.ERROR, ReasonKind.ADAPTER_BROKE),
    "our fault": (ZeroDivisionError("no\x1b[31m"), Outcome.ERROR, ReasonKind.SUITE_FAILED),
}


@pytest.mark.parametrize("name", WITHOUT_VERDICT)
def test_row_without_verdict_has_reason_and_no_failure(peer: Peer, name: str) -> None:
    error, outcome, kind = WITHOUT_VERDICT[name]
    found = judged(peer, raising(error))
    assert found.outcome is outcome
    assert found.reason is not None
    assert found.reason.kind is kind
    assert found.failure is None
    assert "no\\x1b[31m" in found.message
    assert "\x1b" not in found.message


def test_a_transport_that_the_client_does_not_speak_is_not_judged(peer: Peer) -> None:
    found = judged(peer, answers="CLIENT-SENDS-VALUES/grpc", over=GRPC)
    assert (found.outcome, found.message) == (Outcome.NOT_APPLICABLE, "scripted does not speak grpc")
    assert found.has_reason(ReasonKind.TRANSPORT_NOT_GIVEN)


def test_what_a_client_cannot_do_is_not_applicable_with_its_reason(peer: Peer) -> None:
    found = judged(peer, adapter=ScriptedAdapter([Result(cannot="it has no\x1b[31m such call")]))
    assert (found.outcome, found.message) == (
        Outcome.NOT_APPLICABLE,
        "the client cannot make this inference: it has no\\x1b[31m such call",
    )


def test_an_adapter_that_breaks_says_its_last_words(peer: Peer) -> None:
    found = judged(peer, adapter=ScriptedAdapter(AdapterError("it died", ["one", "two"])))
    assert (found.outcome, found.message) == (Outcome.ERROR, "it died\n| one\n| two")


@pytest.mark.parametrize("answers", ["CLIENT-SENDS-SIZE", "CLIENT-READS-FORM", "CLIENT-ENDS"])
def test_an_adapter_that_hangs_before_anything_is_sent_blames_its_client_for_nothing(peer: Peer, answers: str) -> None:
    found = judged(peer, adapter=ScriptedAdapter(AdapterHangsError("no answer")), answers=answers)
    assert (found.outcome, found.failure) == (Outcome.ERROR, None)
    assert found.has_reason(ReasonKind.ADAPTER_BROKE)


class WaitingAdapter(ScriptedAdapter):
    """Sends a request, and gives nothing to its caller."""

    def infer(self, *asked: object, **_: object) -> list[Result]:
        address = str(asked[1])
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
        connection.request("POST", "/v2/models/m/infer", b"{}")
        connection.getresponse().read()
        connection.close()
        raise AdapterHangsError("no answer")


def test_hanging_client_fails_requirement_about_ending(peer: Peer) -> None:
    found = judged(peer, adapter=WaitingAdapter(), answers="CLIENT-ENDS")
    assert (found.outcome, found.message) == (
        Outcome.ADVISORY,
        "expected outputs or an error within 10 s, got nothing came: no answer",
    )
    assert found.failure is not None
    assert found.failure.sent == "POST /v2/models/m/infer, 2 bytes"


def test_hanging_client_is_error_in_other_rows(peer: Peer) -> None:
    found = judged(peer, adapter=WaitingAdapter(), answers="CLIENT-READS-FORM")
    assert (found.outcome, found.failure, found.exchanges) == (Outcome.ERROR, None, 1)
