"""Deployed models that fill no role: right ones fail nothing, whatever they compute; wrong servers are seen on them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import pytest

from conformance.judging import row_models
from conformance.judging.selection import Subjects, find_row, list_profile_rows
from conformance.judging.session import Session
from conformance.report.findings import group_by
from conformance.roles.guessed_inputs import UserInputs, UserTensor
from conformance.spec.check import Case
from conformance.spec.extensions import EXTENSIONS, PROTOCOL
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from reference_server import metadata
from reference_server.faults import Fault, switch_on
from reference_server.models import Model
from tests.support import sampling, unusual_models, valid_servers
from tests.support.deployed_judging import judge_models, list_bad, list_met, list_missed
from tests.support.few_rows import FEW_ROWS
from tests.support.samples import select_answering
from tests.support.sampling import judge_sample, judge_until_missed
from tests.support.servers import JsonOnly, judge, serve
from tests.support.valid_reports import read_valid_report

# Models of all kinds, and some of the requirements that each is judged by: several inputs and outputs, strings,
# batches, scalars, what JSON cannot represent.
ROLES = {
    "multi": "BIN-ORDER-I BIN-ORDER-O BIN-MIXED-I BIN-MIXED-O BIN-BYTES-I BIN-BYTES-O BIN-BOOL-I OIP-ISOLATION",
    "add_sub": "BIN-ORDER-I OIP-OUTPUTS-LISTED BIN-OUTPUT-TRUE HTTP-CHUNKED OIP-ID",
    "identity_bytes": "BIN-BYTES-I BIN-BYTES-O",
    "identity_fp32": "BIN-LITTLE-ENDIAN-I BIN-LITTLE-ENDIAN-O BIN-SIZE-WRONG BIN-BODY-SHORT OIP-ERROR",
    "cast_fp32_bf16": "BIN-HEADER-O",
    "scores_labelled": "CLS-HIGHEST CLS-FORMAT CLS-VALUE CLS-INDEX CLS-BINARY",
    "scores_batching_rank2": "CLS-BATCH",
    "raw_two_outputs": "RAW-ENCODING RAW-OUTPUTS RAW-SIZE",
    "raw_batching_variable": "RAW-ENCODING",
}
# Models of further kinds, each on a valid server that is not ordinary.
VARIATIONS = {
    "identity_fp16": "fp16-in-json-is-widened",
    "identity_uint64": "answers-are-chunked",
    "identity_bool": "more-than-1000-elements-raise",
    "batching": "requests-in-flight-are-turned-away",
    "emit": "busy-is-a-refusal",
    "rank0": "older-versions-compute-something-else",
    "rank4": "data-are-nested",
    "string_length": "parameters-named-proto-are-refused",
    "scores_rank2": "curl-and-requests-are-refused-by-name",
    "raw_two_variable": "chunked-bodies-are-refused",
    "documented_mixed": "errors-close-the-connection",
    "raw_bytes_one": "strings-over-100-bytes-are-refused",
    "raw_bytes_two": "one-element-fills-the-tensor",
}
LONG_WALK = "walk.every-exchange-is-right"  # each of its rows has more than a hundred requests
MAX_ROWS = 4  # of a claim; those behind the first that applies are judged on few models
# What the walk tells best on a deployed model, and the kind of its requests that do.
WALKED = {"OIP-OUTPUTS-LISTED": "binary", "CLS-BATCH": "classes"}
# Models that are right and not ordinary: how many rows are met at the least, and a reason why others say nothing.
ODD_ONES = (
    (unusual_models.COUNTER, 160, "counter has no deterministic output besides the classified one"),
    (unusual_models.BY_PLACE, 160, "the model assigns inputs by position, not by name, in plain JSON as well"),
    (unusual_models.NAN, 130, "JSON cannot represent Y"),
    (unusual_models.OCTETS, 80, "JSON cannot represent any output of octets"),
    (unusual_models.SMALL_TABLE, 145, "small_table may use integers as table indices"),
    (
        *(unusual_models.STRUCTURED, 90),
        "structured answers every input alike, or accepts only one input: its answers do not show what the server read",
    ),
    (unusual_models.RARELY, 110, "rarely is not deterministic"),
    (unusual_models.LAST_DIGIT, 170, "the outputs of last_digit are the same with and without the fault under test"),
)

# Models whose floats differ a little when several requests are in flight.
NOISY_ONES = (unusual_models.NOISY_FP32, unusual_models.NOISY_FP16, unusual_models.NOISY_CLASSES)


def pick_rows(names: Sequence[str]) -> list[Case]:
    """Return a few rows on models for each claim, spread over it, without the long ones of the walk."""
    rows = list_profile_rows("certify", subjects=Subjects(tuple(names), with_roles=False))
    rows = [case for case in rows if case[0].id != LONG_WALK]
    picked = []
    for own in group_by(rows, lambda case: (case.check.id, case.requirements)):
        takes_all = sampling.is_whole or own[0][0].area == "errors"  # of which few apply to some models
        picked += own if takes_all else own[:: -(-len(own) // MAX_ROWS)]
    return picked


def judge_walk(session: Session, names: Sequence[str]) -> Iterator[CheckResult]:
    """Yield the result of a long row of the walk that applies, another one for each model; with `--whole` of all."""
    rows = list_profile_rows("certify", subjects=Subjects(tuple(names), with_roles=False))
    walk = [case for case in rows if case[0].id == LONG_WALK]
    for case in sorted(walk, key=lambda case: crc32(case[1].id.encode())):
        result = session.judge(case)
        yield result
        if result.outcome is not Outcome.NOT_APPLICABLE and not sampling.is_whole:
            return


def judged(
    url: str,
    names: Sequence[str],
    given: Mapping[str, UserInputs] | None = None,
    extensions: Sequence[str] = (),
    about: Sequence[str] = (),
    *,
    with_sample: bool = False,
) -> list[CheckResult]:
    """Return the results of a sample of rows on these models, of the rows about some requirements, or of both."""
    subjects = Subjects(tuple(names), with_roles=False)
    with Session(Target(Settings(url))) as session:
        session.discover(extensions, subjects, given)
        results: list[CheckResult] = []
        if with_sample or not about:
            results += [*judge_sample(session, pick_rows(names)), *judge_walk(session, names)]
        if about:
            rows = list_profile_rows("certify", subjects=subjects)
            kinds = tuple(WALKED[one] for one in about if one in WALKED)
            walk = [case for case in rows if case[0].area == "walk" and kinds and case[1].id.startswith(kinds)]
            results += judge_until_missed(session, [*select_answering(rows, about), *walk], about)
        return results


def met(results: list[CheckResult]) -> set[str]:
    """Return the requirements that rows on the models are judged by and meet."""
    own = (result for result in results if "@" in result.row and result.outcome is Outcome.PASS)
    return {requirement for result in own for requirement in result.requirements}


def reasons(results: list[CheckResult]) -> set[str]:
    """Return why checks are not applicable."""
    return {result.message for result in results if result.outcome is Outcome.NOT_APPLICABLE}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with unusual_models.serve() as address:
        yield address


# --- right models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "judged_by"), ROLES.items())
def test_a_right_model_fails_nothing_and_is_judged_by_what_fits(name: str, judged_by: str, url: str) -> None:
    results = judged(url, (name,))
    assert list_bad(results) == []
    assert met(results) > {"OIP-MODEL-METADATA", "OIP-ENDPOINTS", "BIN-HEADER-IN-BYTES", "OIP-REFUSAL"}
    assert met(results) >= set(judged_by.split())


@pytest.mark.parametrize(("name", "variation"), VARIATIONS.items())
def test_a_right_model_fails_nothing_on_a_valid_server(name: str, variation: str) -> None:
    spared = set(valid_servers.load()[variation].breaks)
    with unusual_models.serve(fault=variation) as address:
        results = judged(address, (name,))
    assert list_bad([one for one in results if not (one.failure and one.failure.requirement in spared)]) == []
    assert met(results) > {"OIP-MODEL-METADATA", "OIP-ENDPOINTS"}


@pytest.mark.parametrize(("odd", "least", "reason"), ODD_ONES, ids=[odd.name for odd, *_ in ODD_ONES])
def test_an_odd_model_fails_nothing(odd: Model, least: int, reason: str) -> None:
    with unusual_models.serve(odd) as address:
        # The rows about the order say why not, all of them.
        results = judged(address, (odd.name,), about=("BIN-ORDER-I",), with_sample=True)
    assert list_bad(results) == []
    assert "OIP-MODEL-METADATA" in met(results)
    assert sum(result.outcome is Outcome.PASS for result in results) >= least
    assert reason in reasons(results)


NOISY_MEET = {"OIP-ISOLATION", "CLS-VALUE", "CLS-HIGHEST", "BIN-SAME-AS-JSON-O"}
SAME = ("BIN-SAME-AS-JSON-I", "BIN-SAME-AS-JSON-O")


@pytest.mark.parametrize(
    ("found", "about", "expected"),
    [
        *[(found, (), NOISY_MEET) for found in (*NOISY_ONES, unusual_models.ROUNDED_BY_FORM)],
        (unusual_models.COUNTER, SAME, {*SAME}),  # steady outputs are compared beside one that is not
        (unusual_models.THREE_CLASSES, (), {"OIP-ISOLATION", *SAME}),  # whose guessed inputs all get one answer
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_noise_between_requests_or_forms_is_no_fault(found: Model, about: tuple[str, ...], expected: set[str]) -> None:
    with unusual_models.serve(found) as address:
        results = judged(address, (found.name,), about=about)
    assert list_bad(results) == []
    assert met(results) >= expected


@pytest.mark.parametrize("fault", ["raw-answers-cached-by-both-ends", "buffer-of-a-large-answer-used-again"])
@pytest.mark.parametrize("found", NOISY_ONES[:2], ids=[one.name for one in NOISY_ONES[:2]])
def test_a_tensor_of_another_request_is_no_noise(found: Model, fault: str) -> None:
    with unusual_models.serve(found, fault=fault) as address:
        results = judged(address, (found.name,), about=("OIP-ISOLATION",))
    assert list_missed(results) == {"OIP-ISOLATION"}


@pytest.mark.parametrize("seed", range(2))
def test_every_tenth_answer_to_an_earlier_request_is_a_mix_up_and_no_nondeterminism(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unusual_models.StaleInputs, "seed", seed)
    subjects = Subjects(("stale",), with_roles=False)
    with unusual_models.serve(unusual_models.STALE) as address, Session(Target(Settings(address))) as session:
        session.discover((), subjects)
        rows = list_profile_rows("quick", subjects=subjects)
        failures = (result.failure for case in rows if (result := session.judge(case)).failure)
        first = next(failures, None)
    assert first is not None
    assert first.requirement == "OIP-ISOLATION"


def test_inputs_under_wrong_names_that_are_ignored_fail_by_an_answer_that_shows_it() -> None:
    """The first sample has the answer to zeros as well."""
    fault, name = "inputs-under-unknown-names-read-as-zeros", "three_classes"
    with (
        unusual_models.serve(unusual_models.THREE_CLASSES, fault=fault) as address,
        mock.patch.object(row_models, "crc32", return_value=0),
    ):
        results = judged(address, (name,), about=("OIP-REFUSAL",))
    assert list_missed(results) == {"OIP-REFUSAL"}


@pytest.mark.parametrize(
    ("wrong", "member"),
    [
        ({"inputs": [{"name": "X", "datatype": "float32", "shape": [-1]}]}, "inputs[0]"),
        ({"outputs": [{"name": "Y", "datatype": "Tensor", "shape": [-1]}]}, "outputs[0]"),
        ({"inputs": {"X": "FP32"}}, "inputs"),
        ({"inputs": "X"}, "inputs"),
    ],
    ids=("input-of-unknown-datatype", "output-of-unknown-datatype", "inputs-in-an-object", "inputs-in-a-string"),
)
def test_wrong_metadata_fail_their_requirement_and_end_no_run(wrong: Mapping[str, Any], member: str) -> None:
    honest = metadata.describe_model
    about = ("OIP-MODEL-METADATA",)
    with (
        unusual_models.serve(unusual_models.NAN) as address,
        mock.patch.object(metadata, "describe_model", lambda model: honest(model) | dict(wrong)),
    ):
        results = judged(address, ("nan",), about=about)
    failures = [result.failure for result in results if result.failure]
    assert [failure.requirement for failure in failures] == list(about)
    assert failures[0].expected.startswith(f"{member} in model metadata")


def test_a_model_may_need_none_of_its_inputs() -> None:
    optional = Fault("", ("request.parse_inputs",), (), unusual_models.parse_any_inputs)
    with switch_on(optional), unusual_models.serve(unusual_models.SUM_OF_ANY) as address:
        results = judge_models(address, ("errors",), "sum_of_any")
    assert list_bad(results) == []
    assert "OIP-REFUSAL" in list_met(results)


def test_arrays_that_metadata_leave_out_count_as_empty() -> None:
    honest, given = metadata.describe_model, {"picky": {"X": UserTensor((2,), [7.5, 8.25], "FP32")}}

    def describe(model: Model) -> dict[str, Any]:
        return {name: member for name, member in honest(model).items() if name in ("name", "platform")}

    with unusual_models.serve(unusual_models.PICKY) as address, mock.patch.object(metadata, "describe_model", describe):
        results = judge_models(address, ("metadata",), "picky", given=given)
    assert list_bad(results) == []
    assert "OIP-MODEL-METADATA" in list_met(results)


def test_classes_of_one_item_or_one_score_may_be_a_whole_output_or_a_batch() -> None:
    with unusual_models.serve(unusual_models.ONE_ITEM, unusual_models.ONE_SCORE) as address:
        results = judge_models(address, ("classification",), "one_item", "one_score")
    assert list_bad(results) == []
    assert list_met(results) >= {"CLS-COUNT", "CLS-HIGHEST", "CLS-INDEX"}


def test_a_model_that_answers_nothing_is_blocked_with_the_way_out() -> None:
    with unusual_models.serve(unusual_models.NEVER) as address:
        results = judged(address, ("never", "add_sub"))
    blocked = {r.message for r in results if r.outcome is Outcome.BLOCKED}
    assert blocked == {
        'never answers no plain request with inputs made from its metadata: HTTP 400: {"error":"not in the mood"}; give'
        " inputs that it accepts in the file for --target-config, a table [models.never.inputs.INPUT] for each, with"
        " shape = [...] and data = [...]; `oip-conformance init` writes such a file"
    }
    # No MUST is in doubt that another model meets.
    about = {r.id for r in results if r.outcome is Outcome.BLOCKED}
    assert {"json.plain-request-is-answered"} <= about <= {"json.plain-request-is-answered", "json.health-is-told"}


def test_given_inputs_are_sent() -> None:
    given = {"picky": {"X": UserTensor((2,), [7.5, 8.25])}}
    with unusual_models.serve(unusual_models.PICKY) as address:
        assert len(list_bad(judged(address, ("picky",)))) > 30
        results = judged(address, ("picky",), given)
    assert list_bad(results) == []
    assert "OIP-MODEL-METADATA" in met(results)


# --- wrong servers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "name", "requirement"),
    [
        ("inputs-read-big-endian", "identity_int32", "BIN-LITTLE-ENDIAN-I"),
        ("outputs-written-big-endian", "identity_int32", "BIN-SAME-AS-JSON-O"),
        ("inputs-read-column-by-column", "batching", "BIN-SAME-AS-JSON-I"),
        ("string-lengths-count-letters", "identity_bytes", "BIN-SAME-AS-JSON-O"),
        ("inputs-of-one-datatype-taken-in-the-order-of-the-request", "add_sub", ""),
        ("binary-outputs-in-reverse", "add_sub", "BIN-ORDER-O"),
        ("json-requests-answered-in-json", "multi", "BIN-OUTPUT-TRUE"),
        ("binary-data-counts-when-it-is-there", "string_length", "BIN-OUTPUT-FALSE"),
        ("third-listed-output-dropped", "multi", "OIP-OUTPUTS-LISTED"),
        ("every-output-returned-whatever-is-listed", "add_sub", "OIP-OUTPUTS-ONLY"),
        ("data-of-a-binary-output-are-null", "add_sub", "OIP-NULL"),
        ("no-word-of-being-live", "add_sub", "OIP-HEALTH"),
        ("answer-header-counts-characters", "multi", "BIN-HEADER-IN-BYTES"),
        ("header-under-another-name", "emit", "BIN-HEADER-O"),
        ("size-counts-elements", "rank2", "BIN-SIZE-O"),
        ("json-output-of-size-zero", "scores", "BIN-DATA-WITHOUT-SIZE"),
        ("binary-answer-chunked", "multi", "BIN-NOT-CHUNKED"),
        ("mixed-answer-called-json", "multi", "BIN-CONTENT-TYPE-O"),
        ("lowest-scores-come-first", "scores", "CLS-HIGHEST"),
        ("indices-count-from-1", "scores", "CLS-INDEX"),
        ("values-are-probabilities", "scores_batching", "CLS-VALUE"),
        ("index-stands-before-the-value", "scores", "CLS-FORMAT"),
        ("every-item-has-the-first-ranking", "scores_batching", "CLS-BATCH"),
        ("classes-always-come-as-json", "scores_labelled", "CLS-BINARY"),
        ("raw-batch-dimension-is-left-out", "raw_batching", "RAW-ENCODING"),
        ("last-word-filled-up-with-zeros", "identity_int32", "BIN-BODY-SHORT"),
        ("id-behind-the-inputs-lost", "multi", "OIP-WRITTEN"),
        ("undefined-members-of-outputs-refused", "multi", "OIP-MEMBERS"),
        ("accepts-what-it-should-refuse", "identity_int32", "BIN-HEADER-TOO-LONG-SAFE"),
        ("values-have-six-digits", "identity_fp32", "CLS-VALUE-EXACT"),
        ("fraction-of-a-count-is-cut-off", "identity_fp32", "CLS-COUNT-WRONG"),
        ("nan-written-as-a-bare-word", "identity_fp32", "OIP-JSON-NAN"),
        ("fp32-subnormals-read-as-zero", "identity_fp32", "BIN-DATATYPES-I"),
        ("elements-counted-in-16-bits", "identity_fp32", "BIN-DATATYPES-I"),
        ("large-numbers-written-with-six-digits", "identity_fp64", "BIN-SAME-AS-JSON-O"),
        ("size-zero-taken-for-no-size", "identity_fp32", "BIN-DATATYPES-I"),
        ("empty-outputs-with-their-declared-shape", "identity_fp32", "OIP-SHAPE"),
        ("raw-body-in-chunks-ends-at-4-kib", "identity_fp32", "HTTP-CHUNKED"),
        ("content-encoding-of-requests-ignored", "identity_fp32", "HTTP-CODING-I"),
        ("raw-answers-cached-by-both-ends", "identity_fp32", "OIP-ISOLATION"),
        ("buffer-of-a-large-answer-used-again", "identity_fp32", "OIP-ISOLATION"),
        ("body-behind-a-wrong-inference-header-left-unread", "identity_fp32", "HTTP-UNREAD-BODY"),
        ("json-in-latin-1", "identity_bytes", "OIP-JSON"),
        ("escaped-letters-in-json-data-kept", "identity_bytes", "OIP-VALUE"),
        ("decimal-integers-lose-a-digit", "identity_int32", "OIP-VALUE"),
        ("numbers-among-booleans-are-false", "identity_bool", "OIP-COERCE"),
        ("integers-in-json-cut-to-their-low-bits", "identity_int32", "OIP-RANGE"),
        ("wider-integers-taken", "identity_int32", "OIP-SIGNATURE"),
        ("first-of-an-array-taken", "identity_int32", "OIP-REFUSAL"),
        ("signs-of-dimensions-dropped", "identity_int32", "OIP-DIMENSION-NEGATIVE"),
    ],
)
def test_a_wrong_server_is_seen(fault: str, name: str, requirement: str) -> None:
    with unusual_models.serve(fault=fault) as address:
        results = judged(address, (name,), extensions=EXTENSIONS, about=(requirement or "BIN-ORDER-I",))
    missed = {r.failure.requirement for r in results if r.failure and r.outcome in (Outcome.FAIL, Outcome.ADVISORY)}
    assert requirement in missed if requirement else missed == set()
    assert [r.message for r in results if r.outcome is Outcome.ERROR] == []


@pytest.mark.parametrize(
    ("fault", "requirement"),
    [
        ("several-outputs-by-their-names", "OIP-OUTPUT-MEMBERS"),
        ("answers-an-empty-object", "OIP-OUTPUT-MEMBERS"),
        ("compresses-every-answer", "OIP-JSON"),
    ],
)
def test_answers_that_nobody_can_read_fail(fault: str, requirement: str) -> None:
    with unusual_models.serve(fault=fault) as address:
        results = judged(address, ("multi",), extensions=EXTENSIONS, about=("OIP-ENDPOINTS",))
    assert requirement in list_missed(results)


@pytest.mark.parametrize(
    ("fault", "name", "requirement"),
    [
        ("binary-outputs-in-reverse", "multi", "BIN-ORDER-O"),
        ("binary-outputs-in-reverse", "add_sub", "BIN-ORDER-O"),
        ("inputs-read-in-declared-order", "add_sub", "BIN-ORDER-I"),
        ("json-inputs-beside-binary-ones-refused", "multi", "BIN-MIXED-I"),
        ("bytes-left-over-ignored", "multi", "BIN-BODY-LONG"),
    ],
)
def test_one_fault_is_one_failure(fault: str, name: str, requirement: str) -> None:
    """Whatever requirement a row answers for."""
    with unusual_models.serve(fault=fault) as address:
        results = judged(address, (name,), extensions=EXTENSIONS, about=(requirement,), with_sample=True)
    assert list_missed(results) == {requirement}


@pytest.mark.parametrize(
    ("outputs", "requirement"),
    [
        ([("SUM", "INT32", (-1,)), ("DIFFERENCE", "INT32", (-1,)), ("PRODUCT", "INT32", (-1,))], "OIP-OUTPUTS-ALL"),
        ([("SUM", "INT64", (-1,)), ("DIFFERENCE", "INT32", (-1,))], "OIP-MODEL-METADATA"),
    ],
    ids=("an-output-too-many", "another-datatype"),
)
def test_metadata_that_lie_are_seen(outputs: unusual_models.Specs, requirement: str, url: str) -> None:
    described = unusual_models.model("add_sub", [("A", "INT32", (-1,)), ("B", "INT32", (-1,))], outputs)
    with unusual_models.describe_as(described):
        results = judged(url, ("add_sub",))
    assert list_missed(results) == {requirement}
    assert "BIN-ORDER-I" in met(results)


@pytest.mark.parametrize(("with_roles", "outcome"), [(False, Outcome.FAIL), (True, Outcome.BLOCKED)])
def test_a_model_against_its_own_metadata_does_not_accuse_a_server_of_right_roles(
    *, with_roles: bool, outcome: Outcome, url: str
) -> None:
    outputs = [("SUM", "INT64", (-1,)), ("DIFFERENCE", "INT32", (-1,))]
    described = unusual_models.model("add_sub", [("A", "INT32", (-1,)), ("B", "INT32", (-1,))], outputs)
    subjects = Subjects(("add_sub",), with_roles=with_roles)
    case = find_row("metadata.answer-has-the-declared-outputs", "deployed@add_sub", ("add_sub",))
    assert case is not None
    with unusual_models.describe_as(described), Session(Target(Settings(url))) as session:
        session.discover((), subjects)
        assert session.judge(case).outcome is outcome


# --- as a user runs it ------------------------------------------------------------------------------------------------


def test_a_whole_run_on_a_model_is_partial(tmp_path: Path, renamed: str) -> None:
    options = ("--target-model=prod-add_sub", "--conformance-profile=quick", *FEW_ROWS, "--conformance-report=r.json")
    run = judge(tmp_path, f"--target-url={renamed}", *options)
    assert run.returncode == 0, run.stdout
    assert " MUSTs met, none failed, " in run.stdout.splitlines()[-1]
    lines = run.stdout.splitlines()
    assert "models      prod-add_sub: x.B INT32 [3], x.A INT32 [3] -> y.SUM, y.DIFFERENCE" in lines
    assert not [line for line in lines if line.startswith("roles")]
    report = read_valid_report(tmp_path / "r.json")
    assert (report["verdict"], report["footer"]["complete"]) == ("partial", True)
    passed = {check["row"].partition("@")[2] for check in report["rows"] if check["outcome"] == "pass"}
    assert passed == {"", "prod-add_sub"}
    assert (report["options"]["models"], report["target"]["roles"]) == (["prod-add_sub"], {})
    shapes = [tensor["shape"] for tensor in report["target"]["models"]["prod-add_sub"]["inputs"]]
    assert shapes == [[3], [3]]


def test_two_workers_reach_the_same_verdicts(tmp_path: Path, renamed: str) -> None:
    for name, workers in (("one", []), ("two", ["-n", "2"])):
        few = ("-k", "not each_value and not every_exchange", "--conformance-profile=quick", *FEW_ROWS)
        names = ("--target-model=prod-scores", "--target-model=prod-add_sub", "--target-model=prod-scores", *few)
        judge(tmp_path, f"--target-url={renamed}", *names, f"--conformance-report={name}.json", "-q", *workers)
    one, two = (read_valid_report(tmp_path / f"{name}.json") for name in ("one", "two"))
    keys = ("check", "row", "outcome", "message", "observation", "exchanges")
    assert [[c[k] for k in keys] for c in one["rows"]] == [[c[k] for k in keys] for c in two["rows"]]
    assert one["verdict"] == two["verdict"] == "narrowed"


def test_a_narrowed_run_on_a_model_is_called_so(tmp_path: Path, renamed: str) -> None:
    run = judge(
        tmp_path, f"--target-url={renamed}", "--target-model=prod-add_sub", "-k", "ordering.request-follows-its-json"
    )
    assert run.returncode == 0
    assert ": narrowed run, " in run.stdout.splitlines()[-1]


def test_without_a_model_no_row_of_one_is_collected() -> None:
    assert not [row for _, row in list_profile_rows("explore", dangerous=True) if row.model or "@" in row.id]


def test_failures_are_shown_and_can_be_run_again(tmp_path: Path) -> None:
    with unusual_models.serve(fault="outputs-written-big-endian") as address:
        few = ("--target-model=identity_int32", "-k", "BIN-SAME-AS-JSON-O")
        run = judge(tmp_path, f"--target-url={address}", *few)
        rerun, *_ = [line.split(maxsplit=1)[1] for line in run.stdout.splitlines() if "Rerun" in line]
        again = judge(tmp_path, *shlex.split(rerun)[1:])
    assert run.returncode == again.returncode == 1
    assert "@identity_int32" in again.stdout
    assert rerun.endswith("-k BIN-SAME-AS-JSON-O")


class DescribedServer(JsonOnly):
    """A JSON-only server with metadata that say what to send."""

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        if document.get("inputs") == []:
            tensor = {"name": "INPUT", "datatype": "INT32", "shape": [-1]}
            document = {**document, "inputs": [tensor], "outputs": [{**tensor, "name": "OUTPUT"}]}
        super()._answer(status, document)


@pytest.mark.parametrize(
    ("handler", "model", "sentence"),
    [
        (DescribedServer, "identity_int32", "{url} offers none of the extensions (binary_tensor_data: "),
        (DescribedServer, "nobody", '{url} does not describe a model nobody: HTTP 404: {{"error": "unknown"}}'),
        (JsonOnly, "identity_int32", "the metadata of identity_int32 list no inputs"),
    ],
)
def test_nothing_to_judge_is_one_sentence_and_status_6(
    tmp_path: Path, handler: type[BaseHTTPRequestHandler], model: str, sentence: str
) -> None:
    with serve(handler) as address:
        run = judge(tmp_path, f"--target-url={address}", "--target-model", model)
    assert run.returncode == 6
    assert run.stdout.splitlines()[-1].startswith(f"incomplete: {sentence.format(url=address)}")


class UndescribedServer(JsonOnly):
    """A server without any metadata, whose model `m` doubles what it gets."""

    def do_GET(self) -> None:  # noqa: N802
        self._answer(404, {"error": "unknown"})

    def do_POST(self) -> None:  # noqa: N802
        try:
            tensor = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))["inputs"][0]
            doubled = [2 * value for value in self._read(tensor["data"])]
        except (ValueError, TypeError, LookupError):
            self._answer(400, {"error": "not an inference request"})
        else:
            self._answer(200, self._write({**tensor, "name": "Y", "data": doubled}))

    def _read(self, data: list[Any]) -> list[Any]:
        return data

    def _write(self, output: dict[str, Any]) -> dict[str, Any]:
        return {"model_name": "m", "outputs": [output]}


class NestedServer(UndescribedServer):
    """Takes only nested data."""

    def _read(self, data: list[Any]) -> list[Any]:
        return [value for row in data for value in row]


class EchoServer(UndescribedServer):
    """Answers with its inputs, and with no output."""

    def _write(self, output: dict[str, Any]) -> dict[str, Any]:
        return {"model_name": "m", "inputs": [output]}


class NumpyServer(UndescribedServer):
    """Gives a datatype the name that numpy has for it."""

    def _write(self, output: dict[str, Any]) -> dict[str, Any]:
        return super()._write(output | {"datatype": "float32"})


@pytest.mark.parametrize(
    ("handler", "missed"),
    [
        (UndescribedServer, set()),
        (NestedServer, {"OIP-DATA"}),
        (EchoServer, {"OIP-OUTPUT-MEMBERS"}),
        (NumpyServer, {"OIP-OUTPUT-MEMBERS"}),
    ],
)
def test_what_makes_a_model_unusable_is_judged(handler: type[BaseHTTPRequestHandler], missed: set[str]) -> None:
    subjects, given = Subjects(("m",), with_roles=False), {"m": {"X": UserTensor((2, 2), [1, 2, 3, 4], "FP32")}}
    rows = list_profile_rows("certify", subjects=subjects)
    cases = {case.key: case for case in rows if case[0].area == "json"}
    with serve(handler) as url, Session(Target(Settings(url))) as session:
        session.discover((PROTOCOL,), subjects, given)
        plain = session.judge(cases["json.plain-request-is-answered[deployed@m]"])
        metadata = session.judge(cases["json.metadata-have-status-200[server@m]"])
        compared = session.judge(cases["json.request-written-otherwise-is-the-same[members-backwards@m]"])
    assert list_missed([plain]) == missed
    assert list_missed([metadata]) == {"OIP-ENDPOINTS"}  # the model has not disappeared
    assert compared.outcome is (Outcome.BLOCKED if missed else Outcome.PASS)


def test_a_model_that_answers_nothing_is_told_once(tmp_path: Path) -> None:
    with unusual_models.serve(unusual_models.NEVER) as address:
        run = judge(tmp_path, f"--target-url={address}", "--target-model=never", *FEW_ROWS)
    assert run.returncode == 6
    assert run.stdout.count("\nblocked  ") == 1
    last = run.stdout.splitlines()[-1]
    assert " is incomplete: 1 row blocked (" in last
    assert last.endswith(", 1 in doubt)")  # OIP-ANSWER; all others are judged on the roles


def test_the_file_about_the_target_gives_inputs(tmp_path: Path) -> None:
    with unusual_models.serve(unusual_models.PICKY) as address:
        file = f'url = "{address}"\n[models.picky.inputs.X]\nshape = [2]\ndata = [7.5, 8.25]\n'
        (tmp_path / "t.toml").write_text(file)
        run = judge(tmp_path, "--target-config=t.toml", "--target-model=picky", *FEW_ROWS)
        (tmp_path / "t.toml").write_text(file.replace("inputs.X", "inputs.Y"))
        wrong = judge(tmp_path, "--target-config=t.toml", "--target-model=picky")
    assert run.returncode == 0, run.stdout
    assert wrong.returncode == 6
    assert wrong.stdout.splitlines()[-1].endswith("models.picky.inputs.Y: the model has no such input; it has X")


def test_rows_of_models_have_ids_of_their_own() -> None:
    subjects = Subjects(("a", "b"), with_roles=False)
    rows = [f"{check.id}[{row.id}]" for check, row in list_profile_rows("explore", subjects=subjects)]
    assert len(rows) == len(set(rows)) > 1000
    assert "ordering.request-follows-its-json[in-reverse@a]" in rows
