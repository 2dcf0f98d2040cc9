"""Binary data, raw requests and metadata of deployed models: right ones fail nothing, wrong servers are seen."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest

from conformance.checks.metadata.server_and_models import may_have_shape
from conformance.checks.raw.raw_answers import find_serving_requirement, require_exact_length
from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.expect.unmet import NotApplicableError
from conformance.roles.guessed_inputs import UserTensor
from conformance.roles.roles import TensorSpec
from conformance.spec.outcome import Outcome
from conformance.wire.tensor import Tensor
from reference_server.models import Model as Served
from tests.support import unusual_models
from tests.support.deployed_judging import judge_models, list_bad, list_met, list_missed

AREAS = ("bytes", "datatypes", "raw", "metadata")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with unusual_models.serve() as address:
        yield address


# --- right models -----------------------------------------------------------------------------------------------------

BINARY = "BIN-DATATYPES-I BIN-DATATYPES-O BIN-SAME-AS-JSON-I BIN-SAME-AS-JSON-O BIN-PACKED-I BIN-PACKED-O BIN-BODY-O"
WIDE = "BIN-LITTLE-ENDIAN-I BIN-LITTLE-ENDIAN-O"
RAW = "RAW-HEADER-ZERO RAW-ENCODING RAW-ONE-INPUT RAW-OUTPUTS RAW-SIZE"


@pytest.mark.parametrize(
    ("names", "requirements"),
    [
        ("identity_fp32", f"{BINARY} {WIDE} {RAW} BIN-BODY-I RAW-ONE-VARIABLE OIP-MODEL-METADATA OIP-OUTPUTS-ALL"),
        ("identity_int32", f"{BINARY} {WIDE} {RAW}"),
        ("scores", f"{BINARY} {WIDE} {RAW} BIN-BODY-I"),
        ("batching", f"{BINARY} {WIDE} {RAW} BIN-ROW-MAJOR-I BIN-ROW-MAJOR-O"),
        ("multi", f"{BINARY} {WIDE} BIN-BODY-I BIN-BOOL-I BIN-BOOL-O BIN-BYTES-I BIN-BYTES-O BIN-BYTES-MISFRAMED"),
        ("identity_fp16", "BIN-FP16-IN-JSON RAW-HEADER-ZERO RAW-ENCODING"),
        ("raw_bytes_one", "BIN-BYTES-I BIN-BYTES-O RAW-BYTES"),
        ("string_length", "BIN-BYTES-I BIN-SAME-AS-JSON-I"),
        ("identity_fp32 multi rank4 raw_bytes_two", "RAW-SEVERAL-INPUTS RAW-TWO-VARIABLES RAW-BYTES-SHAPE-SAFE"),
        ("emit", "BIN-SAME-AS-JSON-O"),
    ],
)
def test_a_right_model_fails_nothing_and_has_much_judged(names: str, requirements: str, url: str) -> None:
    results = judge_models(url, AREAS, *names.split())
    assert list_bad(results) == []
    assert list_met(results) >= set(requirements.split())


@pytest.mark.parametrize(
    ("odd", "requirements"),
    [
        (unusual_models.COUNTER, "BIN-SAME-AS-JSON-I BIN-LITTLE-ENDIAN-O RAW-ENCODING"),
        (unusual_models.RARELY, "BIN-BODY-O"),
        (unusual_models.LAST_DIGIT, "BIN-BODY-O RAW-ONE-INPUT RAW-SIZE"),
        (unusual_models.BY_PLACE, "BIN-SAME-AS-JSON-I"),
        (unusual_models.NAN, "BIN-SAME-AS-JSON-I BIN-SAME-AS-JSON-O"),
        (unusual_models.OCTETS, "BIN-SAME-AS-JSON-I RAW-ENCODING"),
        (unusual_models.SMALL_TABLE, "BIN-SAME-AS-JSON-I BIN-ROW-MAJOR-O"),
        (unusual_models.STRUCTURED, "BIN-BYTES-O BIN-BYTES-MISFRAMED RAW-ONE-INPUT"),
    ],
    ids=lambda value: value.name if isinstance(value, Served) else "",
)
def test_an_odd_model_fails_nothing(odd: Served, requirements: str) -> None:
    with unusual_models.serve(odd) as address:
        results = judge_models(address, AREAS, odd.name)
    assert list_bad(results) == []
    assert list_met(results) >= set(requirements.split())


@pytest.mark.parametrize("calls", range(11))
def test_a_model_that_differs_once_in_eleven_calls_fails_nothing(calls: int) -> None:
    with unusual_models.serve(unusual_models.RARELY) as address:
        unusual_models.CallCounter.number = calls
        assert list_bad(judge_models(address, AREAS, "rarely", is_sample=True)) == []


def test_outputs_are_judged_where_inputs_tell_nothing() -> None:
    given = {"picky": {"X": UserTensor((2,), [7.5, 8.25])}}
    with unusual_models.serve(unusual_models.PICKY) as address:
        results = judge_models(address, AREAS, "picky", given=given)
    assert list_bad(results) == []
    assert list_met(results) >= {"BIN-LITTLE-ENDIAN-O", "BIN-DATATYPES-O", "RAW-ONE-INPUT"}
    assert list_met(results) & {"BIN-LITTLE-ENDIAN-I", "BIN-DATATYPES-I", "RAW-ENCODING", "BIN-SAME-AS-JSON-I"} == set()


# --- wrong servers ----------------------------------------------------------------------------------------------------

_IN, _OUT = "BIN-DATATYPES-I BIN-SAME-AS-JSON-I", "BIN-DATATYPES-O BIN-SAME-AS-JSON-O"


@pytest.mark.parametrize(
    ("fault", "name", "requirements"),
    [
        ("inputs-read-big-endian", "identity_fp32", f"BIN-LITTLE-ENDIAN-I {_IN}"),
        ("outputs-written-big-endian", "multi", f"BIN-LITTLE-ENDIAN-O BIN-BODY-O {_OUT}"),
        ("inputs-read-column-by-column", "batching", f"BIN-ROW-MAJOR-I {_IN}"),
        ("outputs-written-column-by-column", "batching", f"BIN-ROW-MAJOR-O {_OUT}"),
        ("inputs-expected-at-multiples-of-four", "multi", f"BIN-PACKED-I {_IN}"),
        ("line-end-behind-the-json-skipped", "identity_fp32", "BIN-BODY-I"),
        ("byte-order-mark-behind-the-json-skipped", "multi", "BIN-BODY-I"),
        ("line-end-behind-the-last-tensor", "add_sub", "BIN-BODY-O"),
        ("blank-between-the-json-and-a-brace", "scores", "BIN-BODY-O"),
        ("strings-cut-where-the-data-end", "multi", "BIN-BYTES-MISFRAMED"),
        ("missing-strings-read-as-empty", "multi", "BIN-BYTES-MISFRAMED"),
        ("strings-beyond-the-shape-ignored", "identity_bytes", "BIN-BYTES-MISFRAMED"),
        ("every-bool-read-from-the-first-byte", "multi", f"BIN-BOOL-I {_IN}"),
        ("true-written-as-255-from-the-ninth-element-on", "multi", "BIN-BOOL-O"),
        ("strings-read-up-to-a-nul", "multi", "BIN-BYTES-I"),
        ("string-lengths-read-as-signed-bytes", "multi", "BIN-BYTES-I"),
        ("string-lengths-count-letters", "identity_bytes", f"BIN-BYTES-O {_OUT}"),
        ("inputs-read-into-a-buffer-of-64-kib", "identity_fp32", "BIN-DATATYPES-I"),
        ("last-block-of-large-outputs-not-written", "identity_fp32", "BIN-DATATYPES-O"),
        ("doubles-in-json-read-in-single-precision", "identity_fp64", "BIN-SAME-AS-JSON-I"),
        ("fp64-written-to-json-in-single-precision", "identity_fp64", _OUT),
        ("fp16-written-to-json-as-bit-patterns", "identity_fp16", "BIN-FP16-IN-JSON"),
        ("raw-body-is-read-big-endian", "identity_fp32", "RAW-ENCODING"),
        ("raw-body-ends-with-the-first-buffer", "identity_fp32", "RAW-ENCODING"),
        ("raw-body-with-a-brace-is-refused", "identity_fp32", "RAW-HEADER-ZERO"),
        ("raw-body-is-stripped-of-white-space", "scores", "RAW-HEADER-ZERO"),
        ("raw-bytes-pass-through-latin-1", "raw_bytes_one", "RAW-BYTES"),
        ("raw-bytes-end-at-the-first-nul", "raw_bytes_one", "RAW-BYTES"),
        ("raw-bytes-length-fits-one-byte", "raw_bytes_one", "RAW-BYTES"),
        ("short-raw-body-is-filled-with-zeros", "scores", "RAW-SIZE"),
        ("remainder-of-a-raw-body-is-dropped", "identity_fp32", "RAW-SIZE"),
        ("raw-answer-has-one-output", "raw_two_outputs", "RAW-OUTPUTS"),
        ("raw-request-needs-its-type", "identity_bool", "RAW-CONTENT-TYPE-OTHER"),
        ("raw-body-fills-the-first-of-several-inputs", "multi identity_fp32", "RAW-SEVERAL-INPUTS"),
        ("second-variable-dimension-becomes-1", "rank4 identity_fp32", "RAW-TWO-VARIABLES"),
        ("raw-bytes-of-two-filled-up", "raw_bytes_two identity_fp32", "RAW-BYTES-SHAPE-SAFE"),
        ("raw-shape-is-flat", "raw_variable identity_fp32", "RAW-ONE-VARIABLE"),
        ("raw-models-need-one-output", "raw_two_outputs identity_fp32", "RAW-ONE-VARIABLE"),
        ("model-without-a-platform", "identity_fp32", "OIP-MODEL-METADATA"),
        ("outputs-described-as-the-inputs", "multi", "OIP-MODEL-METADATA"),
    ],
)
def test_a_wrong_server_is_seen(fault: str, name: str, requirements: str) -> None:
    named, *_ = requirements.split()
    with unusual_models.serve(fault=fault) as address:
        results = judge_models(address, AREAS, *name.split(), about=(named,))
        results += judge_models(address, AREAS, *name.split(), is_sample=True)
    found = list_missed(results)
    assert found <= set(requirements.split())
    assert named in found
    assert [result.message for result in results if result.outcome is Outcome.ERROR] == []


@pytest.mark.parametrize(
    ("outputs", "requirement"),
    [
        ([("SUM", "INT32", (-1,)), ("DIFFERENCE", "INT32", (-1,)), ("PRODUCT", "INT32", (-1,))], "OIP-OUTPUTS-ALL"),
        ([("SUM", "INT32", (-1,)), ("PRODUCT", "INT32", (-1,))], "OIP-MODEL-METADATA"),
        ([("SUM", "INT64", (-1,)), ("DIFFERENCE", "INT32", (-1,))], "OIP-MODEL-METADATA"),
        ([("SUM", "INT32", (0,)), ("DIFFERENCE", "INT32", (-1,))], "OIP-MODEL-METADATA"),
        ([("SUM", "INT32", (-1, 1)), ("DIFFERENCE", "INT32", (-1,))], "OIP-MODEL-METADATA"),
        ([("SUM", "INT32", (-1,))], "OIP-MODEL-METADATA"),
        ([], "OIP-MODEL-METADATA"),
    ],
    ids=("an-output-too-many", "another-name", "another-datatype", "no-elements", "another-rank", "too-few", "none"),
)
def test_metadata_that_lie_are_seen(outputs: unusual_models.Specs, requirement: str, url: str) -> None:
    described = unusual_models.model("add_sub", [("A", "INT32", (-1,)), ("B", "INT32", (-1,))], outputs)
    with unusual_models.describe_as(described):
        results = judge_models(url, AREAS, "add_sub")
    assert list_missed(results) == {requirement}


def test_outputs_that_come_as_json_show_nothing_of_binary_ones() -> None:
    about = ("BIN-LITTLE-ENDIAN-O", "BIN-ROW-MAJOR-O", "BIN-PACKED-O")
    with unusual_models.serve(fault="json-requests-answered-in-json") as url:
        results = judge_models(url, ("bytes",), "rank2", about=about)
    assert results
    assert not list_met(results) & set(about)
    assert list_missed(results) == set()


def test_an_output_of_another_name_is_wrong_in_the_metadata_and_not_missing(url: str) -> None:
    outputs = [("SUM", "INT32", (-1,)), ("PRODUCT", "INT32", (-1,))]
    described = unusual_models.model("add_sub", [("A", "INT32", (-1,)), ("B", "INT32", (-1,))], outputs)
    with unusual_models.describe_as(described):
        results = judge_models(url, ("json", "metadata"), "add_sub", about=("OIP-OUTPUTS-ALL", "OIP-MODEL-METADATA"))
    assert list_missed(results) == {"OIP-MODEL-METADATA"}


def test_metadata_may_omit_the_batch_dimension(url: str) -> None:
    own = ("INPUT", "INT32", (3,)), ("OUTPUT", "INT32", (3,))
    with unusual_models.describe_as(unusual_models.model("batching", own[:1], own[1:])):
        results = judge_models(url, ("metadata",), "batching")
    assert list_bad(results) == []
    assert "OIP-MODEL-METADATA" in list_met(results)


@pytest.mark.parametrize(
    ("declared", "shape", "batches", "may"),
    [
        ((-1, 3), (2, 3), {0}, True),
        ((-1, 3), (2, 4), {0}, False),
        ((4,), (4,), {0}, True),
        ((1,), (2,), {0}, True),  # an item of one, in a batch of two
        ((0,), (3,), {0}, False),
        ((3,), (2, 3), {1}, True),
        ((3,), (2, 4), {1}, False),
        ((-1,), (2, 1), {0}, False),  # the batch dimension of the inputs is declared
        ((-1, 3), (3,), {-1}, True),
        ((3,), (2, 3), set[int](), True),  # nothing is known about the inputs
        ((2, 3), (3, 2), {0}, False),
        ((), (), {0}, True),
    ],
)
def test_a_shape_may_be_declared_with_its_batch_or_without(
    declared: tuple[int, ...], shape: tuple[int, ...], batches: set[int], may: bool
) -> None:
    assert may_have_shape(declared, shape, batches) == may


# --- which models take raw requests -----------------------------------------------------------------------------------


def deployed(datatype: str, declared: tuple[int, ...], shape: tuple[int, ...]) -> DeployedModel:
    """Return a model of one input with that shape in its metadata and another one in requests."""
    tensor = Tensor.from_values("X", datatype, [b"a"] if datatype == "BYTES" else [1.0]).array.repeat(prod(shape))
    return DeployedModel(
        derive_role("m", [TensorSpec("X", datatype, declared)], []),
        "m",
        tensors=(Tensor.from_values("X", datatype, tensor, shape),),
    )


@pytest.mark.parametrize(
    ("datatype", "declared", "shape", "requirement"),
    [
        ("FP32", (2, 2), (2, 2), "RAW-ONE-INPUT"),
        ("FP32", (4,), (2, 4), "RAW-ONE-INPUT"),
        ("FP32", (-1,), (3,), "RAW-ONE-VARIABLE"),
        ("FP32", (-1, 4), (2, 4), "RAW-ONE-VARIABLE"),  # one item fills it, be it a batch or a length
        ("FP32", (-1, -1), (2, 3), None),
        ("FP32", (-1, 3, -1), (2, 3, 3), None),
        ("BYTES", (1,), (1,), "RAW-BYTES"),
        ("BYTES", (-1, 1), (2, 1), None),
    ],
)
def test_metadata_decide_which_models_are_served(
    datatype: str, declared: tuple[int, ...], shape: tuple[int, ...], requirement: str | None
) -> None:
    assert find_serving_requirement(deployed(datatype, declared, shape)) == requirement


@pytest.mark.parametrize(
    ("datatype", "declared", "shape"),
    [
        ("FP32", (3, -1, -1), (3, 3, 3)),
        ("FP32", (-1, -1, -1), (2, 3, 3)),
        ("BYTES", (-1,), (3,)),
        ("BYTES", (2,), (2,)),
        ("FP32", (0,), (0,)),
    ],
)
def test_other_models_are_not_for_raw_requests(
    datatype: str, declared: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    with pytest.raises(NotApplicableError):
        find_serving_requirement(deployed(datatype, declared, shape))


@pytest.mark.parametrize(
    ("datatype", "declared", "shape", "counts"),
    [
        ("FP32", (-1,), (3,), True),
        ("INT8", (3,), (3,), True),
        ("INT8", (-1,), (3,), False),
        ("INT8", (-1, 2), (1, 2), True),
        ("BYTES", (1,), (1,), False),
    ],
)
def test_a_byte_more_fills_some_inputs(
    datatype: str, declared: tuple[int, ...], shape: tuple[int, ...], counts: bool
) -> None:
    model = deployed(datatype, declared, shape)
    if counts:
        require_exact_length(model, model.tensors[0])
    else:
        with pytest.raises(NotApplicableError):
            require_exact_length(model, model.tensors[0])
