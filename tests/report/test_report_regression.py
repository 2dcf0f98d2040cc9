"""`oip-conformance compare --gate OLD NEW`, on reports made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.commands.main import main
from conformance.judging.baseline import revert_baseline
from conformance.judging.baseline_file import from_text, update_text
from conformance.report.regression import Regression, compare
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult, Failure
from tests.support.small_reports import Report, check, report


def outcomes(*given: str) -> Report:
    """Return a report of rows 0, 1, ... with these outcomes; an empty one leaves the row out."""
    rows = [check("a.b", str(index), outcome, f"says {outcome}") for index, outcome in enumerate(given) if outcome]
    return report(rows=rows)


@pytest.mark.parametrize(
    ("old", "new", "found", "status"),
    [
        ("pass", "pass", Regression((), (), ()), 0),
        ("fail", "fail", Regression((), (), ()), 0),
        ("pass", "fail", Regression(("a.b [0]: says fail",), (), ()), 1),
        ("", "fail", Regression(("a.b [0]: says fail",), (), ()), 1),
        ("not_applicable", "fail", Regression(("a.b [0]: says fail",), (), ()), 1),
        ("pass", "blocked", Regression(("a.b [0]: says blocked",), (), ()), 1),
        ("fail", "pass", Regression((), (), ("a.b [0]: says fail",)), 0),
        ("fail", "advisory", Regression((), (), ("a.b [0]: says fail",)), 0),
        ("known_failure", "fixed", Regression((), (), ("a.b [0]: says known_failure",)), 0),
        ("pass", "", Regression((), ("a.b [0]: not in the new report",), ()), 1),
        ("fail", "not_applicable", Regression((), ("a.b [0]: says not_applicable",), ()), 1),
        ("not_applicable", "", Regression((), (), ()), 0),
        ("pass", "advisory", Regression((), (), ()), 0),
    ],
)
def test_regressions_are_worse_outcomes(old: str, new: str, found: Regression, status: int) -> None:
    assert compare(outcomes(old), outcomes(new)) == found
    assert found.exit_status == status


@pytest.mark.parametrize(
    ("old", "new", "is_new"),
    [
        (("fail", "OIP-DATA"), ("fail", "OIP-ALIVE-LEGAL"), True),
        (("fail", "OIP-DATA"), ("fail", "OIP-DATA"), False),
        (("known_failure", "OIP-DATA"), ("known_failure", "OIP-ALIVE-LEGAL"), True),
        (("fail", "OIP-DATA"), ("blocked", None), False),
        (("blocked", None), ("fail", "OIP-DATA"), False),
        (("error", None), ("fail", "OIP-DATA"), True),
        (("error", None), ("error", None), False),
    ],
)
def test_a_row_that_fails_for_another_requirement_is_new_as_with_a_baseline(
    old: tuple[str, str | None], new: tuple[str, str | None], is_new: bool
) -> None:
    before, after = (report(rows=[check("a.b", "0", outcome, unmet=named or "")]) for outcome, named in (old, new))
    assert bool(compare(before, after).new) is is_new
    results = [
        CheckResult("a.b", "0", "", "", "", Outcome(outcome), ["OIP-DATA"], failure=failure)
        for outcome, failure in (
            (outcome, Failure(named, "", "", "", "", "") if named else None) for outcome, named in (old, new)
        )
    ]
    baseline = from_text(update_text("", results[:1]))
    if new[0] != "error":  # of which a baseline says nothing: the run is incomplete
        assert bool(baseline.gate([baseline.apply(revert_baseline(results[1]))], whole=True).new) is is_new


def test_the_command_prints_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, given in (("old.json", ("pass", "fail")), ("new.json", ("fail", "pass"))):
        (tmp_path / name).write_text(json.dumps(outcomes(*given)))
    assert main(["compare", "--gate", str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "new failures       1",
        "      a.b [0]: says fail",
        "vanished           0",
        "fixed              1",
        "      a.b [1]: says fail",
    ]
    assert main(["compare", "--gate", str(tmp_path / "new.json"), str(tmp_path / "new.json")]) == 0
    assert main(["compare", "--gate", str(tmp_path / "new.json")]) == 2
    assert "--gate compares exactly two reports, OLD NEW" in capsys.readouterr().err
