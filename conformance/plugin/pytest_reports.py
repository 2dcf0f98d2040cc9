"""Results in pytest's own reports: how an outcome counts, what travels from a worker, what JUnit and `-r` show."""

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

# How pytest counts an outcome, and the letter by which it shows it.
_COUNTED: dict[Outcome, tuple[str, str]] = {
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


def find_status(result: CheckResult) -> tuple[str, str, str]:
    """Return how pytest counts a result, and how it shows it: category, letter, word."""
    if result.is_for(ReasonKind.TARGET_LOST):
        return "not judged", "-", "NOT JUDGED"
    return (*_COUNTED[result.outcome], OUTCOME_WORDINGS[result.outcome].short.upper())


def mark_report(report: pytest.TestReport) -> None:
    """Say in pytest's own report that it is of a row: before, in, or after its call."""
    report.of_conformance = True  # type: ignore[attr-defined]


def is_of_row(report: pytest.TestReport) -> bool:
    """Say whether a report is of a row, and has nothing to say but what the result does."""
    return hasattr(report, "of_conformance") and (report.passed or hasattr(report, "conformance"))


def attach_result(report: pytest.TestReport, result: CheckResult) -> None:
    """Put a result into pytest's own report, which carries it from a worker to the controller."""
    report.conformance = result.to_dict()  # type: ignore[attr-defined]
    is_lost = result.is_for(ReasonKind.TARGET_LOST)  # the target is gone: that is told once
    is_beside = result.extension == ROBUSTNESS and result.outcome is Outcome.ERROR  # no exit status rests on it
    report.outcome = "skipped" if is_lost or is_beside else _PYTEST_OUTCOME.get(result.outcome, "passed")  # type: ignore[assignment]
    if report.outcome == "skipped":
        report.longrepr = (report.location[0], report.location[1] or 0, result.message)
    elif report.outcome == "failed":
        report.longrepr = f"{result.label}\n{result.claim}\n{result.message}"


@dataclass(frozen=True, slots=True)
class Crash:
    """The line by which pytest's own reports name a failure."""

    message: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A failure as pytest's own reports take it: a line that names it, and as text all that is to say."""

    reprcrash: Crash
    text: str

    def __str__(self) -> str:
        """Return the whole text."""
        return self.text


def explain(report: pytest.TestReport, result: CheckResult, rerun: str) -> None:
    """Say in pytest's own report what failed, for JUnit and `-r`; not in a worker, where it could not be sent on."""
    if report.outcome != "failed":
        return
    of = f"{result.failure.level} {result.failure.requirement}: " if result.failure else ""
    line = Crash(of + result.message.partition("\n")[0])
    report.longrepr = Explanation(line, "\n".join(format_block(result, rerun)))  # type: ignore[assignment]


# --- junit ------------------------------------------------------------------------------------------------------------
# `--junitxml` has a case for each requirement instead of each row: a server with one fault is one red line in CI.
# pytest's own writer makes the file, in its own format and under its own settings. It is kept from the rows while they
# run, and given the requirements at the end.

STAND_IN_NAME = "oip-conformance-junit"


class _StandIn:
    """Hears of reports in the writer's place, and keeps those of rows back."""

    def __init__(self, log: LogXML) -> None:
        self._log = log

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass on what is of no row."""
        if not is_of_row(report):
            self._log.pytest_runtest_logreport(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Pass it on."""
        self._log.pytest_collectreport(report)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Pass it on."""
        self._log.pytest_internalerror(excrepr)


def begin_junit(config: pytest.Config) -> None:
    """Put the stand-in in the writer's place, where there is a writer."""
    log = config.stash.get(xml_key, None)
    if log is not None and config.pluginmanager.is_registered(log):
        config.pluginmanager.unregister(log)
        config.pluginmanager.register(_StandIn(log), STAND_IN_NAME)


def finish_junit(config: pytest.Config, results: Sequence[CheckResult], rerun: str, party: Party) -> None:
    """Have the file written with a case for each requirement, and put the writer back.

    Args:
        config: of pytest.
        results: of every check that was run, as the baseline has them where there is one.
        rerun: the command that runs the suite again.
        party: who was judged.
    """
    log = config.stash.get(xml_key, None)
    if log is None or not config.pluginmanager.has_plugin(STAND_IN_NAME):
        return
    for case in build_cases(results, rerun, party):
        _add(log, case)
    log.pytest_sessionfinish()
    config.pluginmanager.unregister(name=STAND_IN_NAME)
    config.pluginmanager.register(log)


def _add(log: LogXML, case: Case) -> None:
    """Give the writer a case, as pytest gives it a test: a report of the call, and one of what follows."""
    node = f"{case.area}::{case.requirement}"
    log.node_reporter(node).add_attribute("name", case.name)
    called = _report(node, case.status, "call", duration=case.duration)
    if case.status == "failed":
        crash = Crash(case.message)
        called.longrepr = Explanation(crash, case.text)  # type: ignore[assignment]
    elif case.status == "skipped":
        called.longrepr = (case.area, 0, case.message)
    log.pytest_runtest_logreport(called)
    log.pytest_runtest_logreport(_report(node, "passed", "teardown", user_properties=list(case.properties.items())))


def _report(node: str, outcome: Any, when: Any, **members: Any) -> pytest.TestReport:
    return pytest.TestReport(node, (node, 0, node), {}, outcome, None, when, **members)
