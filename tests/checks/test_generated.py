"""Rows of generated tensors: what they blame, what they leave to other checks, and that no run needs Hypothesis."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conformance.checks.support.generated import expect_generated, make_plain_tensor
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.judging.selection import list_profile_rows
from conformance.roles import roles
from conformance.roles.generated_tensors import load_tensors
from conformance.roles.model import Model
from conformance.spec.check import Case
from conformance.spec.extensions import TRANSPORTS
from reference_server import faults
from tests.support.sightings import Server, Sighting, run_server, see

MODEL = Model(roles.load()["identity_int64"], "m")
CHECKS = {case[0].id for case in list_profile_rows("certify", transports=TRANSPORTS) if ".generated-" in case[0].id}
# Each check with a fault that only some of its values show.
SEEN = (
    ("datatypes.generated-inputs-are-read", "int64-read-through-doubles"),
    ("datatypes.generated-outputs-are-written", "fp64-written-through-single-precision"),
    ("datatypes.generated-tensors-survive", "strings-read-up-to-a-nul"),
    ("raw.generated-bodies-are-tensor-data", "raw-elements-beyond-the-finite-are-zeros"),
    ("grpc.generated-tensors-come-back", "grpc-typed-64-bit-integers-go-through-doubles"),
    ("grpc.generated-tensors-come-back", "grpc-raw-strings-end-at-nul"),
)
PROGRAM = """
import sys
sys.modules["hypothesis"] = None
from conformance.judging.selection import list_profile_rows
from tests.support.sightings import judge_rows, run_server, serve_grpc
rows = [c for c in list_profile_rows("certify", transports=("http", "grpc")) if ".generated-" in c[0].id]
with run_server() as server, serve_grpc(server) as address:
    results = list(judge_rows(server.url, rows, address))
assert len(results) > 60
assert {result.outcome for result in results} == {"pass"}, [result for result in results if result.outcome != "pass"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


def generated_rows(check: str) -> list[Case]:
    return [case for case in list_profile_rows("certify", transports=TRANSPORTS) if case[0].id == check]


def see_fault(server: Server, check: str, name: str) -> Sighting:
    return see(server, faults.load()[name], generated_rows(check), until=())


def test_there_are_no_others() -> None:
    assert {check for check, _ in SEEN} == CHECKS


@pytest.mark.parametrize(("check", "name"), SEEN)
def test_a_fault_of_some_values_is_found(check: str, name: str, server: Server) -> None:
    sighting = see_fault(server, check, name)
    found = {miss.requirement for miss in sighting.select("fail")}
    assert found
    assert found <= set(faults.load()[name].breaks)
    assert not sighting.select("error")


def test_the_failure_shows_the_smallest_tensor(server: Server) -> None:
    (miss,) = see_fault(server, "datatypes.generated-inputs-are-read", "int64-read-through-doubles").select("fail")
    assert re.search(r"OUTPUT INT64 \[1\] = \[\d+\], got \[\d+\]", miss.message)


def test_what_plain_elements_show_is_left_to_other_checks(server: Server) -> None:
    check = "datatypes.generated-inputs-are-read"
    sighting = see(server, faults.load()["inputs-read-big-endian"], generated_rows(check))
    assert sighting.select("blocked")
    assert not sighting.select("fail", "error")


def test_a_tensor_that_is_right_when_it_is_sent_again_blocks() -> None:
    failures = iter([UnmetError("one", "another")])

    def fail_once(_: object) -> None:
        for failure in failures:
            raise failure

    with pytest.raises(BlockedError, match="correct answer when it is sent again"):
        expect_generated(MODEL, "both", fail_once)


def test_right_tensors_are_each_sent_once() -> None:
    sent: list[object] = []
    expect_generated(MODEL, "both", lambda tensor: sent.append(bytes(tensor.to_bytes())))
    assert sent == [bytes(tensor.to_bytes()) for tensor in load_tensors(MODEL.role, "both")]


@pytest.mark.parametrize(
    ("role", "shape"),
    [("rank0", ()), ("identity_int8", (3,)), ("rank3", (2, 2, 3)), ("batching", (2, 3)), ("raw_fixed", (2, 2))],
)
def test_plain_tensors_are_in_rows_of_an_odd_number(role: str, shape: tuple[int, ...]) -> None:
    tensor = make_plain_tensor(Model(roles.load()[role], "m"), "both")
    assert tensor.shape == shape
    assert len(np.unique(tensor.array)) == tensor.elements


def test_a_raw_request_brings_one_plain_item() -> None:
    assert make_plain_tensor(Model(roles.load()["raw_batching_variable"], "m"), "raw").shape == (1, 3)


def test_a_run_judges_them_without_hypothesis() -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
