"""A wrong request is the valid one, changed by the edits of its row and in nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.checks.support.wrong_requests import WrongRequest, send_binary, send_json
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.wire.edits import Drop, Set, cut, plus
from conformance.wire.message_edits import Body, Data, Edit, Header, Path, measure_json, set_length
from conformance.wire.request import INFERENCE_HEADER
from conformance.wire.tensor import Tensor

ADD_SUB = Model(load()["add_sub"], "add_sub")
VALID = send_binary(ADD_SUB).message()
DEPLOYED = DeployedModel(
    derive_role("m", [TensorSpec("X", "FP32", (1,))], [TensorSpec("Y", "FP32", (1,))]),
    "m",
    tensors=(Tensor.from_values("X", "FP32", [0.5]),),
)


def list_changes(*edits: Edit) -> dict[str, Any]:
    """Return the attributes of the valid request that edits change."""
    wrong = WrongRequest(send_binary, edits)(ADD_SUB)
    names = ("path", "headers", "body")
    return {name: getattr(wrong, name) for name in names if getattr(wrong, name) != getattr(VALID, name)}


def replace_length(*values: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of the valid request with these inference headers."""
    return (*VALID.with_header(INFERENCE_HEADER, None).headers, *[(INFERENCE_HEADER, value) for value in values])


@pytest.mark.parametrize(
    ("edits", "changes"),
    [
        ((), {}),
        ((Path("/v2"),), {"path": "/v2"}),
        ((Body(cut(1)),), {"body": VALID.body[:-1]}),
        ((Body(b""),), {"body": b""}),
        ((Data(plus(b"xy")),), {"body": VALID.body[:-12] + b"xy" + VALID.body[-12:]}),
        ((Data(b"xy", "A"),), {"body": VALID.body[:-12] + b"xy"}),
        ((Data(b"", of=None),), {"body": VALID.body[: VALID.json_length]}),
        ((set_length(),), {"headers": replace_length()}),
        ((set_length(measure_json(plus(1)), 0),), {"headers": replace_length(str(VALID.json_length + 1), "0")}),
        ((Header("X", "1"),), {"headers": (*VALID.headers, ("X", "1"))}),
    ],
)
def test_edits_change_one_part_of_the_request(edits: tuple[Edit, ...], changes: dict[str, Any]) -> None:
    assert list_changes(*edits) == changes


def test_inference_header_matches_changed_json() -> None:
    wrong = WrongRequest(send_binary, (Drop("inputs.0.datatype"),))(ADD_SUB)
    assert wrong.json_length < VALID.json_length
    assert wrong.header(INFERENCE_HEADER) == str(wrong.json_length)


def test_spans_follow_changed_data() -> None:
    wrong = WrongRequest(send_binary, (Data(b"xy"),))(ADD_SUB)
    first, second = [(start, end) for *_, start, end in wrong.spans]
    assert (wrong.body[slice(*first)], wrong.body[slice(*second)]) == (b"xy", VALID.body[-12:])


def test_fault_without_its_member_does_not_apply_to_a_deployed_model() -> None:
    wrong = WrongRequest(send_json, (Set("inputs.1.name", "Z"),))
    with pytest.raises(NotApplicableError, match="does not apply to m"):
        wrong(DEPLOYED)


def test_fault_without_its_member_is_an_error_of_the_table_on_a_role() -> None:
    with pytest.raises(LookupError):
        WrongRequest(send_json, (Set("inputs.2.name", "Z"),))(ADD_SUB)


def test_valid_request_of_a_row_has_no_fault() -> None:
    assert WrongRequest(send_binary, (Body(b""),)).build_valid(ADD_SUB) == VALID
