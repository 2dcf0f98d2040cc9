"""`--junitxml` with a case for each requirement instead of each row: a server with one fault is one red line in CI.

pytest's own writer makes the file, in its own format and under its own settings. It is kept from the rows while they
run, and given the requirements at the end. What is not of the suite reaches it as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.junitxml import LogXML, xml_key

from conformance.plugin import pytest_reports
from conformance.report.requirement_cases import Case, build_cases
from conformance.spec.ledger import Party
from conformance.spec.result import CheckResult

STAND_IN_NAME = "oip-conformance-junit"


class _StandIn:
    """Hears of reports in the writer's place, and keeps those of rows back."""

    def __init__(self, log: LogXML) -> None:
        self._log = log

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass on what is of no row."""
        if not pytest_reports.is_of_row(report):
            self._log.pytest_runtest_logreport(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Pass it on."""
        self._log.pytest_collectreport(report)

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Pass it on."""
        self._log.pytest_internalerror(excrepr)


def begin(config: pytest.Config) -> None:
    """Put the stand-in in the writer's place, where there is a writer."""
    log = config.stash.get(xml_key, None)
    if log is not None and config.pluginmanager.is_registered(log):
        config.pluginmanager.unregister(log)
        config.pluginmanager.register(_StandIn(log), STAND_IN_NAME)


def finish(config: pytest.Config, results: Sequence[CheckResult], rerun: str, party: Party) -> None:
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
        crash = pytest_reports.Crash(case.message)
        called.longrepr = pytest_reports.Explanation(crash, case.text)  # type: ignore[assignment]
    elif case.status == "skipped":
        called.longrepr = (case.area, 0, case.message)
    log.pytest_runtest_logreport(called)
    log.pytest_runtest_logreport(_report(node, "passed", "teardown", user_properties=list(case.properties.items())))


def _report(node: str, outcome: Any, when: Any, **members: Any) -> pytest.TestReport:
    return pytest.TestReport(node, (node, 0, node), {}, outcome, None, when, **members)
