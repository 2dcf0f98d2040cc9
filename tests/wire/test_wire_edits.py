"""Edits change the member that their path names, in a JSON object and in a protobuf message alike."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.wire.edits import DocumentEdit, Drop, Repeat, Set, chain, cut, plus, times, written
from conformance.wire.grpc_request import load_stubs

INPUTS: list[dict[str, Any]] = [
    {"name": "A", "datatype": "INT32", "shape": [2, 3]},
    {"name": "B", "datatype": "BYTES", "shape": [1]},
]
ROWS: dict[str, tuple[DocumentEdit, list[dict[str, Any]]]] = {
    "set-by-index": (Set("inputs.-1.name", "C"), [INPUTS[0], {**INPUTS[1], "name": "C"}]),
    "set-by-name": (Set("inputs.B.shape", [4]), [INPUTS[0], {**INPUTS[1], "shape": [4]}]),
    "set-by-datatype": (Set("inputs.@INT8|BYTES.name", "C"), [INPUTS[0], {**INPUTS[1], "name": "C"}]),
    "set-from-old-value": (Set("inputs.A.shape.1", times(-2)), [{**INPUTS[0], "shape": [2, -6]}, INPUTS[1]]),
    "set-part-of-array": (
        chain(Set("inputs.A.shape", plus([5])), Set("inputs.B.shape", cut(1))),
        [{**INPUTS[0], "shape": [2, 3, 5]}, {**INPUTS[1], "shape": []}],
    ),
    "set-as-text": (Set("inputs.A.name", written("+{}")), [{**INPUTS[0], "name": "+A"}, INPUTS[1]]),
    "append-an-entry": (
        Set("inputs", plus([{"name": "C", "datatype": "BOOL", "shape": [1]}])),
        [*INPUTS, {"name": "C", "datatype": "BOOL", "shape": [1]}],
    ),
    "drop-entry": (Drop("inputs.A"), INPUTS[1:]),
    "drop-array": (Drop("inputs"), []),
    "repeat-last": (Repeat("inputs.A"), [*INPUTS, INPUTS[0]]),
    "repeat-before": (Repeat("inputs.B", 0), [INPUTS[1], *INPUTS]),
    "change-a-copy": (chain(Repeat("inputs.B"), Set("inputs.-1.shape.0", 7)), [*INPUTS, {**INPUTS[1], "shape": [7]}]),
}


@pytest.mark.parametrize("name", ROWS)
def test_edit_changes_json(name: str) -> None:
    edit, expected = ROWS[name]
    document = {"inputs": [{**entry, "shape": list(entry["shape"])} for entry in INPUTS]}
    edit(document)
    assert document.get("inputs", []) == expected


@pytest.mark.parametrize("name", ROWS)
def test_edit_changes_protobuf_message(name: str) -> None:
    edit, expected = ROWS[name]
    message = load_stubs().ModelInferRequest(inputs=INPUTS)
    edit(message)
    assert message == load_stubs().ModelInferRequest(inputs=expected)


def test_drop_removes_member_or_field() -> None:
    document, message = {"id": "1", "inputs": []}, load_stubs().ModelInferRequest(id="1")
    Drop("id")(document)
    Drop("id")(message)
    assert (document, message.id) == ({"inputs": []}, "")


def test_value_of_edit_is_copied() -> None:
    edit = Set("shape", [1])
    first: dict[str, Any] = {}
    edit(first)
    first["shape"].append(2)
    second: dict[str, Any] = {}
    edit(second)
    assert second == {"shape": [1]}


@pytest.mark.parametrize("path", ["inputs.C.shape", "inputs.@FP32.shape", "inputs.5.shape", "outputs.0.name"])
def test_missing_entry_is_a_lookup_error(path: str) -> None:
    with pytest.raises(LookupError):
        Set(path, 1)({"inputs": INPUTS})
