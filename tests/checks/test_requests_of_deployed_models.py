"""Requests to deployed models: right but for one thing, and with inputs whose answers show how they were read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.checks.errors.impossible_requests import REFUSALS
from conformance.checks.json_documents.coerced_elements import AS_INTEGERS, ESCAPED, WITH_EXPONENTS, ElementRewriting
from conformance.checks.support.inputs import choose_revealing_inputs, require_distinct_answers
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import NotApplicableError
from conformance.roles.roles import TensorSpec
from conformance.wire.tensor import Tensor

OWN = {refusal.fault: refusal for refusal in REFUSALS if refusal.fit is not None}


def model(datatype: str, declared: tuple[int, ...], values: Any) -> DeployedModel:
    role = derive_role("m", [TensorSpec("X", datatype, declared)], [TensorSpec("Y", "INT32", (-1,))])
    return DeployedModel(role, "m", tensors=(Tensor.from_values("X", datatype, values),))


ROWS = model("FP32", (-1, 3), [[0.5, 1, 2], [3, 4, 5]])
GOOD = {"name": "X", "shape": [2, 3], "datatype": "FP32", "data": [0.5, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("last-element-missing", {"data": [0.5, 1, 2, 3, 4]}),
        ("last-item-missing", {"data": [0.5, 1, 2]}),
        ("last-nested-element-missing", {"data": [[0.5, 1, 2], [3, 4]]}),
        ("one-item-too-many", {"data": [0.5, 1, 2, 3, 4, 5, 3, 4, 5]}),
        ("word-for-the-first-number", {"data": ["word", 1, 2, 3, 4, 5]}),
        ("null-for-the-first-number", {"data": [None, 1, 2, 3, 4, 5]}),
        ("dimensions-in-strings", {"shape": ["2", "3"]}),
        ("fixed-dimension-one-larger", {"shape": [2, 4], "data": [0.5, 1, 2, 3, 4, 5, 0.5, 1]}),
        ("minus-one-for-the-first-dimension", {"shape": [-1, 3]}),
        ("datatype-in-lower-case", {"datatype": "fp32"}),
    ],
)
def test_one_thing_is_wrong(fault: str, changed: dict[str, Any]) -> None:
    document = json.loads(OWN[fault].message(ROWS).body)
    assert document == {"inputs": [GOOD | changed]}


@pytest.mark.parametrize(
    ("fault", "of"),
    [
        ("last-element-missing", model("FP32", (-1,), [1])),
        ("last-item-missing", model("FP32", (-1, 2), [[1, 2]])),
        ("last-nested-element-missing", model("FP32", (-1, 1), [[1], [2]])),
        ("fixed-dimension-one-larger", model("FP32", (-1, -1), [[1, 2]])),
        ("fixed-dimension-one-larger", model("FP32", (2,), [[1, 2]])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_model_that_leaves_no_such_request_is_not_asked(fault: str, of: DeployedModel) -> None:
    with pytest.raises(NotApplicableError):
        OWN[fault].message(of)


def test_an_output_is_named_beside_the_first_and_an_input_that_no_model_has() -> None:
    listed = json.loads(OWN["unknown-output-beside-a-known-one"].message(ROWS).body)["outputs"]
    assert listed == [{"name": "Y"}, {"name": "PRODUCT"}]
    assert json.loads(OWN["output-twice"].message(ROWS).body)["outputs"] == [{"name": "Y"}] * 2
    further = OWN["input-that-the-model-does-not-have"].message(ROWS)
    assert [entry["name"] for entry in json.loads(further.body)["inputs"]] == ["X", "NO_SUCH_INPUT"]


@pytest.mark.parametrize(
    ("spelling", "datatype", "value", "text"),
    [
        (WITH_EXPONENTS, "FP64", 0.125, b"[1.25E-1]"),
        (WITH_EXPONENTS, "FP32", 2, b"[2E+0]"),
        (AS_INTEGERS, "FP32", 1.75, b"[2]"),
        (ESCAPED, "BYTES", "é", b'["\\u00e9"]'),
        (ESCAPED, "FP32", 0.5, b"[0.5]"),
    ],
)
def test_elements_are_written_otherwise(spelling: ElementRewriting, datatype: str, value: Any, text: bytes) -> None:
    message, _ = ElementRewriting(spelling.datatypes, spelling.write, None, spelling.adapt).build_message(
        model(datatype, (1,), [value])
    )
    assert b'"data":' + text in message.body


# --- inputs whose answers show how they were read ---------------------------------------------------------------------


def tensor(*values: int) -> Tensor:
    return Tensor.from_values("X", "INT32", list(values))


@dataclass(frozen=True, slots=True)
class Parity(DeployedModel):
    """A model that says whether the sum of its input is even."""

    def find_outputs(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return (Tensor.from_values("Y", "INT32", [int(tensors[0].array.sum()) % 2]),)


SAMPLES = ((tensor(2, 2),), (tensor(4, 4),), (tensor(4, 1),), (tensor(3, 2),))
MODEL = Parity(
    derive_role("m", [TensorSpec("X", "INT32", (2,))], [TensorSpec("Y", "INT32", (1,))]),
    "m",
    tensors=SAMPLES[0],
    samples=SAMPLES,
    varies=True,
)


def test_inputs_are_drawn_until_the_misread_ones_are_answered_otherwise() -> None:
    found = choose_revealing_inputs(MODEL, lambda tensors: [tensor(int(tensors[0].array[0]), 0)])
    assert found == SAMPLES[2]


def test_nothing_is_judged_where_all_are_answered_as_if_misread() -> None:
    with pytest.raises(NotApplicableError, match="m gives the same answer whether its inputs are read"):
        choose_revealing_inputs(MODEL, lambda tensors: tensors)


def test_some_of_several_inputs_have_to_be_answered_otherwise_than_the_first() -> None:
    require_distinct_answers(MODEL, SAMPLES[0], SAMPLES[1], SAMPLES[2])
    with pytest.raises(NotApplicableError, match="same answer to different inputs"):
        require_distinct_answers(MODEL, SAMPLES[0], SAMPLES[1])
