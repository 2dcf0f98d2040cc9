"""`roles.toml` keeps its schema, and every role is one that can be built, asked and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.roles import roles
from conformance.roles.model import Model
from conformance.roles.roles import Role
from conformance.spec import data_files
from conformance.spec.schemas import load_schema
from conformance.wire.datatypes import FLOATS
from tests.support.tables import on_each, own_name

ROLES: Mapping[str, Any] = data_files.load_toml("roles/roles.toml")
SCHEMA = Draft202012Validator(load_schema("roles"))

# Open Inference Protocol, REST, "Tensor Data Types"; BF16 is Triton's.
NATIVE_SIZE = {
    "BOOL": 1,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 4,
    "UINT64": 8,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FP16": 2,
    "FP32": 4,
    "FP64": 8,
    "BYTES": 0,
    "BF16": 2,
}


def _with(compute: str) -> list[str]:
    return [name for name, role in ROLES.items() if role["compute"] == compute]


def _signatures(tensors: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[int]]]:
    return [(tensor["datatype"], tensor["shape"]) for tensor in tensors]


def _shapes(tensors: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    return [tensor["shape"] for tensor in tensors]


def _role(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "X", "datatype": "INT32", "shape": [-1]}
    role = {"purpose": "p", "compute": "identity", "inputs": [tensor], "outputs": [tensor]}
    return {key: value for key, value in {**role, **changes}.items() if value is not None}


def test_roles_keep_their_schema() -> None:
    errors = SCHEMA.iter_errors(dict(ROLES))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize(
    "role",
    [
        _role(),
        _role(compute="table", table=[1.5]),
        _role(batching=True),
        _role(labels={"X": ["a"]}),
        _role(versions=["1", "2"], optional=True),
    ],
)
def test_schema_accepts(role: dict[str, Any]) -> None:
    assert SCHEMA.is_valid({"a_role": role})


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("A-Role", _role()),
        ("r", _role(purpose=None)),
        ("r", _role(compute="guess")),
        ("r", _role(compute="table")),
        ("r", _role(table=[1.5])),
        ("r", _role(batching=8)),
        ("r", _role(inputs=[])),
        ("r", _role(labels={"X": []})),
        ("r", _role(labels={"X": ["two\nlines"]})),
        ("r", _role(inputs=[{"name": "X", "datatype": "STRING", "shape": [1]}])),
        ("r", _role(inputs=[{"name": "X", "datatype": "INT32", "shape": [-2]}])),
        ("r", _role(inputs=[{"name": "X", "datatype": "INT32", "shape": [0]}])),
        ("r", _role(inputs=[{"name": "X", "datatype": "INT32"}])),
        ("r", _role(max_batch=8)),
        ("r", _role(versions=["1"])),
        ("r", _role(versions=["1", "b"])),
    ],
)
def test_schema_refuses(name: str, role: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid({name: role})


def test_schema_knows_every_datatype() -> None:
    assert load_schema("roles")["$defs"]["tensor"]["properties"]["datatype"]["enum"] == list(NATIVE_SIZE)


@pytest.mark.parametrize("datatype", NATIVE_SIZE)
def test_every_datatype_has_an_identity(datatype: str) -> None:
    role = ROLES[f"identity_{datatype.lower()}"]
    assert role["compute"] == "identity"
    assert _signatures(role["inputs"]) == _signatures(role["outputs"]) == [(datatype, [-1])]


def test_no_compute_is_unused() -> None:
    known = load_schema("roles")["$defs"]["role"]["properties"]["compute"]["enum"]
    assert {role["compute"] for role in ROLES.values()} == set(known)


@on_each(ROLES)
def test_tensor_names_differ(name: str) -> None:
    for side in ("inputs", "outputs"):
        names = [tensor["name"] for tensor in ROLES[name][side]]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", [name for name, role in ROLES.items() if "labels" in role])
def test_labels_belong_to_outputs_and_number_no_more_than_classes(name: str) -> None:
    outputs = {tensor["name"]: tensor["shape"] for tensor in ROLES[name]["outputs"]}
    for output, labels in ROLES[name]["labels"].items():
        assert len(labels) <= prod(outputs[output])
        assert len(set(labels)) == len(labels)


@on_each(_with("identity"))
def test_identity_pairs_inputs_with_outputs(name: str) -> None:
    assert _signatures(ROLES[name]["inputs"]) == _signatures(ROLES[name]["outputs"])


@pytest.mark.parametrize("name", _with("cast"))
def test_cast_changes_datatypes_alone(name: str) -> None:
    inputs, outputs = ROLES[name]["inputs"], ROLES[name]["outputs"]
    assert _shapes(inputs) == _shapes(outputs)
    assert all(one["datatype"] != other["datatype"] for one, other in zip(inputs, outputs, strict=True))


@pytest.mark.parametrize("name", _with("add_sub"))
def test_add_sub_has_one_signature(name: str) -> None:
    role = ROLES[name]
    assert sorted(tensor["name"] for tensor in role["inputs"]) == ["A", "B"]
    assert [tensor["name"] for tensor in role["outputs"]] == ["SUM", "DIFFERENCE"]
    assert len({(datatype, *shape) for datatype, shape in _signatures([*role["inputs"], *role["outputs"]])}) == 1


@pytest.mark.parametrize(
    ("compute", "inputs", "outputs"),
    [
        ("length", [("BYTES", [-1])], [("INT32", [-1])]),
        ("weighted_sum", [("INT32", [-1, -1])], [("INT64", [1])]),
        ("emit", [("INT32", [2])], [("INT32", [-1]), ("BYTES", [-1])]),
        ("text", [("INT32", [-1])], [("INT32", [-1]), ("BYTES", [-1])]),
        ("transpose", [("INT32", [2, -1, 3])], [("INT32", [3, -1, 2]), ("BYTES", [3, -1])]),
        ("add_version", [("INT32", [-1])], [("INT32", [-1])]),
        ("documented_binary", [("UINT32", [2, 2]), ("BOOL", [3])], [("FP32", [3, 2])]),
        (
            "documented_mixed",
            [("FP16", [2, 2]), ("UINT32", [2, 2]), ("BOOL", [3])],
            [("FP16", [3, 2]), ("FP32", [2, 2])],
        ),
        ("documented_all_outputs", [("FP32", [1, 2])], [("FP16", [3, 2]), ("FP32", [2, 2])]),
        ("documented_raw", [("FP32", [4])], [("FP32", [3, 1]), ("FP32", [3, 1])]),
    ],
)
def test_signature_of_what_computes(
    compute: str, inputs: list[tuple[str, list[int]]], outputs: list[tuple[str, list[int]]]
) -> None:
    names = _with(compute)
    assert names
    for name in names:
        assert _signatures(ROLES[name]["inputs"]) == inputs
        assert _signatures(ROLES[name]["outputs"]) == outputs


@on_each([role for role in roles.load().values() if any(spec.datatype in FLOATS for spec in role.outputs)], own_name)
def test_a_role_computes_floats_unless_each_of_them_is_one_of_its_inputs(role: Role) -> None:
    model = Model(role, role.name)
    tensors = model.sample()
    sent, came = (
        {
            (one.datatype, element.tobytes())
            for one in found
            if one.datatype in FLOATS
            for element in one.array.reshape(-1)
        }
        for found in (tensors, model.expected(tensors))
    )
    assert role.computes_floats is not (came <= sent)
    assert {one.is_computed for one in model.expected(tensors)} == {role.computes_floats}


@pytest.mark.parametrize("name", _with("table"))
def test_table_maps_every_element_of_the_example(name: str) -> None:
    """Triton, Classification Extension, "HTTP/REST": the input [1, 2, 3, 4] gives [1.1, 3.3, 0.5, 2.4]."""
    role = ROLES[name]
    assert role["table"] == [1.1, 3.3, 0.5, 2.4]
    assert _signatures(role["inputs"]) == [("UINT32", [2, 2])]
    assert _signatures(role["outputs"]) == [("FP32", [4])]


@pytest.mark.parametrize("name", [name for name in ROLES if name.startswith("raw_")])
def test_raw_roles_say_whether_they_are_eligible(name: str) -> None:
    """Sources: triton-binary.raw-one-input, triton-binary.raw-variable-dimensions, triton-binary.raw-bytes-shape."""
    first, *others = ROLES[name]["inputs"]
    shape_fits = first["shape"] == [1] if first["datatype"] == "BYTES" else first["shape"].count(-1) <= 1
    verdict, _, _ = ROLES[name]["purpose"].partition(":")
    assert verdict == ("eligible" if shape_fits and not others else "not eligible")


def test_multi_tells_orders_apart() -> None:
    """Declared order, alphabetical order and order by size are three orders, so that a mix-up shows."""
    inputs = ROLES["multi"]["inputs"]
    names = [tensor["name"] for tensor in inputs]
    sizes = [NATIVE_SIZE[tensor["datatype"]] for tensor in inputs]
    assert len(names) >= 4
    assert len(set(sizes)) == len(sizes)
    assert sorted(names) not in (names, names[::-1])
    assert sorted(sizes) not in (sizes, sizes[::-1])
