"""Several valid servers in one, as a real server differs in many ways at once: it fails nothing, and hides no fault.

Alone each passes (`test_kill_matrix`). `pytest --whole` draws more combinations.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from conformance.judging.selection import list_profile_rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.result import CheckResult
from reference_server.faults import Fault, switch_on
from tests.support import sampling, valid_servers
from tests.support.matrix import load_all
from tests.support.quick_record import list_server_rows
from tests.support.sightings import Server, judge_rows, make_unmet_row, run_server, serve_grpc
from tests.support.step_tracing import Rows

SEEDS = range(200 if sampling.is_whole else 4)
MAX_PARTS, ROWS = 12, 60
UNMET = ("fail", "error", "blocked")

# Combinations that failed a MUST, with a row that did.
HONEST = (
    (
        ("json-ends-with-the-connection", "trailers-end-in-a-parser-error"),
        ("walk.each-value-is-right-alone", "json-framing-trailers"),
    ),
    (
        ("json-over-16-kib-is-refused", "trailers-end-in-a-parser-error"),
        ("walk.every-exchange-is-right", "json-multi-rest-2"),
    ),
    (("refused-with-500", "ids-of-letters-and-digits-alone"), ("json.id-comes-back", "accents")),
    (
        ("refused-with-500", "integers-of-8-bits-are-not-ranked"),
        ("golden.valid-case-is-answered", "classification-uint8"),
    ),
    (("class-values-have-an-exponent",), ("classification.value-is-the-score", "fp64-powers")),
    (("answers-are-cached",), ("json.named-version-computes", "in-turn")),
)
# A fault, a valid server beside which another requirement was named first, a row, and the requirement.
FAULTY = (
    (
        "rows-written-at-multiples-of-16",
        "models-are-loaded-when-they-are-asked-for",
        ("golden.valid-case-is-answered", "kserve-page-mixed"),
        "OIP-ANSWER",
    ),
    (
        "model-locked-by-who-leaves-during-the-answer",
        "more-than-1000-elements-are-refused",
        ("state.cancelled-answer-harms-no-other", "binary"),
        "OIP-ISOLATION",
    ),
    (
        "raw-tensors-of-a-page-refused",
        "empty-raw-bodies-are-refused",
        ("walk.each-value-is-right-alone", "raw-count-4096"),
        "RAW-ONE-VARIABLE",
    ),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_combinations_fail_nothing(seed: int, server: Server) -> None:
    over_grpc = seed % 3 == 0
    parts = draw_parts(random.Random(seed), over_grpc=over_grpc)
    rows = list_profile_rows("quick", transports=(GRPC if over_grpc else HTTP,))
    judged = [case for case in rows if not case.check.judges_discovery]
    found = list(judge(server, parts, random.Random(seed).sample(judged, ROWS), over_grpc=over_grpc))
    unmet = [make_unmet_row(result) for result in found if result.outcome in UNMET]
    assert unmet == [], [part.name for part in parts]


@pytest.mark.parametrize(("names", "row"), HONEST)
def test_a_combination_fails_nothing(names: Sequence[str], row: tuple[str, str], server: Server) -> None:
    (found,) = judge(server, [load_all()[name] for name in names], [list_server_rows()[row]])
    assert found.outcome not in UNMET, found.message


@pytest.mark.parametrize(("fault", "variation", "row", "requirement"), FAULTY)
def test_a_fault_has_its_name(
    fault: str, variation: str, row: tuple[str, str], requirement: str, server: Server
) -> None:
    (found,) = judge(server, [load_all()[name] for name in (variation, fault)], [list_server_rows()[row]])
    assert found.failure is not None
    assert found.failure.requirement == requirement


def draw_parts(drawn: random.Random, *, over_grpc: bool) -> list[Fault]:
    """Return valid servers that replace different steps of one transport; one of them may concern versions."""
    known = [one for one in valid_servers.load().values() if one.over_grpc == over_grpc and not one.in_discovery]
    parts: list[Fault] = []
    for one in drawn.sample(known, len(known)):
        is_apart = all(set(one.steps).isdisjoint(part.steps) for part in parts)
        has_versions = "version" in one.name and any("version" in part.name for part in parts)
        if is_apart and not has_versions and len(parts) < MAX_PARTS:
            parts.append(one)
    return parts


def judge(server: Server, parts: Iterable[Fault], rows: Rows, *, over_grpc: bool = False) -> list[CheckResult]:
    """Return the results of rows against the server with all parts switched on."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(switch_on(part))
        server.replace()
        address = stack.enter_context(serve_grpc(server)) if over_grpc else None
        found = list(judge_rows(server.url, rows, address))
    server.replace()
    return found
