"""The index of a fleet: what it has of reports, what changed, and pages that show no more than text."""

from __future__ import annotations

import json
from pathlib import Path

import html5lib
import jsonschema_rs
import pytest

from conformance.report.report_file import read
from conformance.spec import data_files
from tests.support.made_index import INDEX
from tests.support.small_fleets import Report, judge_fleet, make_failing_report, make_fleet_text, read_index
from tests.support.small_reports import check, report, requirement

RESULTS = Path(__file__).parents[2] / "docs/results"


def real(name: str) -> Report:
    return read(RESULTS / f"{name}.json.xz", is_whole=False)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a fleet that was judged twice; one target was upgraded between, and one was not run."""
    folder = tmp_path_factory.mktemp("fleet")
    others = {"kserve": real("kserve"), "ours": real("reference")}
    judge_fleet(
        folder,
        make_fleet_text("triton", "kserve", "ours", "gone"),
        {"triton": real("triton-2.39"), "gone": report(), **others},
    )
    judge_fleet(folder, make_fleet_text("triton", "kserve", "ours", "new"), {"triton": real("triton"), **others})
    return folder


def test_an_index_fits_its_schema(upgraded: Path, tmp_path: Path) -> None:
    judge_fleet(tmp_path, make_fleet_text("a", "b"), {"a": report()}, ends_after=1)
    schema = json.loads((data_files.find_folder("schemas") / "fleet_index.schema.json").read_text())
    for index in (read_index(upgraded), read_index(tmp_path), INDEX):
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True).validate(index)


def test_what_an_upgrade_fixed_and_broke_is_told(upgraded: Path) -> None:
    changes = read_index(upgraded)["changes"]
    assert {change["target"] for change in (*changes["fixed"], *changes["broke"])} == {"triton"}
    assert changes["fixed"]
    assert (changes["new"], changes["gone"]) == (["new"], ["gone"])


def test_the_verdict_of_a_pack_is_told(tmp_path: Path) -> None:
    pack = {"name": "little", "version": "1", "digest": "0" * 64, "verdict": "nonconformant"}
    judge_fleet(
        tmp_path,
        make_fleet_text("a"),
        {"a": report() | {"packs": [pack | {"interoperable": False, "why": [], "requirements": [], "rows": []}]}},
    )
    (target,) = read_index(tmp_path)["targets"]
    assert target["why"][-1] == "pack little: nonconformant"


def test_areas_add_up_to_the_whole(upgraded: Path) -> None:
    for target in read_index(upgraded)["targets"]:
        for kind, count in target.get("musts", {}).items():
            assert sum(area[kind] for area in target["areas"].values()) == count


def test_a_known_failure_that_was_blocked_is_not_unmet(tmp_path: Path) -> None:
    blocked = check("a.b", "", "known_failure", "m answers no plain request")
    made = make_failing_report(rows=[blocked], requirements=[requirement("BIN-ORDER-O", "MUST", "known_failure")])
    judge_fleet(tmp_path, make_fleet_text("a"), {"a": made})
    (target,) = read_index(tmp_path)["targets"]
    assert target["unmet"] == []


def test_what_is_not_met_is_that_of_the_report(upgraded: Path) -> None:
    (target,) = (each for each in read_index(upgraded)["targets"] if each["name"] == "kserve")
    unmet = [entry["id"] for entry in real("kserve")["requirements"] if entry["verdict"] in ("fail", "advisory")]
    assert [entry["id"] for entry in target["unmet"]] == unmet


def test_a_target_whose_run_left_no_report_says_why(upgraded: Path) -> None:
    target = read_index(upgraded)["targets"][-1]
    assert (target["verdict"], target["trouble"], target["why"]) == ("incomplete", "crashed", ["left no report"])
    assert "url" not in target


def test_the_summary_names_what_needs_a_look(tmp_path: Path) -> None:
    broken = make_failing_report(
        requirements=[requirement("BIN-ORDER-O", "MUST", "fail")],
        rows=[check("ordering.x", "r", "fail", "m", "BIN-ORDER-O")],
    )
    sound = report(requirements=[requirement("BIN-ORDER-O", "MUST", "pass")])
    judge_fleet(tmp_path, make_fleet_text("a", "b"), {"a": sound, "b": sound})
    lines, _, _ = judge_fleet(tmp_path, make_fleet_text("a", "b"), {"a": sound, "b": broken})
    assert lines == [
        "b is nonconformant: 1 row failed",
        "broke since the last run: b BIN-ORDER-O MUST",
        "b was conformant, is nonconformant",
        f"index: {tmp_path}/out/index.html",
        "2 targets: 1 conformant, 1 nonconformant",
    ]


def test_who_is_interoperable_is_called_that(tmp_path: Path) -> None:
    refusing = make_failing_report(requirements=[requirement("OIP-REFUSAL", "MUST", "fail")]) | {"interoperable": True}
    lines, _, _ = judge_fleet(tmp_path, make_fleet_text("a"), {"a": refusing})
    assert lines[0].startswith("a is nonconformant but interoperable")
    for page in ("index.html", "index.md"):
        assert "nonconformant but interoperable" in (tmp_path / "out" / page).read_text()


def test_links_lead_to_files_that_are_there(upgraded: Path) -> None:
    page = html5lib.parse((upgraded / "out" / "index.html").read_text(), namespaceHTMLElements=False)
    links = {link.get("href") or "" for link in page.iter("a")}
    assert len(links) == 3
    assert all((upgraded / "out" / link).parent.joinpath("report.json").is_file() for link in links)
