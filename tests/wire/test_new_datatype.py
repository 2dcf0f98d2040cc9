"""A datatype is added in one table: what the suite sends and compares follows from it."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

from conformance.expect.difference import find_difference
from conformance.judging.selection import list_profile_rows
from conformance.roles import corner_values, sample_values, tensor_strategies
from conformance.roles.guessed_inputs import guess_inputs
from conformance.roles.model import Model
from conformance.roles.roles import Role, TensorSpec
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.fit import JSON
from conformance.wire import datatypes, json_data
from conformance.wire.datatypes import Datatype
from conformance.wire.tensor import Tensor, decode

FP8 = Datatype(
    "FP8",
    np.dtype(ml_dtypes.float8_e4m3fn),
    "float",
    has_json_form=False,
    json_tolerance=0.1,
    is_standard=False,
    words=np.dtype("u1"),
)
SPEC = TensorSpec("X", "FP8", (-1,))


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has it."""
    monkeypatch.setitem(datatypes._TABLE, "FP8", FP8)


def test_new_datatype_is_encoded_and_decoded() -> None:
    tensor = Tensor.from_values("X", "FP8", [1.5, -2.0, 0.0])
    assert bytes(tensor.to_bytes()).hex() == "3cc000"  # 1.5 = 0x3C, -2 = 0xC0 in E4M3, by hand
    assert decode("FP8", (3,), bytes.fromhex("3cc000")).tolist() == [1.5, -2.0, 0.0]
    assert tensor.to_json() == [1.5, -2.0, 0.0]
    assert json_data.from_json("FP8", (2,), [1.5, -2]).tolist() == [1.5, -2.0]


def test_new_datatype_has_samples_corners_and_guesses() -> None:
    sample = sample_values.make_sample_tensor("X", "FP8", (3,))
    assert (sample.datatype, sample.elements) == ("FP8", 3)
    assert corner_values.get_all_corners("FP8").size == 2
    assert next(iter(guess_inputs([SPEC], {})))[0].datatype == "FP8"
    model = Model(Role("x", "", "identity", (SPEC,), (SPEC,)), "x")
    assert model.request().message().body.endswith(bytes(model.sample()[0].to_bytes()))
    assert JSON.describe_mismatch((SPEC,), (SPEC,)) == "datatypes that JSON can represent"
    assert model.role.is_optional


def test_outputs_of_new_datatype_are_compared() -> None:
    right = Tensor.from_values("X", "FP8", [1.5, -2.0])
    assert find_difference(right, None, b"") is not None
    assert not np.array_equal(right.array, decode("FP8", (2,), bytes.fromhex("3cc1")))


def test_hypothesis_draws_tensors_of_new_datatype() -> None:
    @settings(max_examples=5, database=None)
    @given(tensor_strategies.tensors("X", "FP8"))
    def draw(tensor: Tensor) -> None:
        assert tensor.datatype == "FP8"

    draw()


ROWS_WITH_FP8 = """
from tests.wire.test_new_datatype import FP8, TRANSPORTS, datatypes
datatypes._TABLE["FP8"] = FP8
from conformance.judging.selection import list_profile_rows
print(len(list_profile_rows("certify", transports=("http", "grpc"))))
"""


def test_the_suite_has_no_more_rows_before_a_role_has_it() -> None:
    asked = subprocess.run([sys.executable, "-c", ROWS_WITH_FP8], capture_output=True, text=True, check=True)
    assert int(asked.stdout) == len(list_profile_rows("certify", transports=TRANSPORTS))
