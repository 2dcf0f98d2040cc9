"""What exported models compute is what the suite expects of them, and what arithmetic by hand says."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformance.export import server_formats as formats
from conformance.roles import roles
from conformance.roles.model import Model
from tests.support.tables import on_each

TEMPLATES = Path(__file__).parents[2] / "conformance" / "export" / "templates"
Array = np.ndarray[Any, Any]


@pytest.fixture
def compute(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load(monkeypatch, "all-servers", "role_compute")


@pytest.fixture
def tensors(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return Triton's side, with a backend that only passes on what it is given."""
    tensor = SimpleNamespace(from_dlpack=lambda name, tensor: (name, tensor))
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", SimpleNamespace(Tensor=tensor))
    return load(monkeypatch, "triton-server", "triton_tensors")


@pytest.fixture
def frontend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return Dynamo's side, without Dynamo."""
    load(monkeypatch, "all-servers", "role_compute")
    exceptions = SimpleNamespace(InvalidArgument=type("InvalidArgument", (Exception,), {}))
    nothing = SimpleNamespace(KserveGrpcService=None, PythonAsyncEngine=None, DistributedRuntime=None)
    for name, module in {"llm": nothing, "llm.exceptions": exceptions, "runtime": nothing}.items():
        monkeypatch.setitem(sys.modules, f"dynamo.{name}", module)
    monkeypatch.setitem(sys.modules, "dynamo", SimpleNamespace())
    return load(monkeypatch, "dynamo-server", "frontend")


def load(monkeypatch: pytest.MonkeyPatch, folder: str, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(TEMPLATES / folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def as_exported(array: Array, datatype: str) -> Array:
    """Return a tensor of the suite as an exported model has it: BF16 as its bits."""
    return array.view(np.uint16) if datatype == "BF16" else array


@on_each(list(product(roles.load(), [0, 77, 200])))
def test_models_compute_what_the_suite_expects(name: str, salt: int, *, compute: ModuleType) -> None:
    model = Model(roles.load()[name], name, salt)
    sample = model.sample(batch=1 + salt % 8)
    role = formats.describe_role(model.role, *model.role.versions[-1:])
    compute.check(role, [(tensor.name, tensor.datatype, tensor.shape) for tensor in reversed(sample)])
    given = {tensor.name: as_exported(tensor.array, tensor.datatype) for tensor in reversed(sample)}
    answered = compute.run(role, given)
    for tensor, array in zip(model.expected(sample), answered, strict=True):
        wanted = as_exported(tensor.array, tensor.datatype)
        assert array.dtype == compute.DTYPES[tensor.datatype] == wanted.dtype
        assert array.shape == tensor.shape
        assert array.tolist() == wanted.tolist()


CASES: list[tuple[str, dict[str, Array], list[Array]]] = [
    # FP32 3f80_8000 is a tie between 3f80 and 3f81, 3f81_8000 between 3f81 and 3f82: the even one wins both times.
    (
        "cast_fp32_bf16",
        {"INPUT": np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0xFF800000], "<u4").view("<f4")},
        [np.array([0x3F80, 0x3F82, 0x3F81, 0x7F80, 0xFF80], "<u2")],
    ),
    ("cast_bf16_fp32", {"INPUT": np.array([0x3F80, 0xC040], "<u2")}, [np.array([1.0, -3.0], "<f4")]),
    ("cast_fp32_fp16", {"INPUT": np.array([1e9, 0.5], "<f4")}, [np.array([np.inf, 0.5], "<f2")]),
    (
        "add_sub",
        {"A": np.array([5, 2**31 - 1], "<i4"), "B": np.array([7, 1], "<i4")},
        [np.array([12, -(2**31)], "<i4"), np.array([-2, 2**31 - 2], "<i4")],
    ),
    ("weighted_sum", {"INPUT": np.array([[2**31 - 1, 2], [3, 4]], "<i4")}, [np.array([2147483676], "<i8")]),
    ("weighted_sum", {"INPUT": np.zeros((0, 3), "<i4")}, [np.array([0], "<i8")]),
    (
        "transpose",
        {"INPUT": np.array([[[1, 2, 3]], [[4, 5, 6]]], "<i4")},
        [np.array([[[1, 4]], [[2, 5]], [[3, 6]]], "<i4"), np.array([[b"1"], [b"2"], [b"3"]], object)],
    ),
    (
        "documented_binary",
        {"input0": np.array([[1, 2], [3, 4]], "<u4"), "input1": np.array([True, False, True])},
        [np.array([[1, 1], [0, 2], [1, 3]], "<f4")],
    ),
    (
        "documented_all_outputs",
        {"input_tensor": np.array([[1.5, -2]], "<f4")},
        [np.array([[1.5, -2], [-2, 1.5], [0, 0]], "<f2"), np.array([[1.5, -2], [-2, 1.5]], "<f4")],
    ),
]


@pytest.mark.parametrize(("name", "inputs", "outputs"), CASES)
def test_models_compute_by_hand(
    name: str, inputs: dict[str, Array], outputs: Sequence[Array], compute: ModuleType
) -> None:
    answered = compute.run(formats.describe_role(roles.load()[name]), inputs)
    assert [(array.dtype, array.tolist()) for array in answered] == [(each.dtype, each.tolist()) for each in outputs]


def test_transposed_outputs_keep_their_memory(compute: ModuleType) -> None:
    numbers = np.arange(6, dtype="<i4").reshape(2, 1, 3)
    moved, texts = compute.run(formats.describe_role(roles.load()["transpose"]), {"INPUT": numbers})
    assert moved.base is numbers.base
    assert not moved.flags["C_CONTIGUOUS"]
    assert texts.base is not None


@pytest.mark.parametrize(("version", "right"), [("1", [6, -1]), ("2", [7, 0])])
def test_each_version_adds_its_number(version: str, right: list[int], compute: ModuleType) -> None:
    role = formats.describe_role(roles.load()["versioned"], version)
    (added,) = compute.run(role, {"INPUT": np.array([5, -2], "<i4")})
    assert (added.dtype, added.tolist()) == (np.dtype("<i4"), right)


def test_nan_stays_nan_in_bf16(compute: ModuleType) -> None:
    (bits,) = compute.run(
        formats.describe_role(roles.load()["cast_fp32_bf16"]),
        {"INPUT": np.array([0x7F800001, 0xFFFFFFFF], "<u4").view("<f4")},
    )
    assert [(word & 0x7F80, word & 0x007F > 0) for word in bits.tolist()] == [(0x7F80, True), (0x7F80, True)]


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("add_sub", {"A": np.zeros(3, "<i4"), "B": np.zeros(1, "<i4")}, r"A has the shape \[3\] and B \[1\]"),
        ("emit", {"COUNTS": np.array([-1, 2], "<i4")}, r"COUNTS is \[-1, 2\]"),
        ("emit", {"COUNTS": np.array([1, 2**31 - 1], "<i4")}, "a count is 0 to 100000"),
        ("documented_scores", {"input0": np.array([[0, 1], [2, 3]], "<u4")}, "each is a place from 1 to 4"),
        ("documented_scores", {"input0": np.array([[1, 1], [2, 5]], "<u4")}, "each is a place from 1 to 4"),
    ],
)
def test_values_that_models_refuse(name: str, inputs: dict[str, Array], message: str, compute: ModuleType) -> None:
    with pytest.raises(compute.RefusedError, match=message):
        compute.run(formats.describe_role(roles.load()[name]), inputs)


GOOD = ("INPUT", "INT32", [2, 3])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("fixed", [GOOD], ""),
        ("batching", [("INPUT", "INT32", [8, 3])], ""),
        ("rank2", [("INPUT", "INT32", [0, 3])], ""),
        ("fixed", [], r"the inputs are \[\], not \['INPUT'\]"),
        ("fixed", [GOOD, GOOD], r"the inputs are \['INPUT', 'INPUT'\], not \['INPUT'\]"),
        ("fixed", [("OUTPUT", "INT32", [2, 3])], "the inputs are"),
        ("fixed", [("INPUT", "INT64", [2, 3])], "input INPUT is INT64, not INT32"),
        ("fixed", [("INPUT", "INT32", [3, 2])], r"input INPUT has the shape \[3, 2\], not \[2, 3\]"),
        ("fixed", [("INPUT", "INT32", [2])], r"input INPUT has the shape \[2\]"),
        ("rank2", [("INPUT", "INT32", [-1, 3])], r"input INPUT has the shape \[-1, 3\]"),
        ("batching", [("INPUT", "INT32", [65, 3])], "input INPUT is a batch of 65, more than 64"),
        ("batching", [("INPUT", "INT32", [3])], r"input INPUT has the shape \[3\], not \[-1, 3\]"),
    ],
)
def test_inputs_are_held_against_the_role(
    name: str, given: list[tuple[str, str, list[int]]], message: str, compute: ModuleType
) -> None:
    role = formats.describe_role(roles.load()[name])
    if message:
        with pytest.raises(compute.RefusedError, match=message):
            compute.check(role, given)
    else:
        assert compute.check(role, given) is None


# --- BF16 as Triton takes it ----------------------------------------------------------------------------------------


class BackendTensor:
    """A BF16 tensor as Triton's backend hands it over, made from what was written to it."""

    def __init__(self, written: Any, shape: tuple[int, ...]) -> None:
        self._written, self._shape = written, shape

    def shape(self) -> tuple[int, ...]:
        return self._shape

    def to_dlpack(self) -> object:
        return self._written.__dlpack__()


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4, 1)])
def test_bf16_goes_through_dlpack(shape: tuple[int, ...], tensors: ModuleType) -> None:
    bits = np.array([0x3F80, 0xC040, 0x7FC1, 0x0001], "<u2").reshape(shape)
    name, written = tensors.write("OUTPUT", bits, "BF16")
    assert name == "OUTPUT"
    assert written.__dlpack_device__() == (1, 0)
    memory = tensors._tensor_of(written.__dlpack__())
    assert (memory.code, memory.bits, memory.lanes, memory.ndim) == (4, 16, 1, len(shape))
    again = tensors.read(BackendTensor(written, shape), "BF16")
    assert again.shape == shape
    assert again.tolist() == bits.tolist()


def test_bf16_without_elements(tensors: ModuleType) -> None:
    assert tensors.read(BackendTensor(None, (0, 3)), "BF16").shape == (0, 3)


def test_a_view_is_written_row_by_row(tensors: ModuleType) -> None:
    bits = np.arange(6, dtype="<u2").reshape(2, 3).T
    _, written = tensors.write("OUTPUT", bits, "BF16")
    assert tensors.read(BackendTensor(written, (3, 2)), "BF16").tolist() == [[0, 3], [1, 4], [2, 5]]


# --- Dynamo ----------------------------------------------------------------------------------------------------------


def run_engine(engine: Any, *tensors: dict[str, Any], outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    async def answer() -> dict[str, Any]:
        listed = [{"name": name} for name in outputs]
        (item,) = [item async for item in engine.generate({"tensors": tensors, "outputs": listed})]
        return dict(item)

    return asyncio.run(answer())


def dynamo_tensor(name: str, datatype: str, shape: list[int], values: list[Any]) -> dict[str, Any]:
    metadata = {"name": name, "data_type": datatype, "shape": shape}
    return {"metadata": metadata, "data": {"data_type": datatype, "values": values}}


def test_dynamo_tensors_are_lists(frontend: ModuleType) -> None:
    engine = frontend.RoleEngine("m", formats.describe_role(roles.load()["identity_bytes"]))
    answer = run_engine(engine, dynamo_tensor("INPUT", "Bytes", [2], [[255, 0], []]))
    assert answer == {
        "model": "m",
        "tensors": [dynamo_tensor("OUTPUT", "Bytes", [2], [[255, 0], []])],
        "parameters": {},
    }


def test_dynamo_leaves_the_choice_of_outputs_to_the_engine(frontend: ModuleType) -> None:
    engine = frontend.RoleEngine("m", formats.describe_role(roles.load()["add_sub"]))
    tensors = [dynamo_tensor(name, "Int32", [1], [value]) for name, value in (("B", 2), ("A", 7))]
    assert run_engine(engine, *tensors, outputs=("DIFFERENCE",))["tensors"] == [
        dynamo_tensor("DIFFERENCE", "Int32", [1], [5])
    ]
    with pytest.raises(frontend.InvalidArgument, match="there is no output 'NONE'"):
        run_engine(engine, *tensors, outputs=("NONE",))
    with pytest.raises(frontend.InvalidArgument, match="the inputs are"):
        run_engine(engine, tensors[0])
