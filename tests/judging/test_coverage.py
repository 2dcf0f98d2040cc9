"""What counts as not judged, and which few models would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.applicability import build_applicability_test
from conformance.judging.conclusion import conclude_run
from conformance.judging.coverage import find_coverage, find_coverage_of_watch
from conformance.judging.selection import CLIENTS, ROLES, Subjects, list_profile_rows
from conformance.roles import roles
from conformance.roles.declared_limits import find_excess_of_role
from conformance.roles.roles import TensorSpec
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.coverage import Coverage, Deployment, Gap, GapReason
from conformance.spec.extensions import EXTENSIONS, OVER_GRPC, OVER_HTTP, PROTOCOL, TRANSPORTS
from conformance.spec.ledger import Level, Party
from conformance.spec.outcome import Outcome, Reason, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.tally import count_requirements
from conformance.spec.verdict import conclude_extensions, conclude_requirements
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

OFFERED = dict.fromkeys(EXTENSIONS, "listed")
OVER = {"http": OVER_HTTP, "grpc": OVER_GRPC}
OPTIONAL = {name for name, role in roles.load().items() if role.is_optional}
# What a server without a model can be judged by.
NO_ROLE: frozenset[str] = frozenset()
EVERY_ROLE = frozenset(roles.load())


def came_to(case: Case, reason: Reason | None = None) -> CheckResult:
    """Return a result: passed, or not applicable for a reason."""
    names = list(case.requirements)
    extension = ledger.get_requirement(names[0]).extension
    outcome = Outcome.NOT_APPLICABLE if reason else Outcome.PASS
    return CheckResult(case.check.id, case.row.id, "", case.check.area, extension, outcome, names, reason=reason)


@cache
def list_outcomes(profile: str, transports: tuple[str, ...]) -> list[tuple[Case, str | None, tuple[CheckResult, ...]]]:
    """Return each row of a profile, its role, and its results where a model fills the role and where none does."""
    found = []
    for case in list_profile_rows(profile, subjects=ROLES, transports=transports):
        role = case.role
        reasons = [None] if role is None else [None, Reason(ReasonKind.NO_MODEL, role)]
        found.append((case, role, tuple(came_to(case, reason) for reason in reasons)))
    return found


def results_of(
    filled: frozenset[str],
    *,
    profile: str = "certify",
    transports: tuple[str, ...] = TRANSPORTS,
    reasons: Callable[[Case], Reason | None] = lambda _case: None,
) -> list[CheckResult]:
    """Return what a server comes to that is right, and has models for these roles."""
    found = []
    for case, role, outcomes in list_outcomes(profile, transports):
        reason = reasons(case)
        is_absent = role is not None and role not in filled
        found.append(came_to(case, reason) if reason else outcomes[is_absent])
    return found


def coverage_of(
    results: list[CheckResult],
    filled: frozenset[str],
    profile: str = "certify",
    transports: tuple[str, ...] = TRANSPORTS,
) -> Coverage:
    offered = {name: "listed" for transport in transports for name in OVER[transport]}
    discovery_result = DiscoveryResult(offered=offered, roles={name: name for name in filled})
    return find_coverage(results, discovery_result, profile=profile, transports=transports)


def verdict_of(filled: frozenset[str], profile: str = "certify", transports: tuple[str, ...] = TRANSPORTS) -> str:
    results = results_of(filled, profile=profile, transports=transports)
    coverage = coverage_of(results, filled, profile, transports)
    return conclude_run(results, {}, None, "", coverage=coverage).verdict.verdict


def keep_to(limits: Mapping[str, Any]) -> frozenset[str]:
    """Return the roles of models that a server with such limits has."""
    return frozenset(name for name, role in roles.load().items() if not find_excess_of_role(limits, role))


LIMITS: list[dict[str, Any]] = [
    {"datatypes": [name for name in DATATYPES if name != "BYTES"]},
    {"datatypes": ["FP32", "INT32"]},
    {"fixed_shapes": True},
    {"max_batch": 0},
    {"datatypes": ["INT32"], "fixed_shapes": True},
]


# --- the verdict of a server that is right ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filled", "profile", "transports", "verdict"),
    [
        (EVERY_ROLE, "certify", ("http", "grpc"), "conformant"),
        (EVERY_ROLE, "explore", ("http", "grpc"), "conformant"),
        (EVERY_ROLE, "quick", ("http", "grpc"), "partial"),
        (EVERY_ROLE, "certify", ("http",), "conformant"),
        (EVERY_ROLE, "quick", ("http",), "partial"),
        # what is optional is missed by one MUST of gRPC alone, that about BF16
        (EVERY_ROLE - OPTIONAL, "certify", ("http",), "conformant"),
        (EVERY_ROLE - OPTIONAL, "certify", ("http", "grpc"), "partial"),
        (EVERY_ROLE - {"rank0"}, "certify", ("http", "grpc"), "conformant"),
        (NO_ROLE, "certify", ("http",), "partial"),
        # which declare none of these limits
        *[(keep_to(limits), "certify", ("http",), "partial") for limits in LIMITS],
    ],
)
def test_the_verdict_is_conformant_where_every_must_was_judged(
    filled: frozenset[str], profile: str, transports: tuple[str, ...], verdict: str
) -> None:
    assert verdict_of(filled, profile, transports) == verdict


def test_a_server_of_one_version_need_not_have_the_role_of_two() -> None:
    filled = EVERY_ROLE - {"versioned"}

    def say_why(case: Case) -> Reason | None:
        is_of_versions = "OIP-VERSIONED" in case.requirements and case.role != "versioned"
        return Reason(ReasonKind.NOT_FOR_THIS_TARGET) if is_of_versions else None

    found = coverage_of(results_of(filled, transports=("http",), reasons=say_why), filled, transports=("http",))
    assert not found.unjudged


@pytest.mark.parametrize("role", sorted(EVERY_ROLE)[::8])
def test_a_server_of_one_model_is_never_conformant(role: str) -> None:
    assert verdict_of(frozenset({role}), transports=("http",)) == "partial"


@pytest.mark.parametrize("role", sorted(EVERY_ROLE - OPTIONAL)[::8])
def test_a_server_without_one_of_the_roles_is_partial(role: str) -> None:
    results = results_of(EVERY_ROLE - {role})
    found = coverage_of(results, EVERY_ROLE - {role})
    assert found.has_gap
    assert [one.role for one in found.deployments] == [role]
    assert found.waiting == sum(result.has_reason(ReasonKind.NO_MODEL) for result in results if _is_of_must(result))


def _is_of_must(result: CheckResult) -> bool:
    return any(ledger.get_requirement(name).level == "MUST" for name in result.requirements)


# --- what is no gap ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        ReasonKind.NOT_FOR_THIS_TARGET,
        ReasonKind.TOO_LARGE,
        ReasonKind.NOT_OFFERED,
        ReasonKind.NO_JSON_FORM,
        ReasonKind.TRANSPORT_NOT_GIVEN,
    ],
)
def test_what_does_not_apply_is_no_gap(kind: ReasonKind) -> None:
    def reasons(case: Case) -> Reason | None:
        return Reason(kind) if "HTTP-SLOW-READER" in case.requirements else None

    results = results_of(EVERY_ROLE, reasons=reasons)
    assert coverage_of(results, EVERY_ROLE) == Coverage(profile="certify")
    musts = count_requirements("MUST", conclude_requirements(results), EXTENSIONS)
    others = len([entry for entry in ledger.load_for_party(Party.SERVER) if entry.level is Level.MUST]) - 1
    assert others > 100
    assert (musts.met, musts.applying, musts.not_applicable) == (others, others, 1)
    assert musts.sentence == f"{others} of {others} MUSTs that apply are met; 1 not applicable"


def test_an_extension_that_is_not_offered_is_no_gap() -> None:
    filled = frozenset(name for name in EVERY_ROLE if not name.startswith("scores"))
    results = results_of(filled, transports=("http",), reasons=_without_classification)
    discovery_result = DiscoveryResult(
        offered=dict.fromkeys(("binary_tensor_data", "raw"), "works"), roles=dict.fromkeys(filled, "m")
    )
    found = find_coverage(results, discovery_result, profile="certify", transports=("http",))
    assert {gap.why for gap in found.gaps.values()} <= {(GapReason.NO_MODEL,)}
    assert all(ledger.get_requirement(name).extension != "classification" for name in found.gaps)


def _without_classification(case: Case) -> Reason | None:
    own = case.requirement.extension
    return Reason(ReasonKind.NOT_OFFERED, own) if "classification" in (own, *case.row.needs) else None


def test_what_was_never_collected_counts_as_what_had_no_model() -> None:
    """A run on deployed models collects no row of a role."""
    every = results_of(NO_ROLE, transports=("http",))
    collected = [result for result in every if not result.has_reason(ReasonKind.NO_MODEL)]
    found, whole = (coverage_of(each, NO_ROLE, transports=("http",)) for each in (collected, every))
    assert found.unjudged == whole.unjudged
    assert {one.role for one in found.deployments} == {one.role for one in whole.deployments}


# --- what is said of it -----------------------------------------------------------------------------------------------


def test_few_models_come_first_and_judge_every_must() -> None:
    found = coverage_of(results_of(NO_ROLE, transports=("http",)), NO_ROLE, transports=("http",))
    needed = [one for one in found.deployments if one.musts]
    assert sorted(name for one in needed for name in one.musts) == sorted(found.unjudged)
    sizes = [len(one.musts) for one in needed]
    assert sizes == sorted(sizes, reverse=True)
    filled = frozenset(one.role for one in needed)
    assert coverage_of(results_of(filled, transports=("http",)), filled, transports=("http",)).unjudged == ()
    for one in needed[:3]:  # with the first alone, what it adds is judged
        filled = frozenset({one.role})
        left = coverage_of(results_of(filled, transports=("http",)), filled, transports=("http",)).unjudged
        assert not set(one.musts) & set(left)


def test_a_requirement_says_what_it_needs() -> None:
    without = EVERY_ROLE - {"identity_bf16", "cast_bf16_fp32", "cast_fp32_bf16"}
    found = coverage_of(results_of(without), without)
    assert found.unjudged == ("GRPC-BF16-RAW",)
    assert found.gaps["GRPC-BF16-RAW"] == Gap(3, (GapReason.NO_MODEL,), ("cast_fp32_bf16", "identity_bf16"))
    assert found.deployments == (Deployment("cast_fp32_bf16", ("GRPC-BF16-RAW",), 2),)
    assert found.brief == "1 not judged (deploy cast_fp32_bf16 to judge 1 more)"
    assert found.reasons == ["1 MUST not judged (deploy cast_fp32_bf16 to judge 1 more)"]


@pytest.mark.parametrize(
    ("coverage", "reasons"),
    [
        (Coverage(), []),
        (
            Coverage(
                unjudged=("A", "B", "C", "D"), waiting=9,
                deployments=(Deployment("r", ("A", "B"), 3), Deployment("s", ("C",), 2), Deployment("t", (), 4)),
            ),
            ["4 MUSTs not judged (deploy r and s to judge 3 more)"],
        ),
        (
            Coverage(
                unjudged=("A", "B", "C", "D"), waiting=9,
                deployments=tuple(Deployment(role, (name,), 1) for role, name in zip("rstu", "ABCD", strict=True)),
            ),
            ["4 MUSTs not judged (deploy r, s and t to judge 3 more)"],
        ),
        (
            Coverage(waiting=9, deployments=(Deployment("r", (), 5), Deployment("s", (), 4))),
            ["9 rows not judged (deploy r and s to judge 9 rows)"],
        ),
        (Coverage(left_out=7, profile="quick"), ["7 rows left out by the profile quick"]),
        (
            Coverage(unjudged=("A",), left_out=1, profile="quick"),
            ["1 MUST not judged", "1 row left out by the profile quick"],
        ),
    ],
)  # fmt: skip
def test_the_reasons_name_the_models_that_win_most(coverage: Coverage, reasons: list[str]) -> None:
    assert coverage.reasons == reasons
    assert coverage.brief == ", ".join(reasons).replace(" MUSTs", "").replace(" MUST", "")


def test_an_extension_is_partial_by_its_own_musts() -> None:
    filled = EVERY_ROLE - {"scores_labelled"}
    results = results_of(filled, transports=("http",))
    coverage = coverage_of(results, filled, transports=("http",))
    found = conclude_extensions(results, OVER_HTTP, coverage=coverage)
    verdicts = {name: entry["verdict"] for name, entry in found.items() if entry["offered"]}
    missing = {ledger.get_requirement(name).extension for name in coverage.gaps}
    assert verdicts == {name: "partial" if name in missing else "conformant" for name in ("protocol", *OVER_HTTP)}
    assert (verdicts["classification"], verdicts["raw"]) == ("partial", "conformant")
    assert found["raw"]["interoperable"] is True
    assert found["classification"]["interoperable"] is None


def test_an_extension_without_any_model_is_partial() -> None:
    results = results_of(NO_ROLE, transports=("http",))
    found = conclude_extensions(results, OVER_HTTP, coverage=coverage_of(results, NO_ROLE, transports=("http",)))
    assert found["raw"]["verdict"] == "partial"


# --- clients ----------------------------------------------------------------------------------------------------------


def client_results(absent: str = "") -> list[CheckResult]:
    rows = list_profile_rows("certify", subjects=CLIENTS, transports=TRANSPORTS)
    reason = Reason(ReasonKind.NOT_FOR_THIS_TARGET)
    return [came_to(case, reason if absent in case.requirements else None) for case in rows]


def test_of_a_client_a_must_without_a_row_is_not_judged() -> None:
    arguments = {"discovery_result": DiscoveryResult(offered=OFFERED), "profile": "certify", "transports": TRANSPORTS}
    whole, part = (
        find_coverage(results, party=Party.CLIENT, **arguments)  # type: ignore[arg-type]
        for results in (client_results(), client_results("CLIENT-READS-CLASSES"))
    )
    assert not whole.has_gap
    assert part.unjudged == ("CLIENT-READS-CLASSES",)
    assert part.gaps["CLIENT-READS-CLASSES"].why == (GapReason.CANNOT,)
    assert part.reasons == ["1 MUST not judged"]


def test_what_one_row_of_a_client_cannot_show_another_may() -> None:
    first, *others = client_results()
    cannot = replace(first, outcome=Outcome.NOT_APPLICABLE, reason=Reason(ReasonKind.NOT_FOR_THIS_TARGET))
    results = [cannot, *others]
    found = find_coverage(
        results, DiscoveryResult(offered=OFFERED), profile="certify", transports=TRANSPORTS, party=Party.CLIENT
    )
    assert not found.has_gap


def test_a_watch_says_nothing_of_how_answers_are_read() -> None:
    of_requests = [result for result in client_results() if all("READS" not in name for name in result.requirements)]
    found = find_coverage_of_watch(of_requests, EXTENSIONS)
    assert "CLIENT-READS-VALUES" in found.unjudged
    assert found.gaps["CLIENT-READS-VALUES"] == Gap(0, (GapReason.NOT_SENT,))
    assert not any("SENDS" in name for name in found.unjudged)


def test_what_quick_leaves_out_of_a_deployed_model_is_what_certify_has_more_of_it() -> None:
    specs = (TensorSpec("X", "FP32", (-1, 2)),)
    model = DeployedModel(
        derive_role("double", specs, specs), "double", tensors=(Tensor.from_values("X", "FP32", [[1, 2]]),)
    )
    discovery_result = DiscoveryResult(offered={PROTOCOL: "asked for"}, models={"double": model.to_dict()})
    subjects, applies = Subjects(("double",), with_roles=False), build_applicability_test(discovery_result, ("http",))
    quick = list_profile_rows("quick", subjects=subjects, transports=("http",), discovery_result=discovery_result)
    every = list_profile_rows("certify", subjects=subjects, transports=("http",))
    run = {case.ids for case in quick}
    more = [case.requirements for case in every if case.ids not in run and applies(case)]
    musts = [names for names in more if any(ledger.get_requirement(name).level == "MUST" for name in names)]
    found = find_coverage([came_to(case) for case in quick], discovery_result, profile="quick", transports=("http",))
    assert found.left_out == len(musts) > 50
