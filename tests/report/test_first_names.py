"""The requirement that is named first is the one that a bug breaks: servers with bugs that fail many requirements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.report.blocks import build_blocks
from conformance.report.failure_patterns import find_patterns, format_pattern
from conformance.report.json_report import build_rows
from conformance.spec.outcome import Outcome
from reference_server import faults
from reference_server.errors import InferenceError
from reference_server.faults import Fault, switch_on
from tests.support.samples import collect_rows
from tests.support.sightings import Server, judge_fault, run_server
from tests.support.step_tracing import Rows

Entry = dict[str, Any]
EVERY = 20  # a row of so many is judged


def refuse(refuses: Callable[[Entry], bool], status: int = 400) -> Fault:
    """A server that refuses inputs."""

    def body(original: Any, model: Any, spec: Any, entry: Any, rest: Any) -> Any:
        if refuses(entry):
            raise InferenceError("not supported", status)
        return original(model, spec, entry, rest)

    return Fault("refuses-inputs", ("request.parse_input",), (), body, broad=True)


def has_json(datatype: str) -> Callable[[Entry], bool]:
    return lambda entry: "data" in entry and entry.get("datatype") == datatype


def is_empty_bytes(entry: Entry) -> bool:
    return "data" not in entry and entry.get("datatype") == "BYTES" and 0 in entry["shape"]


# What the server does -> the requirement that is named first, and what is said of its requests.
BUGS: dict[str, tuple[Fault, str, str]] = {
    "bytes-in-json": (refuse(has_json("BYTES")), "OIP-ANSWER", "with BYTES in JSON is refused"),
    "bool-in-json": (refuse(has_json("BOOL")), "OIP-ANSWER", "with BOOL in JSON is refused"),
    "empty-bytes": (
        refuse(is_empty_bytes), "BIN-DATATYPES-I", "with an empty BYTES input as binary data is refused",
    ),
    "binary-data": (
        refuse(lambda entry: "data" not in entry, 500), "BIN-DATATYPES-I",
        "with inputs as binary data gets a server error",
    ),
    "errors-with-status-200": (faults.load()["errors-with-status-200"], "OIP-REFUSAL", ""),
    "a-mixed-up-batch": (faults.load()["inputs-shared-by-requests-in-flight"], "OIP-ISOLATION", ""),
}  # fmt: skip


def select_rows() -> Rows:
    every = collect_rows(over_grpc=False)
    wanted = ("empty", "state.answers-in-flight-are-their-own")
    near = [case for case in every if any(part in f"{case.check.id} {case.row.id}" for part in wanted)]
    return list({case.ids: case for case in [*every[::EVERY], *near]}.values())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


@pytest.mark.parametrize("name", BUGS)
def test_the_first_name_is_what_the_bug_breaks(server: Server, name: str) -> None:
    fault, requirement, said = BUGS[name]
    with switch_on(fault):
        results = list(judge_fault(server, fault, select_rows()))
    first = build_blocks(build_rows(results), Outcome.FAIL, patterns=find_patterns(results))[0]
    assert first.requirement == requirement
    assert [format_pattern(pattern).partition(" (")[0] for pattern in first.patterns] == (
        [f"Every request {said}"] if said else []
    )
