"""Headers, sizes, forms and order on deployed models: what is sent, what fails none, and what is seen."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest

from conformance.checks.sizes.wrong_size_requests import REFUSALS
from conformance.checks.support.deployed_models import list_half_binary_outputs, require_no_lookup_table
from conformance.checks.support.inputs import reassign_by_position
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.spec.extensions import EXTENSIONS
from conformance.spec.outcome import Outcome
from conformance.wire.json_text import parse_json
from conformance.wire.tensor import Tensor
from reference_server.models import Model as Served
from reference_server.tensors import Tensor as Computed
from tests.support import unusual_models
from tests.support.deployed_judging import judge_models, list_bad, list_missed

AREAS = ("headers", "sizes", "overrides", "ordering")


# --- what is sent -----------------------------------------------------------------------------------------------------


def deployed(*tensors: Tensor, datatypes: Sequence[str] = ("FP32",)) -> DeployedModel:
    inputs = [TensorSpec(tensor.name, tensor.datatype, (-1,)) for tensor in tensors]
    outputs = [TensorSpec(f"Y{place}", datatype, (-1,)) for place, datatype in enumerate(datatypes)]
    return DeployedModel(derive_role("m", inputs, outputs), "m", tensors=tensors)


WRONG = {refusal.fault: refusal for refusal in REFUSALS if refusal.fit}


def test_a_wrong_size_is_the_only_fault_of_a_request_to_any_model() -> None:
    numbers, texts = Tensor.from_values("A", "FP64", [0.5, 0.25]), Tensor.from_values("B", "BYTES", ["é"])
    message = WRONG["one-element-short"].message(deployed(numbers, texts))
    document = parse_json(message.body[: message.json_length]).value
    assert document == {
        "inputs": [
            {"name": "A", "shape": [2], "datatype": "FP64", "parameters": {"binary_data_size": 8}},
            {"name": "B", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}},
        ]
    }
    assert message.body[message.json_length :] == np.float64(0.5).tobytes() + b"\2\0\0\0\xc3\xa9"


def test_a_size_is_moved_between_the_inputs_of_any_model() -> None:
    message = WRONG["size-moved-to-the-next-input"].message(
        deployed(Tensor.from_values("A", "FP64", [0.5, 0.25]), Tensor.from_values("B", "INT8", [1, 2, 3]))
    )
    document = parse_json(message.body[: message.json_length]).value
    assert isinstance(document, dict)
    assert [item["parameters"]["binary_data_size"] for item in document["inputs"]] == [8, 11]
    assert len(message.body) - message.json_length == 19


def test_a_size_is_not_moved_where_one_input_is_sent() -> None:
    with pytest.raises(NotApplicableError, match="sends only one input to m"):
        WRONG["size-moved-to-the-next-input"].message(deployed(Tensor.from_values("A", "FP64", [0.5, 0.25])))


def test_a_role_is_filled_with_values_and_a_deployed_model_with_its_own() -> None:
    multi = Model(load()["multi"], "multi")
    filled = {tensor.name: tensor for tensor in multi.fill({"IN_BOOL": [True, False]})}
    assert filled["IN_BOOL"].array.tolist() == [True, False]
    assert filled["IN_FP32"].array.tolist() == multi.sample()[2].array.tolist()
    assert multi.fill([7])[0].array.tolist() == [7]
    own = Tensor.from_values("A", "FP64", [0.5, 0.25])
    assert deployed(own).fill({"A": [1.0]}) == [own]


def test_outputs_without_a_json_form_are_binary_among_others() -> None:
    model = deployed(Tensor.from_values("A", "FP32", [0.5]), datatypes=("FP32", "FP16", "FP32", "FP32"))
    with mock.patch.object(DeployedModel, "binary_outputs", ("Y1",)):
        assert [output.binary_data for output in list_half_binary_outputs(model)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("other", "is_read"),
    [
        (Tensor.from_values("B", "INT32", [1, 0]), True),
        (Tensor.from_values("B", "INT32", [1, 2]), False),
        (Tensor.from_values("B", "UINT32", [1, 0]), False),
        (Tensor.from_values("B", "INT32", [1, 0, 1]), False),
    ],
    ids=("like-it", "beyond-its-integers", "another-datatype", "another-shape"),
)
def test_an_input_is_read_as_another_one_where_that_takes_it(other: Tensor, is_read: bool) -> None:
    declared = [Tensor.from_values("A", "INT32", [0, 1]), other]
    misread = reassign_by_position(declared, declared[::-1])
    found = None if misread is None else [(tensor.name, tensor.array.tolist()) for tensor in misread]
    assert found == ([("A", [1, 0]), ("B", [0, 1])] if is_read else None)


@pytest.mark.parametrize(("datatype", "is_spared"), [("INT64", True), ("FP32", False)])
def test_a_table_is_not_looked_up_at_any_octets(datatype: str, is_spared: bool) -> None:
    model = deployed(Tensor.from_values("A", datatype, [0, 1]))
    if is_spared:
        with pytest.raises(NotApplicableError, match="m may use integers as table indices"):
            require_no_lookup_table(model)
    else:
        require_no_lookup_table(model)


# --- right models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        unusual_models.COUNTER,
        unusual_models.BY_PLACE,
        unusual_models.NAN,
        unusual_models.OCTETS,
        unusual_models.SMALL_TABLE,
    ],
    ids=lambda odd: str(odd.name),
)
def test_an_odd_model_fails_nothing(odd: Served) -> None:
    with unusual_models.serve(odd) as url:
        results = judge_models(url, AREAS, odd.name)
    assert list_bad(results) == []
    assert sum(result.outcome is Outcome.PASS for result in results) > 60


@pytest.mark.parametrize("name", ["multi", "add_sub", "identity_fp16", "identity_bytes", "scores", "fixed", "emit"])
def test_a_right_model_fails_nothing(name: str) -> None:
    with unusual_models.serve() as url:
        results = judge_models(url, AREAS, name, is_sample=True)
    assert list_bad(results) == []


def _sum(_: Served, inputs: unusual_models.Inputs) -> list[Computed]:
    first, second = inputs.values()
    return [Computed("FP32", first.shape, first.elements + second.elements)] * 2


SUM = unusual_models.model("sum", [(name, "FP32", (-1,)) for name in "AB"], [(name, "FP32", (-1,)) for name in "XY"])


def test_a_model_that_does_not_show_an_order_is_not_judged_by_it() -> None:
    with mock.patch.dict(unusual_models.ODD, {"sum": _sum}), unusual_models.serve(SUM) as url:
        results = judge_models(url, AREAS, "sum")
    reasons = {result.id: result.message for result in results if result.outcome is Outcome.NOT_APPLICABLE}
    assert (
        reasons["ordering.request-follows-its-json"]
        == "sum gives the same answer whether its inputs are read correctly or wrongly"
    )
    assert reasons["ordering.response-follows-its-json"] == "sum has equal outputs for all drawn inputs"
    assert list_bad(results) == []


def test_a_model_that_goes_by_the_order_of_its_inputs_is_not_judged_by_it() -> None:
    with unusual_models.serve(unusual_models.BY_PLACE) as url:
        results = judge_models(url, AREAS, "by_place")
    reasons = {result.id: result.message for result in results if result.outcome is Outcome.NOT_APPLICABLE}
    assert reasons["ordering.request-follows-its-json"].startswith("the model assigns inputs by position")


# --- wrong servers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "name", "requirement"),
    [
        ("answer-header-of-sixteen-bits", "multi", "BIN-HEADER-IN-BYTES"),
        ("content-length-counts-an-end-of-line", "identity_fp32", "BIN-CONTENT-LENGTH"),
        ("binary-answer-over-two-kib-chunked", "identity_fp32", "BIN-NOT-CHUNKED"),
        ("header-looked-up-in-one-spelling", "identity_fp32", "BIN-HEADER-CASE"),
        ("header-too-large-for-an-int-ignored", "identity_fp32", "BIN-HEADER-TOO-LONG"),
        ("binary-request-without-header-taken-for-raw", "identity_fp32", "BIN-HEADER-MISSING-SAFE"),
        ("word-in-the-header-is-zero", "identity_fp32", "BIN-HEADER-SPELLING-SAFE"),
        ("two-inference-headers-read-as-no-number", "identity_fp32", "BIN-HEADER-TWICE-SAFE"),
        ("form-answered-with-an-empty-object", "identity_fp32", "OIP-CONTENT-TYPE-OTHER"),
        ("size-of-strings-without-prefixes", "identity_bytes", "BIN-SIZE-O"),
        ("binary-strings-repeated-as-data", "identity_bytes", "BIN-SIZE-WITHOUT-DATA"),
        ("json-output-keeps-the-size-of-the-one-before", "multi", "BIN-DATA-WITHOUT-SIZE"),
        ("shape-filled-up-with-zeros", "identity_fp32", "BIN-SIZE-WRONG"),
        ("sizes-checked-in-sum-alone", "add_sub", "BIN-SIZE-FALSE"),
        ("input-of-negative-size-is-ones", "identity_fp32", "BIN-SIZE-FALSE-SAFE"),
        ("size-of-strings-clipped-to-the-body", "identity_bytes", "BIN-SIZE-FALSE"),
        ("bytes-beside-data-left-to-the-next", "add_sub", "BIN-DATA-AND-SIZE-SAFE"),
        ("input-without-a-size-takes-what-the-others-leave", "add_sub", "BIN-SIZE-MISSING"),
        ("last-input-takes-the-whole-tail", "identity_fp32", "BIN-BODY-LONG-SAFE"),
        ("flag-carries-over-to-the-next-output", "multi", "BIN-OUTPUT-UNSET"),
        ("request-parameter-wins-over-that-of-an-output", "identity_fp32", "BIN-FALSE-OVERRIDES"),
        ("binary-data-on-the-request-taken-for-all", "identity_fp32", "BIN-ALL-TRUE"),
        ("inputs-read-in-declared-order", "add_sub", "BIN-ORDER-I"),
        ("json-inputs-beside-binary-ones-refused", "multi", "BIN-MIXED-I"),
        ("binary-outputs-in-declared-order", "add_sub", "BIN-ORDER-O"),
        ("binary-data-counted-among-all-outputs", "multi", "BIN-MIXED-O"),
        ("raw-forms-cut-at-their-first-ampersand", "identity_fp32", "OIP-CONTENT-TYPE-OTHER"),
        ("booleans-read-from-bits", "multi", "BIN-SIZE-WRONG"),
        ("true-taken-for-one-byte", "multi", "BIN-SIZE-TYPE"),
        ("size-of-strings-clipped-to-the-body", "multi", "BIN-SIZE-FALSE"),
        ("binary-strings-repeated-as-data", "multi", "BIN-SIZE-WITHOUT-DATA"),
        ("size-of-nothing-left-out", "multi", "BIN-SIZE-O"),
        ("empty-data-left-out", "multi", "BIN-DATA-WITHOUT-SIZE"),
        ("empty-outputs-fall-back-to-json", "multi", "BIN-OUTPUT-TRUE"),
        ("first-of-several-inputs-read-last", "multi", "BIN-ORDER-I"),
        ("declared-order-beside-an-empty-input", "multi", "BIN-ORDER-I"),
        ("empty-output-repeats-the-bytes-before-it", "multi", "BIN-ORDER-O"),
    ],
)
def test_a_wrong_server_is_seen(fault: str, name: str, requirement: str) -> None:
    with unusual_models.serve(fault=fault) as url:
        results = judge_models(url, AREAS, name, extensions=EXTENSIONS, about=(requirement,))
    assert requirement in list_missed(results)
    assert [result.message for result in results if result.outcome is Outcome.ERROR] == []


@pytest.mark.parametrize("fault", ["every-bool-read-from-the-first-byte", "octet-stream-of-two-tensors-refused"])
def test_binary_data_that_are_always_wrong_are_no_matter_of_headers(fault: str) -> None:
    with unusual_models.serve(fault=fault) as url:
        found = list_missed(judge_models(url, AREAS, "multi", extensions=EXTENSIONS))
    assert not found & {"BIN-HEADER-I", "BIN-ORDER-I", "BIN-ALL-UNSET", "BIN-CONTENT-TYPE-OF-JSON"}
