"""A request that the documents call wrong accuses a server of nothing that is about legal requests."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from conformance.judging.row_judge import find_safe_requirement
from conformance.spec import ledger
from reference_server.faults import Fault
from tests.support.samples import collect_rows
from tests.support.sightings import run_server, see


async def answer_without_outputs(_original: Any, _request: Any, _exception: Any) -> Response:
    """Whatever should be refused is answered."""
    return JSONResponse({"model_name": "any", "outputs": []})


def is_about_refusal(requirement: str) -> bool:
    return ledger.get_requirement(requirement).concern is ledger.Concern.REFUSAL


def test_the_answer_to_a_wrong_request_breaks_requirements_on_wrong_requests_alone() -> None:
    fault = Fault("answers-without-outputs", ("app.answer_refusal",), (), answer_without_outputs)
    cases = [case for case in collect_rows(over_grpc=False) if is_about_refusal(case.requirements[0])]
    with run_server() as server:
        misses = see(server, fault, [case for case in cases if not case[1].dangerous]).select("fail", "advisory")
    assert len(misses) > 300
    assert [miss for miss in misses if not is_about_refusal(miss.requirement)] == []


@pytest.mark.parametrize(
    ("requirement", "safe"),
    [
        ("OIP-SIGNATURE", "OIP-SIGNATURE-SAFE"),
        ("OIP-DIMENSION-NEGATIVE", "OIP-SIGNATURE-SAFE"),
        ("OIP-REFUSAL", "OIP-REFUSAL"),
        ("OIP-REFUSAL/grpc", "OIP-REFUSAL/grpc"),
    ],
)
def test_the_requirement_on_the_answer_to_a_wrong_request(requirement: str, safe: str) -> None:
    assert find_safe_requirement(requirement) == safe
