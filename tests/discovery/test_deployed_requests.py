"""Requests to deployed models: what JSON cannot represent is not asked of it, and no more elements than are taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.discovery.control_answers import ControlAnswers
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import BlockedError, NotApplicableError
from conformance.roles.roles import TensorSpec
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

CONTROL = ControlAnswers(Target(Settings("http://127.0.0.1:1")))
FLOATS = Tensor.from_values("X", "FP32", [[1, 2], [3, 4]])


def deployed(*tensors: Tensor, shape: tuple[int, ...] = (-1, 2), **fields: Any) -> DeployedModel:
    inputs = [TensorSpec(tensor.name, tensor.datatype, shape) for tensor in tensors]
    outputs = [TensorSpec("Y", "FP32", (-1,)), TensorSpec("Z", "BYTES", (1,))]
    return DeployedModel(derive_role("m", inputs, outputs), "m", tensors=tensors, **{"control": CONTROL, **fields})


@pytest.mark.parametrize(
    ("options", "is_asked"),
    [
        ({"send": "json"}, False),
        ({"send": "json", "outputs": ["Y"]}, True),
        ({"send": "json", "outputs": ["Z"]}, False),
        ({"send": "json", "outputs": [RequestedOutput("Z", True)]}, True),
        ({"send": "json", "want": "binary"}, True),
        ({"send": "json", "binary_data_output": True}, True),
        ({"send": "json", "outputs": ["Z"], "binary_data_output": True}, False),
    ],
)
def test_json_is_not_asked_for_what_it_does_not_carry(options: dict[str, Any], is_asked: bool) -> None:
    model = deployed(FLOATS, binary_only=("Z",))
    if is_asked:
        model.request(**options)
    else:
        with pytest.raises(NotApplicableError, match="JSON cannot represent Z"):
            model.request(**options)


def test_inputs_that_json_does_not_carry_are_not_sent_as_json() -> None:
    model = deployed(Tensor.from_values("X", "BYTES", [[b"\xff", b""]]))
    model.request(want="binary")
    with pytest.raises(NotApplicableError, match="JSON cannot represent X"):
        model.request(send=(), want="binary")


def test_typed_contents_over_grpc_carry_all_of_it() -> None:
    replace(deployed(FLOATS, binary_only=("Y",)), control=replace(CONTROL, is_over_grpc=True)).request(send="json")


def test_a_model_that_answers_nothing_is_not_asked() -> None:
    with pytest.raises(BlockedError, match="not in the mood"):
        deployed(FLOATS, trouble="not in the mood").request(send="json")
    with pytest.raises(BlockedError, match="m answers no plain JSON request: no"):
        deployed(FLOATS, json_trouble="no").request(want="binary", send=())
    deployed(FLOATS, json_trouble="no").request(want="binary")


@pytest.mark.parametrize(
    ("shape", "fields", "limits"),
    [
        ((-1, 2), {"takes_counts": True}, {1: 1, 2: 2, 3: 2, 1000: 2}),
        ((-1, 2), {}, {2: 2, 16: 16, 1000: 16}),
        ((2, 2), {"takes_counts": True}, {1000: 1000}),
        ((-1, -1, 2), {"takes_counts": True}, {1: 1, 1000: 2}),
    ],
)
def test_no_more_elements_are_sent_than_a_model_is_known_to_take(
    shape: tuple[int, ...], fields: dict[str, Any], limits: dict[int, int]
) -> None:
    model = deployed(FLOATS, shape=shape, **fields)
    assert {length: model.limit_length(length) for length in limits} == limits


def test_outputs_are_those_of_the_metadata() -> None:
    assert deployed(FLOATS, declared={"Y": "FP32", "W": "FP32"}).declared_outputs == ("Y", "W")
    assert deployed(FLOATS).declared_outputs == ("Y", "Z")
