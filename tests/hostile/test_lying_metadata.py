"""Metadata of a deployed model that are a lie, or none: one sentence or a verdict, soon, and in little memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from conformance.judging.run_start import discover_subjects
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.text import escape_text
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from tests.hostile.misbehaviours.bodies import NASTY
from tests.hostile.misbehaviours.rows import make_answer
from tests.hostile.proxy import Wire, run_hostile_proxy

MODEL = "m"
SECONDS, BYTES = 10.0, 100_000_000


def tensor(name: Any = "X", datatype: Any = "INT32", shape: Any = (1,)) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape}


def metadata(*inputs: Any, outputs: Any = ({"name": "Y", "datatype": "INT32", "shape": [1]},)) -> dict[str, Any]:
    return {"name": MODEL, "inputs": list(inputs), "outputs": list(outputs)}


LIES: dict[str, Any] = {
    "another-name": metadata(tensor()) | {"name": "other"},
    "shape-of-2-to-the-63": metadata(tensor(shape=[2**63])),
    "shape-of-2-to-the-40": metadata(tensor(shape=[2**40])),
    "shape-whose-product-is-vast": metadata(tensor(shape=[2**20, 2**20, 2**20])),
    "strings-of-a-vast-shape": metadata(tensor(datatype="BYTES", shape=[2**28])),
    "negative-shape": metadata(tensor(shape=[-5, -1, -(2**63)])),
    "shape-of-a-thousand-dimensions": metadata(tensor(shape=[1] * 1000)),
    "shape-of-a-thousand-open-dimensions": metadata(tensor(shape=[-1] * 1000)),
    "shape-of-fractions": metadata(tensor(shape=[1.5, True, None, "1", []])),
    "shape-that-is-a-text": metadata(tensor(shape="[1]")),
    "shape-of-5000-digits": metadata(tensor(shape=[10**4000])),
    "a-hundred-thousand-inputs": lambda: metadata(*[tensor(f"X{number}") for number in range(100_000)]),
    "a-hundred-thousand-outputs": lambda: metadata(tensor(), outputs=[tensor(f"Y{n}") for n in range(100_000)]),
    "inputs-of-one-name": metadata(*[tensor()] * 1000),
    "datatype-unknown": metadata(tensor(datatype="FP7")),
    "datatype-that-is-a-list": metadata(tensor(datatype=["INT32"])),
    "datatype-that-is-an-object": metadata(tensor(datatype={"INT32": 1})),
    "name-that-is-a-list": metadata(tensor(name=["X"])),
    "name-that-is-nasty": metadata(tensor(name=NASTY)),
    "name-that-is-long": metadata(tensor(name="x" * 100_000)),
    "name-that-is-empty": metadata(tensor(name="")),
    "inputs-that-are-an-object": {"name": MODEL, "inputs": {"X": tensor()}, "outputs": {}},
    "inputs-that-are-a-text": {"name": MODEL, "inputs": "X", "outputs": "Y"},
    "inputs-that-are-texts": metadata("X", "Y", None, 5),
    "outputs-that-are-none": metadata(tensor(), outputs=[None]),
    "a-list": [metadata(tensor())],
    "a-text": "m",
    "nothing": {},
}


def lying(document: Any) -> Callable[[Wire], None]:
    """Return a server with one model, of which these are the metadata."""
    bodies = {
        b"GET /v2 ": json.dumps(
            {"name": NASTY, "extensions": ["binary_tensor_data", "classification", NASTY]}
        ).encode(),
        b"GET /v2/models/m ": json.dumps(document).encode(),
    }

    def does(wire: Wire) -> None:
        line = wire.request.partition(b"\r\n")[0]
        body = next((body for begins, body in bodies.items() if line.startswith(begins)), b'{"outputs":[]}')
        wire.send(make_answer(200, "Content-Type: application/json", "Connection: close", body=body))

    return does


def told(does: Callable[[Wire], None]) -> tuple[str, list[Outcome]]:
    """Return why nothing can be judged, and what came of a few rows where something can."""
    subjects = Subjects(models=(MODEL,), with_roles=False)
    with run_hostile_proxy(None, does) as peer, Session(Target(Settings(peer.url, timeout=2.0))) as session:
        subjects, nothing = discover_subjects(session, subjects)
        rows = [] if nothing else list_profile_rows("quick", subjects=subjects)[:20]
        results = [session.judge(case) for case in rows]
    assert not any(result.has_reason(ReasonKind.SUITE_FAILED) for result in results), results
    return nothing.text() if nothing else "", [result.outcome for result in results]


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_false_metadata_ends_in_reason_or_outcomes(lie: Any) -> None:
    started = time.monotonic()
    reason, outcomes = told(lying(lie() if callable(lie) else lie))
    assert time.monotonic() - started < SECONDS
    assert reason or outcomes
    assert Outcome.PASS not in outcomes or not reason
    assert reason == escape_text(reason, len(reason))
    assert len(reason) < 2000


@pytest.mark.parametrize("shape", [[2**20, 2**20, 2**20], [900_000]])
def test_vast_shapes_take_little_memory(shape: list[int]) -> None:
    tracemalloc.start()
    told(lying(metadata(*[tensor(f"X{number}", shape=shape) for number in range(30)])))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BYTES
