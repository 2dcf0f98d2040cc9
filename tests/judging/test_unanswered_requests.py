"""The refusal of a legal request names its cause where a control shows it, and else the requirement of the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from conformance.expect.unmet import UnmetError
from conformance.judging.selection import find_row
from conformance.judging.unanswered_requests import find_option_cause
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.spec.outcome import Outcome
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.transport.target import Target
from conformance.wire.grpc_request import make_infer_message
from reference_server.errors import InferenceError
from reference_server.faults import Fault, switch_on
from reference_server.models import Model as ServedModel
from tests.support import unusual_models
from tests.support.deployed_judging import judge_models, list_missed
from tests.support.matrix import load_all
from tests.support.sightings import judge_fault, open_session, run_server, serve_grpc

CHECK = "datatypes.binary-inputs-are-read"
Refuses = Callable[[int, bytes], bool]  # whether a server refuses a body whose JSON has this length


def make_forgetful() -> Refuses:
    """Return a server that refuses each binary request once."""
    seen: set[bytes] = set()

    def refuses(length: int, body: bytes) -> bool:
        is_new = 0 < length < len(body) and body not in seen
        seen.add(body)
        return is_new

    return refuses


def is_unaligned(length: int, body: bytes) -> bool:
    return length < len(body) and length % 8 > 0


def has_brace(length: int, body: bytes) -> bool:
    return b"}" in body[length:]


def is_binary(length: int, body: bytes) -> bool:
    return length < len(body)


def has_brace_in_many_bytes(length: int, body: bytes) -> bool:
    return has_brace(length, body) and len(body) - length > 64


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("inputs-read-in-declared-order", "OIP-ANSWER"),  # which reads integers as NaN, and refuses that in JSON
        ("integers-beyond-2-53-have-no-json", "OIP-NUMBER-EXACT"),
    ],
)
def test_a_refusal_names_wide_integers_only_if_they_are_refused_alone(name: str, requirement: str) -> None:
    case, known = find_row("golden.valid-case-is-answered", "json-inputs-between-binary-ones"), load_all()[name]
    assert case is not None
    with run_server() as server, switch_on(known):
        (result,) = judge_fault(server, known, [case])
    assert result.failure is not None
    assert result.failure.requirement == requirement


@pytest.mark.parametrize(
    ("row", "refuses", "requirement"),
    [
        ("UINT64-single-bytes", make_forgetful(), "BIN-DATATYPES-I"),
        ("INT64", is_unaligned, "BIN-BODY-I"),
        ("UINT8-every", has_brace, "BIN-BODY-I"),
        ("INT64", is_binary, "BIN-DATATYPES-I"),
        ("UINT8-every", has_brace_in_many_bytes, "BIN-DATATYPES-I"),
    ],
)
def test_a_refusal_names_what_a_control_shows(row: str, refuses: Refuses, requirement: str) -> None:
    def parse(original: Callable[..., Any], model: Any, header_values: list[str], body: bytes) -> Any:
        if header_values and refuses(int(header_values[0]), body):
            raise InferenceError("no", status=404)  # as if there were no such model
        return original(model, header_values, body)

    found = find_row(CHECK, row)
    assert found is not None
    fault = Fault("", ("request.parse",), (), parse)
    with run_server() as server, switch_on(fault):
        (result,) = judge_fault(server, fault, [found])
    assert result.failure is not None
    assert result.failure.requirement == requirement


class Probes:
    """A target without models that answers every probe, and notes the names of them."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def model(self, _role: str) -> None:
        return None

    def probe_once(self, name: str, _probe: Callable[[], bool]) -> bool:
        self.names.add(name)
        return True


def test_a_silence_has_a_control_for_each_model_and_transport_and_for_each_option() -> None:
    """Models of one signature have simple requests of the same shapes, and calls of gRPC the same path."""
    target, failure = Probes(), TransportFailure(FailureKind.TIMEOUT, "no answer in 3 s")
    options: list[dict[str, Any]] = [{}, {"request_id": "7"}, {"outputs": ["OUTPUT"]}]
    for model in (Model(load()["identity_int32"], name) for name in ("one", "other")):
        for request in (model.request(**option) for option in options):
            for message in (request.message(), make_infer_message(request)):
                unmet = UnmetError("an answer", "none", Reply(Exchange(0, message, "http://h", failure=failure)))
                assert find_option_cause(cast("Target", target), model, unmet, "OIP-ANSWER") is None
    assert len(target.names) == 2 * 2 * len(options)


def test_a_control_differs_in_one_thing_from_a_header_in_another_spelling() -> None:
    with unusual_models.serve(fault="header-looked-up-in-one-spelling") as url:
        results = judge_models(url, ["headers"], "fixed", about=["BIN-HEADER-CASE"])
    assert list_missed(results) == {"BIN-HEADER-CASE"}


LOST_ROWS = (
    (CHECK, "INT32"),
    ("errors.good-request-after-a-refusal-is-answered-right", "headers-no-header"),
    ("metadata.model-metadata-describes-the-model", "identity_int32"),
    ("grpc.raw-tensors-come-back", "INT32"),
)


@pytest.mark.parametrize(
    ("busy_status", "rows", "word"),
    [
        (None, LOST_ROWS, "disappeared"),
        (503, LOST_ROWS[:1], "refuses plain requests"),
        (413, LOST_ROWS[3:], "refuses plain requests"),  # RESOURCE_EXHAUSTED
    ],
)
def test_a_model_that_is_lost_blocks_its_rows(
    busy_status: int | None, rows: Sequence[tuple[str, str]], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InferenceError("all workers are busy", status=busy_status or 0)

    cases = [case for name in rows if (case := find_row(*name))]
    with run_server() as server, serve_grpc(server) as address, open_session(server.url, address) as session:
        before = [session.judge(case).outcome for case in cases]
        if busy_status:
            monkeypatch.setattr(ServedModel, "check_shape", refuse)
            monkeypatch.setattr(Target, "pause", lambda *_: None)  # before a busy server is asked again
        else:
            server.models.clear()
        after = [session.judge(case) for case in cases]
    assert before == [Outcome.PASS] * len(rows)
    assert [(result.outcome, word in result.message) for result in after] == [(Outcome.BLOCKED, True)] * len(rows)
