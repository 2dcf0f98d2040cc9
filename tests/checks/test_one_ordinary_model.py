"""The checks of JSON, errors and state on the only model of a small server: its mistakes are seen, and nothing else."""

from __future__ import annotations

import pytest

from conformance.judging.selection import list_profile_rows
from conformance.spec.extensions import PROTOCOL
from conformance.spec.ledger import get_requirement
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from reference_server.models import Model
from tests.support import small_server, unusual_models
from tests.support.deployed_judging import judge_models, list_met, list_missed

AREAS = ("json", "errors", "state")


def missed(results: list[CheckResult]) -> set[str]:
    """Return the requirements that are not met; with the row where that says nothing."""
    without = [r.label for r in results if r.outcome in (Outcome.BLOCKED, Outcome.ERROR)]
    return list_missed(results) | set(without)


def met(results: list[CheckResult]) -> set[str]:
    return {name for name in list_met(results) if get_requirement(name).level == "MUST"}


ADVISED = {
    *("OIP-SIGNATURE", "OIP-DIMENSION-NEGATIVE", "OIP-MEMBER-MISSING", "OIP-TWICE", "OIP-ERROR-STATUS", "OIP-RANGE")
}


@pytest.mark.parametrize(
    ("mistakes", "requirements"),
    [
        ((), set()),
        (("detail",), {"OIP-ERROR", "OIP-ERROR-ELSEWHERE"}),
        (("sizes",), {"OIP-REFUSAL", *ADVISED}),
        (("version",), {"OIP-VERSION-UNKNOWN"}),
        (("id",), {"OIP-ID", "OIP-ID-EMPTY"}),
        (("sizes", "id"), {"OIP-REFUSAL", "OIP-ID", "OIP-ID-EMPTY", *ADVISED}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_each_mistake_is_seen_with_one_model(mistakes: tuple[str, ...], requirements: set[str]) -> None:
    with small_server.serve(*mistakes) as url:
        assert missed(judge_models(url, AREAS, "iris", extensions=(PROTOCOL,))) == requirements


@pytest.mark.parametrize(
    ("mistake", "requirement"),
    [*((f"needs-{part}", "OIP-ANSWER") for part in ("id", "outputs", "parameters")), ("flat", "OIP-DATA")],
)
def test_an_optional_part_of_a_request_may_not_be_asked_for(mistake: str, requirement: str) -> None:
    with small_server.serve(mistake) as url:
        results = judge_models(url, AREAS, "iris", extensions=(PROTOCOL,))
    assert {r.failure.requirement for r in results if r.failure} == {requirement}
    assert Outcome.ERROR not in {r.outcome for r in results}


def test_classes_that_are_not_offered_block_nothing() -> None:
    with unusual_models.serve(fault="fp32-alone-is-ranked") as url:
        results = judge_models(url, ("json", "state"), "identity_int32", is_sample=True)
    assert Outcome.BLOCKED not in {r.outcome for r in results}


def test_one_model_lets_nearly_every_must_be_judged() -> None:
    with small_server.serve() as url:
        found = met(judge_models(url, AREAS, "iris", extensions=(PROTOCOL,)))
    asked = {
        name
        for case in list_profile_rows("certify")
        if case.check.area in AREAS
        for name in case.requirements
        if get_requirement(name).level == "MUST" and str(get_requirement(name).area) in AREAS
    }
    # The rest needs inputs that nobody sends to a model of which nothing is known, answers of megabytes, or outputs of
    # which it is known that they are the same each time.
    assert asked - found == {"OIP-JSON-NAN", "HTTP-SLOW-READER", "OIP-PARAMETER-NAMES"}


@pytest.mark.parametrize(
    "odd",
    [
        *(
            unusual_models.COUNTER,
            unusual_models.LAST_DIGIT,
            unusual_models.BY_PLACE,
            unusual_models.NAN,
            unusual_models.SMALL_TABLE,
        ),
        *(unusual_models.STRUCTURED, unusual_models.PICKY),
    ],
    ids=lambda model: model.name,
)
def test_an_odd_model_misses_nothing(odd: Model) -> None:
    with unusual_models.serve(odd) as url:
        results = judge_models(url, AREAS, odd.name, is_sample=True)
    if odd is unusual_models.PICKY:  # which takes nothing that can be guessed, so that nothing is said of it
        assert {r.outcome for r in results if r.failure} == set()
    else:
        assert missed(results) == set()
    assert "OIP-ENDPOINTS" in met(results)
