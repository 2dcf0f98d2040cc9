"""Steps on deployed models: what shrinking may propose is as limited as what the walk sends."""

from __future__ import annotations

import pytest

from conformance.checks.walk.deployed_steps import DeployedSteps
from conformance.checks.walk.walking import SHRINKING
from conformance.discovery.deployed_model import DeployedModel
from conformance.judging.row_models import RowModels
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.roles.guessed_inputs import UserTensor
from conformance.spec.extensions import BINARY
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from tests.support import unusual_models


@pytest.mark.parametrize(("count", "is_sent"), [("0", False), ("2", True), ("257", True), ("65537", False)])
def test_shrinking_classes_proposes_the_counts_of_the_walk_alone(count: str, is_sent: bool) -> None:
    subjects = Subjects(("identity_fp32",), with_roles=False)
    rows = list_profile_rows("certify", subjects=subjects)
    case = next(case for case in rows if case.check.area == "walk" and case.row.id.startswith("classes"))
    with unusual_models.serve() as url, Session(Target(Settings(url))) as session:
        session.discover((), subjects)
        model = RowModels(session.target, session.discovery_result).build_model(case)
    assert isinstance(model, DeployedModel)
    steps = DeployedSteps("classes", model)
    step = {**steps.neutral, "classes": "1", "count": count}
    assert steps.adapt_axes(SHRINKING).is_invalid(step) is not is_sent


@pytest.mark.parametrize("fault", ["id-left-out", "one-id-for-every-answer"])
def test_a_wrong_id_is_nothing_of_an_earlier_request(fault: str) -> None:
    """A deployed model gives many requests the same answer; without ids, or with one, these have the same bytes."""
    subjects = Subjects(("identity_int32",), with_roles=False)
    rows = [case for case in list_profile_rows("certify", subjects=subjects) if case[0].area == "walk"]
    about_ids = [case for case in rows if case[1].id.startswith(("json-id-", "binary-id-"))]
    with unusual_models.serve(fault=fault) as url, Session(Target(Settings(url))) as session:
        session.discover(BINARY, subjects, {"identity_int32": {"INPUT": UserTensor((2,), [[1, 2], [3, 4]])}})
        results = [session.judge(case) for case in about_ids]
    assert [result.failure.requirement for result in results if result.failure] == ["OIP-ID"] * len(about_ids)
