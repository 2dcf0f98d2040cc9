"""Runs of a fleet in a folder: begun, ended, gone on with, one after the other. The work itself is a stub."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from conformance.fleet import run_folder
from conformance.fleet.fleet_file import FleetError
from conformance.fleet.run_folder import RunFolder
from conformance.fleet.units import Outcome, Unit
from tests.support.small_fleets import judge_fleet, make_failing_report, make_fleet_text, read_index
from tests.support.small_reports import report

WELL = {"a": report(), "b": report(), "c": report()}


def runs(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out" / "runs").iterdir() if path.is_dir())


def test_every_target_has_a_folder_and_the_index_has_them_all(tmp_path: Path) -> None:
    lines, status, pool = judge_fleet(tmp_path, make_fleet_text("a", "b"), WELL)
    assert (status, pool.is_stopped, lines[-1]) == (0, True, "2 targets: 2 conformant")
    found = read_index(tmp_path)
    folders = [tmp_path / "out" / target["folder"] for target in found["targets"]]
    assert all(sorted(path.name for path in each.iterdir()) == ["done.json", "report.json"] for each in folders)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o755 for each in folders)
    assert (found["finished"] is not None, found["changes"], len(found["history"])) == (True, None, 1)


@pytest.mark.parametrize(
    ("reports", "status"),
    [
        (WELL, 0),
        (WELL | {"b": report(verdict="incomplete")}, 6),
        ({"a": report()}, 6),
        (WELL | {"a": report(verdict="incomplete"), "c": make_failing_report()}, 1),
    ],
)
def test_the_status_is_that_of_the_worst_target(tmp_path: Path, reports: dict[str, object], status: int) -> None:
    assert judge_fleet(tmp_path, make_fleet_text("a", "b", "c"), reports)[1] == status


def test_a_run_that_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    lines, status, pool = judge_fleet(tmp_path, make_fleet_text("a", "b", "c"), WELL, ends_after=1)
    assert (status, pool.is_stopped) == (2, True)
    assert (
        lines[-1] == "3 targets: 3 not run (interrupted: the same command resumes the run)"
    )  # it came before anything was kept
    assert read_index(tmp_path)["counts"]["not_run"] == 3
    assert judge_fleet(tmp_path, make_fleet_text("a", "b", "c"), WELL)[1:2] == (0,)
    assert len(runs(tmp_path)) == 1


def keep_done(folder: Path, text: str, *names: str) -> None:
    """Have these targets done, and the fleet killed then."""
    judge_fleet(folder, text, WELL)
    (record,) = run_folder.read_records(folder / "out")
    run_folder.write(folder / "out", run_folder.RunRecord(record.name, record.started, record.salt, record.suite))
    run = RunFolder(folder / "out", record)
    for name in {"a", "b", "c"} - set(names):
        (run.get_target_folder(name) / "done.json").unlink(missing_ok=True)
    (run.path / ".c.half").mkdir()


ALL = make_fleet_text("a", "b", "c")
MOVED = make_fleet_text("a", "c") + '[targets.b]\nurl = "http://elsewhere"\n'


@pytest.mark.parametrize(
    ("text", "options", "asked", "targets", "count"),
    [
        (ALL, {}, ["c"], ["a", "b", "c"], 1),  # what is half done begins anew
        (MOVED, {}, ["c", "b"], ["a", "c", "b"], 1),
        (make_fleet_text("b"), {}, [], ["b"], 1),
        (ALL, {"anew": True}, ["a", "b", "c"], ["a", "b", "c"], 2),
    ],
    ids=["the same", "a target is asked for otherwise", "a target is asked for no more", "another run"],
)
def test_what_is_done_is_kept_where_it_is_still_asked_for(
    tmp_path: Path, text: str, options: dict[str, bool], asked: list[str], targets: list[str], count: int
) -> None:
    keep_done(tmp_path, ALL, "a", "b")
    _, status, pool = judge_fleet(tmp_path, text, WELL, **options)
    assert (status, pool.asked) == (0, asked)
    assert [target["name"] for target in read_index(tmp_path)["targets"]] == targets
    assert len(runs(tmp_path)) == count
    last = tmp_path / "out" / "runs" / runs(tmp_path)[-1]
    assert sorted(path.name for path in last.iterdir()) == sorted(targets)


def test_a_finished_run_is_followed_by_another(tmp_path: Path) -> None:
    for reports in (WELL, WELL | {"b": make_failing_report()}):
        judge_fleet(tmp_path, make_fleet_text("a", "b"), reports)
    found = read_index(tmp_path)
    assert found["changes"]["turned"] == [{"target": "b", "before": "conformant", "after": "nonconformant"}]
    assert [run["counts"]["conformant"] for run in found["history"]] == [2, 1]
    lines, _, _ = judge_fleet(tmp_path, make_fleet_text("a", "c"), WELL)
    assert (read_index(tmp_path)["changes"]["new"], read_index(tmp_path)["changes"]["gone"]) == (["c"], ["b"])
    assert "b was" not in "\n".join(lines)


def test_of_earlier_runs_the_verdicts_remain(tmp_path: Path) -> None:
    for _ in range(4):
        judge_fleet(tmp_path, make_fleet_text("a", more="keep = 2\n"), WELL)
    assert len(runs(tmp_path)) == 2
    assert len(read_index(tmp_path)["history"]) == 4


def test_what_a_cluster_leaves_undone_is_left_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.fleet.pools.POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr("tests.support.small_fleets.Given.submit", lambda *_: None)
    lines, status, _ = judge_fleet(tmp_path, make_fleet_text("a"), WELL, failure="the scheduler is gone")
    assert (status, lines[-1]) == (6, "1 target: 1 not run (the scheduler is gone: the same command resumes the run)")


def test_files_that_come_back_are_written_below_the_folder_of_the_target(tmp_path: Path) -> None:
    judge_fleet(tmp_path, make_fleet_text("a"), WELL, brings_files=True)
    place = tmp_path / "out" / read_index(tmp_path)["targets"][0]["folder"]
    assert (place / "evidence" / "run.har.xz").read_bytes() == b"x"


def test_a_worker_writes_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    record = run_folder.choose_run(tmp_path, "suite", anew=False)
    stray = {"../../stray": b"", "/tmp/stray-of-a-fleet": b"", "report.json": b"{}"}  # noqa: S108
    RunFolder(tmp_path, record).store_outcome(Unit("a", "", ""), Outcome("a", 0, files=stray), "digest", 1)
    assert [path.name for path in tmp_path.rglob("*stray*")] == []
    assert not Path("/tmp/stray-of-a-fleet").exists()  # noqa: S108


def test_two_fleets_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with (
        run_folder.lock_folder(tmp_path / "out"),
        pytest.raises(FleetError, match="another fleet writes into this folder"),
    ):
        judge_fleet(tmp_path, make_fleet_text("a"), WELL)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(FleetError, match=r"cannot write .*out: "):
        judge_fleet(tmp_path, make_fleet_text("a"), WELL)


@pytest.mark.parametrize("text", ["", "[]", '{"name": 1}', "{" * 9999])
def test_records_that_are_none_of_ours_are_passed_over(tmp_path: Path, text: str) -> None:
    judge_fleet(tmp_path, make_fleet_text("a"), WELL)
    (tmp_path / "out" / "runs" / "zzz.json").write_text(text)
    (tmp_path / "out" / "runs" / read_index(tmp_path)["run"] / "a" / "done.json").write_text(text)
    assert judge_fleet(tmp_path, make_fleet_text("a"), WELL)[1] == 0


def test_a_retry_leaves_nothing_behind(tmp_path: Path) -> None:
    text = make_fleet_text("a", more="[defaults.limits]\nretry_pause = 0\n")
    judge_fleet(tmp_path, text, WELL, unreached={"a": 1})
    (run,) = runs(tmp_path)
    assert [path.name for path in (tmp_path / "out" / "runs" / run).iterdir()] == ["a"]
    assert read_index(tmp_path)["targets"][0]["tried"] == 2


def test_baselines_that_were_written_anew_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.fleet.running.BASELINE", "report.json")
    judge_fleet(tmp_path, make_fleet_text("a", more='baselines = "b"\n'), WELL, updates_baselines=True)
    assert json.loads((tmp_path / "b" / "a.toml").read_text()) == WELL["a"]
