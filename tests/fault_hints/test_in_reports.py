"""A run against a faulty server, its report, and where its hint leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.commands import main
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.selection import collected_rows
from conformance.report import json_report
from conformance.spec.check import Check, Row
from conformance.spec.result import CheckResult
from conformance.spec.verdict import conclude
from reference_server import faults
from reference_server.faults import Fault, switch_on
from tests.support.made_reports import Report
from tests.support.sightings import judge_fault, run_server
from tests.support.valid_reports import expect_valid

NAME = "binary-outputs-in-reverse"
FEW = ("ordering.", "sizes.binary-", "bytes.output")
HONEST = Fault("", ("",), (), lambda: None)


def rows() -> list[tuple[Check, Row]]:
    return [case for case in collected_rows("quick") if case[0].id.startswith(FEW)]


@pytest.fixture(scope="module")
def runs() -> dict[str, list[CheckResult]]:
    with run_server() as server:
        met = list(judge_fault(server, HONEST, rows()))
        with switch_on(faults.load()[NAME]):
            return {"met": met, "unmet": list(judge_fault(server, faults.load()[NAME], rows()))}


def report_of(results: list[CheckResult]) -> Report:
    now = "2026-01-02T03:04:05+00:00"
    options = {"profile": "quick", "strict": False, "extensions": [], "timeout_s": 10.0, "headers": []}
    made = json_report.build(
        results, DiscoveryResult(), conclude(results), url="http://h", grpc="", options=options, seed=None, started=now,
        finished=now, complete=False,
    )  # fmt: skip
    expect_valid(made)
    return made


def test_a_report_names_the_fault(runs: dict[str, list[CheckResult]]) -> None:
    first = report_of(runs["unmet"])["looks_like"][0]
    assert (first["fault"], first["requirement"]) == (NAME, "BIN-ORDER-O")
    assert 0 < first["explains"] <= first["of"]


def test_a_report_in_which_nothing_fails_names_nothing(runs: dict[str, list[CheckResult]]) -> None:
    assert "looks_like" not in report_of(runs["met"])


def test_a_report_of_what_nothing_is_like_names_nothing(runs: dict[str, list[CheckResult]]) -> None:
    """One row that fails, of a check of which every fault fails many."""
    first = next(result for result in runs["unmet"] if result.failure)
    assert "looks_like" not in report_of([first, *[replace(each) for each in runs["met"] if each.label != first.label]])


def test_the_hint_leads_to_an_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", NAME]) == 0
    shown = capsys.readouterr().out
    assert "--fault binary-outputs-in-reverse" in shown
    assert "BIN-ORDER-O" in shown
