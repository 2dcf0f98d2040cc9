"""A wrong value names the first property whose simple requests get wrong values as well, and else the row's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from conformance.judging.selection import find_row
from reference_server.faults import Fault, switch_on
from reference_server.request import InferRequest
from reference_server.tensors import Tensor
from tests.support.sightings import judge_fault, run_server

READ, WRITE, ANSWER = "tensors.decode_binary", "tensors.encode_binary", "response.build"
RAW_CALL, CALL, LIST_CALL = "grpc_contents.decode_raw", "grpc_response.build", "grpc_request.parse_outputs"
STRINGS, PACKED = ("datatypes.strings-are-read", "nul"), ("bytes.outputs-are-packed", "INT32-odd-rows")
WITH_ID = ("headers.request-json-is-as-long-as-the-header-says", "characters-beyond-ascii")
GOLDEN, EMIT = ("golden.valid-case-is-answered", "fp32-binary"), ("golden.valid-case-is-answered", "all-outputs-empty")
RAW_HALVES = ("grpc.half-floats-are-raw", "FP16-both-largest")
TYPED_HALVES = ("grpc.half-floats-are-raw", "FP16-written-for-typed-inputs")
RANKED_HALVES = ("grpc.short-floats-right-or-refused", "fp16")
ID_CALL = ("grpc.each-value-is-right-alone", "calls-id-four-bytes")
CLASSES = ("grpc.golden-call-is-answered", "classification-page")


def spoil(tensor: Tensor) -> Tensor:
    """Return a tensor whose first element has another value."""
    elements = tensor.elements.copy()
    if elements.size:
        elements[0] = b"x" + elements[0] if tensor.datatype == "BYTES" else 100
    return replace(tensor, elements=elements)


def read_wrong(original: Callable[..., Tensor], *arguments: Any) -> Tensor:
    return spoil(original(*arguments))


def read_strings_wrong(original: Callable[..., Tensor], datatype: str, *arguments: Any) -> Tensor:
    tensor = original(datatype, *arguments)
    return spoil(tensor) if datatype == "BYTES" else tensor


def write_wrong(original: Callable[..., Any], tensor: Tensor) -> Any:
    return original(spoil(tensor))


def compute_wrong(when: Callable[[InferRequest, Tensor], object]) -> Callable[..., Any]:
    """Return a fault's body: outputs for which the condition holds have wrong values, however they are encoded."""

    def build(original: Callable[..., Any], model: Any, request: InferRequest, produced: Mapping[str, Tensor]) -> Any:
        tensors = {name: spoil(tensor) if when(request, tensor) else tensor for name, tensor in produced.items()}
        return original(model, request, tensors)

    return build


def is_string(_: InferRequest, tensor: Tensor) -> bool:
    return tensor.datatype == "BYTES"


def has_id(request: InferRequest, _: Tensor) -> object:
    return request.id


class Listed(list[Any]):
    """The outputs that a request lists."""


def answer_lists_wrong(original: Callable[..., Any], model: Any, request: Any, *produced: Mapping[str, Tensor]) -> Any:
    """Read a list of outputs, or build an answer, which is wrong if outputs are listed."""
    if not produced:
        listed = request.get("outputs") if isinstance(request, dict) else request.outputs
        return Listed(original(model, request)) if listed else original(model, request)
    return compute_wrong(lambda found, _: isinstance(found.outputs, Listed))(original, model, request, *produced)


@pytest.mark.parametrize(
    ("row", "steps", "body", "requirement"),
    [
        (STRINGS, ANSWER, compute_wrong(is_string), "OIP-ANSWER"),
        (WITH_ID, ANSWER, compute_wrong(has_id), "OIP-ANSWER"),
        (GOLDEN, "request.parse_outputs response.build", answer_lists_wrong, "OIP-OUTPUTS-LISTED"),
        (STRINGS, READ, read_wrong, "BIN-DATATYPES-I"),
        (EMIT, READ, read_wrong, "BIN-DATATYPES-I"),
        (STRINGS, READ, read_strings_wrong, "BIN-BYTES-I"),
        (PACKED, WRITE, write_wrong, "BIN-DATATYPES-O"),
        (RAW_HALVES, RAW_CALL, read_wrong, "GRPC-RAW"),
        (RANKED_HALVES, "grpc_contents.encode_raw", write_wrong, "GRPC-RAW"),
        (TYPED_HALVES, "grpc_contents.encode_raw", write_wrong, "GRPC-RAW"),
        (RAW_HALVES, CALL, compute_wrong(lambda *_: True), "GRPC-TYPED"),
        (CLASSES, f"{LIST_CALL} {CALL}", answer_lists_wrong, "OIP-OUTPUTS-LISTED/grpc"),
        (ID_CALL, CALL, compute_wrong(has_id), "GRPC-TYPED"),
        (ID_CALL, CALL, compute_wrong(lambda request, _: not (request.id or "").isascii()), "GRPC-TYPED"),
    ],
)
def test_wrong_values_name_what_a_control_shows(
    row: tuple[str, str], steps: str, body: Callable[..., Any], requirement: str
) -> None:
    assert judge(row, steps, body) == requirement


def test_values_that_are_wrong_by_turns_accuse_no_property() -> None:
    turns = count()
    assert judge(PACKED, ANSWER, compute_wrong(lambda *_: next(turns) % 2)) == "BIN-PACKED-O"


def judge(row: tuple[str, str], steps: str, body: Callable[..., Any]) -> str:
    """Return the requirement that a row names on a server with this body in place of steps."""
    fault, found = Fault("", tuple(steps.split()), (), body), find_row(*row)
    assert found is not None
    with run_server() as server, switch_on(fault):
        (result,) = judge_fault(server, fault, [found])
    assert result.failure is not None, result.message
    return result.failure.requirement
