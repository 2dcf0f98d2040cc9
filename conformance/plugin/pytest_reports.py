"""Puts results into pytest's reports: its counts, the results from workers, JUnit files, and the summary of `-r`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.junitxml import LogXML, xml_key

from conformance.judging.failure import format_block
from conformance.report.requirement_cases import Case, build_cases
from conformance.spec.extensions import ROBUSTNESS
from conformance.spec.ledger import Party
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome, ReasonKind
from conformance.spec.result import CheckResult

# The category in which pytest counts an outcome, and the letter that it shows.
_CATEGORY_AND_LETTER: dict[Outcome, tuple[str, str]] = {
    Outcome.PASS: ("passed", "."),
    Outcome.FAIL: ("failed", "F"),
    Outcome.ADVISORY: ("advisory", "a"),
    Outcome.OBSERVED: ("observed", "o"),
    Outcome.NOT_APPLICABLE: ("skipped", "-"),
    Outcome.BLOCKED: ("blocked", "b"),
    Outcome.ERROR: ("error", "E"),
    Outcome.KNOWN_FAILURE: ("known", "k"),
    Outcome.FIXED: ("fixed", "X"),
}
_PYTEST_OUTCOME = {
    Outcome.FAIL: "failed",
    Outcome.ERROR: "failed",
    Outcome.FIXED: "failed",
    Outcome.KNOWN_FAILURE: "skipped",
    Outcome.NOT_APPLICABLE: "skipped",
    Outcome.BLOCKED: "skipped",
}


def find_pytest_status(result: CheckResult) -> tuple[str, str, str]:
    """Return the category, letter and word with which pytest counts and shows a result."""
    if result.has_reason(ReasonKind.TARGET_LOST):
        return "not judged", "-", "NOT JUDGED"
    return (*_CATEGORY_AND_LETTER[result.outcome], OUTCOME_WORDINGS[result.outcome].short.upper())


def mark_report(report: pytest.TestReport) -> None:
    """Mark a pytest report as the report of a row, in any phase (setup, call or teardown)."""
    report.of_conformance = True  # type: ignore[attr-defined]


def is_row_report(report: pytest.TestReport) -> bool:
    """Return whether a pytest report is about a row and contains nothing but the row's result."""
    return hasattr(report, "of_conformance") and (report.passed or hasattr(report, "conformance"))


def attach_result(report: pytest.TestReport, result: CheckResult) -> None:
    """Attach a result to pytest's report, which transports it from a worker to the controller."""
    report.conformance = result.to_dict()  # type: ignore[attr-defined]
    report.duration = result.duration_s  # another process may have judged the row
    is_lost = result.has_reason(ReasonKind.TARGET_LOST)  # a lost target is reported once, elsewhere
    is_beside = result.extension == ROBUSTNESS and result.outcome is Outcome.ERROR  # does not affect the exit status
    report.outcome = "skipped" if is_lost or is_beside else _PYTEST_OUTCOME.get(result.outcome, "passed")  # type: ignore[assignment]
    if report.outcome == "skipped":
        report.longrepr = (report.location[0], report.location[1] or 0, result.message)
    elif report.outcome == "failed":
        report.longrepr = f"{result.label}\n{result.claim}\n{result.message}"


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """The summary line of a failure; pytest reads the attribute `message` of a report's `reprcrash`."""

    message: str


@dataclass(frozen=True, slots=True)
class FailureText:
    """The text of a failure, with the attributes that pytest reads from `longrepr` of a report."""

    reprcrash: SummaryLine
    text: str

    def __str__(self) -> str:
        """Return the full text."""
        return self.text


def explain_failure(report: pytest.TestReport, result: CheckResult, rerun: str) -> None:
    """Put the text of a failure into pytest's report of it, for JUnit files and the summary of `-r`.

    Only the controller may call this function, because pytest-xdist cannot serialize the text in a worker.
    """
    of = f"{result.failure.level} {result.failure.requirement}: " if result.failure else ""
    line = SummaryLine(of + result.message.partition("\n")[0])
    report.longrepr = FailureText(line, "\n".join(format_block(result, rerun)))  # type: ignore[assignment]


# --- junit ------------------------------------------------------------------------------------------------------------
# `--junitxml` contains a case for each requirement instead of each row: a server with one fault is one red line in CI.
# pytest's own writer writes the file, in its own format and with its own settings. During the run it does not receive
# the reports of rows; at the end it receives the requirements.

STAND_IN_NAME = "oip-conformance-junit"


class _JunitStandIn:
    """Receives pytest's reports in place of the JUnit writer, and drops the reports of rows."""

    def __init__(self, log: LogXML) -> None:
        self._log = log

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forward a report unless it is about a row."""
        if not is_row_report(report):
            self._log.pytest_runtest_logreport(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Forward the report."""
        self._log.pytest_collectreport(report)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Forward the error."""
        self._log.pytest_internalerror(excrepr)


def begin_junit(config: pytest.Config) -> None:
    """Replace the JUnit writer by the stand-in, if there is a writer."""
    log = config.stash.get(xml_key, None)
    if log is not None and config.pluginmanager.is_registered(log):
        config.pluginmanager.unregister(log)
        config.pluginmanager.register(_JunitStandIn(log), STAND_IN_NAME)


def finish_junit(config: pytest.Config, results: Sequence[CheckResult], rerun: str, party: Party) -> None:
    """Write the JUnit file with a case for each requirement, and restore the writer.

    `results`: of every check that ran, with the baseline applied if there is one.
    `party`: whether a server or a client was judged.
    """
    log = config.stash.get(xml_key, None)
    if log is None or not config.pluginmanager.has_plugin(STAND_IN_NAME):
        return
    for case in build_cases(results, rerun, party):
        _add_case(log, case)
    log.pytest_sessionfinish()
    config.pluginmanager.unregister(name=STAND_IN_NAME)
    config.pluginmanager.register(log)


def _add_case(log: LogXML, case: Case) -> None:
    """Pass a case to the writer like a test: first a report of the call phase, then one of the teardown phase."""
    node = f"{case.area}::{case.requirement}"
    log.node_reporter(node).add_attribute("name", case.name)
    called = _build_pytest_report(node, case.status, "call", duration=case.duration)
    if case.status == "failed":
        crash = SummaryLine(case.message)
        called.longrepr = FailureText(crash, case.text)  # type: ignore[assignment]
    elif case.status == "skipped":
        called.longrepr = (case.area, 0, case.message)
    log.pytest_runtest_logreport(called)
    log.pytest_runtest_logreport(
        _build_pytest_report(node, "passed", "teardown", user_properties=list(case.properties.items()))
    )


def _build_pytest_report(node: str, outcome: Any, when: Any, **members: Any) -> pytest.TestReport:
    return pytest.TestReport(node, (node, 0, node), {}, outcome, None, when, **members)
