"""The profile quick where its rows do not apply, and the order in which rows run."""

from __future__ import annotations

from typing import Any

from conformance.discovery.deployed_model import DeployedModel, derive_role
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.quick_rows import (
    MAX_SUBSTITUTES,
    build_order_key,
    find_quick_position,
    select_quick_rows,
    sort_for_run,
)
from conformance.judging.selection import Subjects, bind_model, list_profile_rows
from conformance.spec.check import Case, Check, Row
from conformance.spec.extensions import EXTENSIONS, ROBUSTNESS
from conformance.wire.tensor import Tensor

ROWS = list_profile_rows("certify")


def test_rows_of_the_set_stand_alone_where_they_apply() -> None:
    assert select_quick_rows(ROWS, lambda *_: True) == list_profile_rows("quick")


def test_a_check_without_an_applicable_row_in_the_set_has_two_others() -> None:
    def applies(case: Case) -> bool:
        return find_quick_position(case) is None

    more = [case for case in select_quick_rows(ROWS, applies) if find_quick_position(case) is None]
    counts = [sum(check.id == name for check, _ in more) for name in {check.id for check, _ in more}]
    assert max(counts) == MAX_SUBSTITUTES
    assert {check.id for check, _ in more} == {case.check.id for case in ROWS if applies(case)}


def test_each_check_is_judged_on_the_one_model_that_there_is() -> None:
    discovery_result = DiscoveryResult(
        offered=dict.fromkeys(EXTENSIONS, ""), roles={"identity_int32": "identity_int32"}
    )
    on_it = {case.check.id for case in ROWS if case.role == "identity_int32"}
    chosen = list_profile_rows("quick", discovery_result=discovery_result)
    assert {case.check.id for case in chosen if case.role in (None, "identity_int32")} >= on_it


def test_a_model_like_another_has_a_row_of_each_area() -> None:
    models: dict[str, Any] = {}
    for name, datatype in (("one", "INT32"), ("like_one", "INT32"), ("other", "FP32")):
        tensors = [Tensor.from_values("X", datatype, [1, 2, 3])]
        models[name] = DeployedModel(derive_role(name, tensors, tensors), name, tensors=tuple(tensors)).to_dict()
    found = DiscoveryResult(offered=dict.fromkeys(EXTENSIONS, ""), models=models)
    chosen = list_profile_rows("quick", subjects=Subjects(tuple(models), with_roles=False), discovery_result=found)
    areas = {name: [case.check.area for case in chosen if case.row.model == name] for name in models}
    assert sorted(areas["like_one"]) == sorted({*areas["one"]})
    assert len(areas["one"]) > 10 * len(areas["like_one"])
    assert len(areas["other"]) > 10 * len(areas["like_one"])


def test_a_deployed_model_has_the_place_of_the_row() -> None:
    case = list_profile_rows("quick")[0]
    assert find_quick_position(Case(case.check, bind_model("iris", case.row))) == find_quick_position(case) is not None


def test_rows_of_the_set_run_first_and_others_keep_their_order() -> None:
    ordered = sort_for_run(ROWS)
    count = len(list_profile_rows("quick"))
    assert [find_quick_position(case) is None for case in ordered] == [place >= count for place in range(len(ROWS))]
    assert ordered[count:] == [case for case in ROWS if find_quick_position(case) is None]


def test_hostile_and_dangerous_rows_come_last() -> None:
    check = Check(f"{ROBUSTNESS}.x", (), None, (), lambda: None)
    other = Check("json.x", (), None, (), lambda: None)
    turns = [
        build_order_key(Case(other, Row(""))),
        build_order_key(Case(other, Row("", dangerous=True))),
        build_order_key(Case(check, Row(""))),
    ]
    assert turns == sorted(turns)
