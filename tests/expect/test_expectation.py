"""Expectations by rows: what they accept, what they refuse, and the exact text of the refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.expect.expectation import Expectation, expect
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

Ask = Callable[[Expectation], object]


def reply(outputs: list[dict[str, Any]], tail: bytes = b"", *, status: int = 200, header: str | None = "") -> Reply:
    """Return an answer; an empty header stands for the right one."""
    text = json.dumps({"model_name": "m", "outputs": outputs}).encode()
    value = str(len(text)) if header == "" else header
    headers = (("inference-header-content-length", value),) if tail and value is not None else ()
    return Reply(Exchange(0, Message("/p"), "http://x/p", status, headers, text + tail))


def failed(failure: TransportFailure | None, status: int | None = None, body: bytes = b"") -> Reply:
    return Reply(Exchange(0, Message("/p"), "http://x/p", status, (), body, failure))


INT32 = Tensor.from_values("OUT", "INT32", [1, 2])
JSON_OUT = {"name": "OUT", "datatype": "INT32", "shape": [2], "data": [1, 2]}
BINARY_OUT = {"name": "OUT", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}}
ONE_TWO = bytes.fromhex("01000000 02000000")
FP32_OUT = {"name": "OUT", "datatype": "FP32", "shape": [3]}
TENTHS = Tensor.from_values("OUT", "FP32", [0.1, 0.2, float("nan")])
TEXTS = Tensor.from_values("OUT", "BYTES", [b"a", b"\xff"])
TEXTS_OUT = {"name": "OUT", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 10}}

ACCEPTED: list[tuple[Reply, Ask]] = [
    (reply([JSON_OUT]), lambda e: e.answered()),
    (reply([JSON_OUT]), lambda e: e.tensors([INT32])),
    (reply([{**JSON_OUT, "data": [1.0, 2e0]}]), lambda e: e.tensors([INT32])),
    (reply([BINARY_OUT], ONE_TWO), lambda e: e.tensors([INT32])),
    (reply([BINARY_OUT], ONE_TWO, header=None), lambda e: e.tensors([INT32])),
    (reply([BINARY_OUT], ONE_TWO), lambda e: e.forms({"OUT": "binary"})),
    (reply([JSON_OUT]), lambda e: e.forms({"OUT": "json"})),
    (reply([{**FP32_OUT, "data": [0.1, 0.2, float("nan")]}]), lambda e: e.tensors([TENTHS])),
    (reply([{**FP32_OUT, "data": [0.10000000149011612, 0.2, float("nan")]}]), lambda e: e.tensors([TENTHS])),
    (reply([TEXTS_OUT], bytes.fromhex("01000000 61 01000000 ff")), lambda e: e.tensors([TEXTS])),
    (reply([JSON_OUT]), lambda e: e.free_of("inference-header-missing")),
    (reply([], status=400), lambda e: e.refused()),
    (reply([], status=500), lambda e: e.refused()),
]

REFUSED: list[tuple[Reply, Ask, str]] = [
    (
        failed(TransportFailure(FailureKind.CLOSED, "connection closed without an answer")),
        lambda e: e.answered(),
        "expected an answer with a 2xx status, got connection closed without an answer",
    ),
    (
        failed(None, 400, b'{"error":"no"}'),
        lambda e: e.tensors([INT32]),
        'expected an answer with a 2xx status, got HTTP 400: {"error":"no"}',
    ),
    (
        failed(TransportFailure(FailureKind.MALFORMED, "malformed HTTP answer: cut"), 200, b"{"),
        lambda e: e.answered(),
        "expected a whole answer with a 2xx status, got HTTP 200, malformed HTTP answer: cut",
    ),
    (reply([]), lambda e: e.tensors([INT32]), "expected an output OUT, got no outputs"),
    (reply([]), lambda e: e.output("OUT"), "expected an output OUT, got no outputs"),
    (
        reply([{**JSON_OUT, "shape": [2, 1]}]),
        lambda e: e.tensors([INT32]),
        "expected OUT with shape [2], got shape [2, 1]",
    ),
    (
        reply([BINARY_OUT], bytes.fromhex("01000000 00000002")),
        lambda e: e.tensors([INT32]),
        "expected OUT INT32 [2] = [1, 2], got [1, 33554432]: element 1 differs",
    ),
    (
        reply([{**FP32_OUT, "data": [0.1, 0.2001, float("nan")]}]),
        lambda e: e.tensors([TENTHS]),
        "expected OUT FP32 [3] = [0.1, 0.2, nan], got [0.1, 0.2001, nan]: element 1 differs",
    ),
    (
        reply([TEXTS_OUT], bytes.fromhex("01000000 61 01000000 fe")),
        lambda e: e.tensors([TEXTS]),
        'expected OUT BYTES [2] = ["a", bytes ff], got ["a", bytes fe]: element 1 differs',
    ),
    (reply([JSON_OUT]), lambda e: e.forms({"OUT": "binary"}), "expected OUT as binary data, got OUT as JSON"),
    (
        reply([BINARY_OUT], ONE_TWO, header=None),
        lambda e: e.free_of("inference-header-missing"),
        "expected Inference-Header-Content-Length: ",
    ),
    (
        reply([JSON_OUT]),
        lambda e: e.refused(),
        "expected a refusal with a 4xx status, got HTTP 200 with OUT INT32",
    ),
    (
        failed(TransportFailure(FailureKind.TIMEOUT, "no answer within 1 s")),
        lambda e: e.refused(),
        "expected an error answer, got no answer within 1 s",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "ask"), ACCEPTED)
def test_accepted(answer: Reply, ask: Ask) -> None:
    asked: list[Expectation] = [expect(answer)]
    ask(asked[0])
    assert asked[0].reply is answer


@pytest.mark.parametrize(("answer", "ask", "text"), REFUSED)
def test_refused(answer: Reply, ask: Ask, text: str) -> None:
    with pytest.raises(UnmetError) as unmet:
        ask(expect(answer, "BIN-ORDER-O"))
    assert str(unmet.value).startswith(text)
    assert unmet.value.requirement == "BIN-ORDER-O"
    assert unmet.value.reply is answer


def test_the_first_wrong_byte_is_known() -> None:
    wrong = reply([TEXTS_OUT], bytes.fromhex("01000000 61 01000000 fe"))
    with pytest.raises(UnmetError) as unmet:
        expect(wrong).tensors([TEXTS])
    assert unmet.value.offset == len(wrong.body) - 5


@pytest.mark.parametrize(
    ("value", "same"), [(0.2, True), (0.200000000000001, True), (0.2000001, False), (0.3, False), (float("nan"), False)]
)
def test_decimals_in_json_are_right_when_near(value: float, same: bool) -> None:
    expected = Tensor.from_values("OUT", "FP64", [0.2])
    answer = reply([{"name": "OUT", "datatype": "FP64", "shape": [1], "data": [value]}])
    if same:
        assert expect(answer).tensors([expected])
    else:
        with pytest.raises(UnmetError):
            expect(answer).tensors([expected])
