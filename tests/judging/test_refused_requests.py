"""The refusal of a legal request names its cause where a control shows it, and else the requirement of the row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.judging.selection import find_row
from conformance.spec.outcome import Outcome
from reference_server.errors import InferenceError
from reference_server.faults import Fault, switch_on
from tests.support import unusual_models
from tests.support.deployed_judging import judge_models, list_missed
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


def test_a_control_differs_in_one_thing_from_a_header_in_another_spelling() -> None:
    with unusual_models.serve(fault="header-looked-up-in-one-spelling") as url:
        results = judge_models(url, ["headers"], "fixed", about=["BIN-HEADER-CASE"])
    assert list_missed(results) == {"BIN-HEADER-CASE"}


def test_a_model_that_disappears_blocks_its_rows() -> None:
    names = [
        (CHECK, "INT32"),
        ("metadata.model-metadata-describes-the-model", "identity_int32"),
        ("errors.good-request-after-a-refusal-is-answered-right", "headers-no-header"),
        ("grpc.raw-tensors-come-back", "INT32"),
    ]
    cases = [case for name in names if (case := find_row(*name))]
    with run_server() as server, serve_grpc(server) as address, open_session(server.url, address) as session:
        before = [session.judge(case).outcome for case in cases]
        server.models.clear()
        after = [session.judge(case) for case in cases]
    assert before == [Outcome.PASS] * len(names)
    assert [(result.outcome, "disappeared" in result.message) for result in after] == [(Outcome.BLOCKED, True)] * 4
