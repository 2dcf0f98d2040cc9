"""The hooks of a run, registered when there is a target.

`collect` makes items of checks, `run` keeps the run. A worker of pytest-xdist judges, and leaves reports and verdict to
the controller.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from conformance import collect, screen
from conformance.report.result import CheckResult
from conformance.run import Run


class Hooks:
    """What pytest calls during a run.

    Attributes:
        run: the run of this process.
        is_worker: whether this process is a worker of pytest-xdist.
    """

    def __init__(self, config: pytest.Config, url: str) -> None:
        """Read the options.

        Raises:
            pytest.UsageError: one cannot be used.
        """
        self.is_worker = hasattr(config, "workerinput")
        self.run = Run(config, url, getattr(config, "workerinput", {}).get("oip_conformance"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Reach the target and see what it offers."""
        self.run.start()
        if self.run.verdict and session.config.pluginmanager.has_plugin("dsession"):
            session.config.pluginmanager.unregister(name="dsession")  # no workers of pytest-xdist for nothing

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """Collect nothing when there is nothing to judge."""
        if not self.run.verdict:
            return None
        session.items = []
        return True

    def pytest_report_header(self) -> list[str]:
        """Say who is judged, on what, and how."""
        return screen.header(self.run)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the target is and what it offers."""
        node.workerinput["oip_conformance"] = self.run.for_worker()

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the modules of the suite."""
        return collect.collect_file(file_path, parent)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what the target's file keeps back; what has ended servers comes last."""
        collect.arrange(config, items, self.run.file.never)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the result of a check into pytest's report."""
        report = yield
        if isinstance(item, collect.CheckItem) and call.when == "call" and item.result is not None:
            collect.fill_report(report, item.result)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Count and show a check by its own outcome."""
        result = _result(report)
        return collect.STATUS[result.outcome] if result else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a result, and tell pytest's own reports of it; the controller gets those of the workers too."""
        result = _result(report)
        if result:
            self.run.results.append(result)
            if not self.is_worker:
                collect.tell(report, result, screen.rerun(self.run))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why the run ends here: Ctrl-C, or a plugin that stops it with a reason."""
        self.run.stopped = str(excinfo.value) or "interrupted"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Conclude: write reports, set the exit status, and print the verdict as the last line."""
        if not self.is_worker:
            self.run.stopped = self.run.stopped or str(session.shouldfail or session.shouldstop or "")
            session.exitstatus = self.run.finish(int(exitstatus))
        yield
        if not self.is_worker:
            screen.print_verdict(self.run)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the summary, then what was not met."""
        screen.print_summary(self.run, terminalreporter)

    def pytest_unconfigure(self) -> None:
        """Let go of the target."""
        self.run.close()


def _result(report: Any) -> CheckResult | None:
    data = getattr(report, "conformance", None)
    return CheckResult.from_dict(data) if data else None
