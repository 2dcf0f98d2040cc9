"""The regression gate as CI meets it: green on an unchanged server, red on a new failure and on an unnoticed fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.few_rows import FEW_ROWS
from tests.support.servers import ONE_MODEL, judge, run_bundled
from tests.support.valid_reports import read_valid_report

FAULT = "binary-outputs-in-reverse"
SELECTION = ("-k", "response_follows_its_json")


@pytest.fixture(scope="module")
def faulty() -> Iterator[str]:
    with run_bundled("--fault", FAULT, ONE_MODEL) as url:
        yield url


def report_of(folder: Path) -> Any:
    return read_valid_report(folder / "r.json")


# A run on one role, of few rows, is as whole as any, and takes a second.
WHOLE = ("--conformance-profile=quick", "--conformance-report=r.json", "--conformance-baseline=b.toml", *FEW_ROWS)


def test_a_baseline_is_written_passes_and_notices_a_fix(tmp_path: Path, faulty: str, lone: str) -> None:
    first = judge(tmp_path, f"--target-url={faulty}", *WHOLE, "--conformance-update-baseline")
    assert first.returncode == 0, first.stdout[-2000:]
    assert "b.toml: entries without a reason: 7; `oip-conformance baseline b.toml` lists them" in first.stderr
    known = len(report_of(tmp_path)["gate"]["known"])
    assert known > 0
    assert first.stdout.splitlines()[-1].endswith("; gate passed")

    unchanged = judge(tmp_path, f"--target-url={faulty}", *WHOLE, "-n", "2")
    assert unchanged.returncode == 0, unchanged.stdout[-2000:]
    report = report_of(tmp_path)
    assert (report["verdict"], report["gate"]["passed"]) == ("nonconformant", True)
    assert f"known failures{known:6}" in unchanged.stdout
    assert "BIN-ORDER-O" in {r["id"] for r in report["requirements"] if r["verdict"] == "known_failure"}

    fixed = judge(tmp_path, f"--target-url={lone}", *WHOLE)
    assert fixed.returncode == 1
    report = report_of(tmp_path)
    assert (report["verdict"], len(report["gate"]["fixed"])) == ("partial", known)
    assert fixed.stdout.splitlines()[-1].endswith(f"; gate not passed: {known} fixed")
    assert "Remove fixed and stale entries from the baseline, or use --conformance-update-baseline." in fixed.stdout

    cleaned = judge(tmp_path, f"--target-url={lone}", *WHOLE, "--conformance-update-baseline")
    assert cleaned.returncode == 0
    assert "[[known]]" not in (tmp_path / "b.toml").read_text()


def test_a_new_failure_fails_and_leads_the_output(tmp_path: Path, faulty: str) -> None:
    (tmp_path / "b.toml").write_text("")
    run = judge(tmp_path, f"--target-url={faulty}", *WHOLE)
    assert run.returncode == 1
    assert run.stdout.index(" gate ") < run.stdout.index(" failures ")
    assert " summary " not in run.stdout
    new = report_of(tmp_path)["gate"]["new"]
    assert any(label.startswith("ordering.response-follows-its-json [") for label in new)


def test_stale_entries_fail(tmp_path: Path, lone: str) -> None:
    (tmp_path / "b.toml").write_text(
        '[[known]]\ncheck = "ordering.no-such"\nreason = "r"\n\n'
        '[[known]]\ncheck = "ordering.response-follows-its-json"\nreason = "s"\nexpires = 2026-01-01\n'
    )
    run = judge(tmp_path, f"--target-url={lone}", *WHOLE)
    assert run.returncode == 1
    assert "      ordering.no-such [*] matches no check or row of this run" in run.stdout
    assert "      ordering.response-follows-its-json [*] expired on 2026-01-01: s" in run.stdout


def test_a_requirement_is_known_as_a_whole_until_it_is_met(tmp_path: Path, faulty: str, lone: str) -> None:
    (tmp_path / "b.toml").write_text('[[known]]\nrequirement = "BIN-ORDER-O"\nreason = "reversed"\n')
    known = judge(tmp_path, f"--target-url={faulty}", *WHOLE)
    assert known.returncode == 0, known.stdout[-2000:]
    assert report_of(tmp_path)["gate"]["known"]
    met = judge(tmp_path, f"--target-url={lone}", *WHOLE)
    assert met.returncode == 1
    assert report_of(tmp_path)["gate"]["stale"] == ["BIN-ORDER-O no longer fails: reversed"]


def test_advice_is_gated_where_the_baseline_says_so(tmp_path: Path) -> None:
    with run_bundled("--fault", "header-of-zero-without-binary-data", ONE_MODEL) as url:
        (tmp_path / "b.toml").write_text("advice = true\n")
        assert judge(tmp_path, f"--target-url={url}", *WHOLE).returncode == 1
        report = report_of(tmp_path)
        assert report["verdict"] == "partial"
        assert report["gate"]["new"]
        assert {row["failure"]["requirement"] for row in report["rows"] if row["failure"]} == {"BIN-HEADER-ON-JSON-O"}
        assert judge(tmp_path, f"--target-url={url}", *WHOLE, "--conformance-update-baseline").returncode == 0
    report = report_of(tmp_path)
    assert (report["verdict"], bool(report["gate"]["known"])) == ("partial", True)


def test_a_narrowed_run_updates_nothing(tmp_path: Path, faulty: str) -> None:
    run = judge(tmp_path, f"--target-url={faulty}", *WHOLE, *SELECTION, "--conformance-update-baseline")
    assert run.returncode == 1
    assert "b.toml is unchanged: only a run of all rows can update it" in run.stderr
    assert not (tmp_path / "b.toml").exists()
