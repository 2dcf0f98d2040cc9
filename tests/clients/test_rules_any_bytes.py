"""Whatever a client sends, judging it never raises, and finds the same twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.clients.inference import Inference, RequestedOutput
from conformance.clients.intent import find_differences
from conformance.clients.rules.judging import CALL_RULES, RULES, judge_request
from conformance.wire.client_request import ClientRequest
from conformance.wire.tensor import Tensor
from tests.clients.made_calls import HONEST_CALLS, METHOD, WRONG_CALLS
from tests.clients.made_requests import HONEST
from tests.clients.wrong_requests import WRONG

MEANT = Inference(
    "m",
    (
        Tensor.from_values("A", "INT32", [1, 2]),
        Tensor.from_values("B", "BYTES", [b"a", b"\0"]),
        Tensor.from_values("F", "FP32", [np.nan]),
    ),
    outputs=(RequestedOutput("X", "binary", 2),),
    id="a",
)
IDS = {rule.requirement for rule in RULES} | {rule.requirement for rule in CALL_RULES}
# Pieces that mean something where they land.
PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"-", b"null", b"NaN", b"Infinity", b"-Infinity", b"true", b"1e400"),
    *(b"-0", b"9" * 30, b"9" * 5000, b"\\ud800", b"\xff", b"\x00", b"\x1f\x8b", b'"data":', b'"shape":', b'"BYTES"'),
    *(b'"parameters":', b'"binary_data_size":', b"[" * 70, b"18446744073709551616", b"0.5", b'"classification":'),
]
edits = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.integers(0, 12), st.one_of(st.sampled_from(PIECES), st.binary(max_size=8))
    ),
    max_size=4,
)
headers = st.lists(
    st.tuples(
        st.sampled_from(["Inference-Header-Content-Length", "Content-Encoding", "Content-Type", "Content-Length"]),
        st.one_of(st.sampled_from(["0", "5", "gzip", "deflate", "gzip,deflate", "\u0660", "-1"]), st.text(max_size=6)),
    ),
    max_size=2,
)


def mutated(body: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    for place, length, piece in changes:
        at = int(place * (len(body) + 1))
        body = body[:at] + piece + body[at + length :]
    return body


def check(received: ClientRequest) -> None:
    found = judge_request(received)
    assert found == judge_request(received)
    missed = [miss.requirement for miss in (*found.violations, *find_differences(received, MEANT))]
    assert {*found.met, *missed} <= IDS | {f"CLIENT-SENDS-{name}" for name in ("VALUES", "OUTPUTS")} | {
        f"CLIENT-SENDS-{name}/grpc" for name in ("VALUES", "OUTPUTS")
    }
    assert all(miss.offset is None or miss.offset >= 0 for miss in found.violations)
    assert all(f"{miss.expected}{miss.actual}".isprintable() for miss in found.violations)


BOUNDED = settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@BOUNDED
@given(st.sampled_from([row[1] for row in (*HONEST, *WRONG)]), edits, headers)
def test_any_request(
    received: ClientRequest, changes: list[tuple[float, int, bytes]], more: list[tuple[str, str]]
) -> None:
    check(replace(received, body=mutated(received.body, changes), headers=(*more, *received.headers)))


@BOUNDED
@given(st.sampled_from([row[1] for row in (*HONEST_CALLS, *WRONG_CALLS)]), edits)
def test_any_call(received: ClientRequest, changes: list[tuple[float, int, bytes]]) -> None:
    check(replace(received, body=mutated(received.body, changes)))


@BOUNDED
@given(st.text(max_size=40), st.binary(max_size=60), st.sampled_from(["POST", "GET", "GRPC"]))
def test_any_path_and_bytes(path: str, body: bytes, method: str) -> None:
    check(ClientRequest(method, METHOD if method == "GRPC" else f"/v2/models/{path}/infer", (), body))
