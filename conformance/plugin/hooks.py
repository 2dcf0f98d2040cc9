"""The pytest hooks of a run, registered if there is a target.

`collection` creates the items, `base_run` holds the state of the run, and `ending` concludes it. A pytest-xdist worker
only judges rows; the controller writes reports and the verdict.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from conformance import checks
from conformance.judging.conclusion import conclude_nothing_judged
from conformance.plugin import collection, markers, printing, pytest_reports, signals, startup
from conformance.plugin.base_run import BaseRun
from conformance.plugin.options import has_client
from conformance.plugin.printing import ProgressLine
from conformance.plugin.server_run import ServerRun
from conformance.spec.ledger import Party
from conformance.spec.report import Report
from conformance.spec.result import CheckResult
from conformance.spec.user_error import UserError
from conformance.transport import journal
from conformance.transport.journal import JournalError

WAITED = "oip_conformance_waited_s"  # in the output of a pytest-xdist worker


class Hooks:
    """The pytest hooks of a run.

    Attributes:
        is_worker: whether this process is a pytest-xdist worker.
        report: the JSON report after the run has ended; None if no report is needed.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Read the options. Raises pytest.UsageError: an option cannot be used."""
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.run = _create_run(config)
        markers.register(config)  # those of packs as well, which the run has loaded
        self.report: Report | None = None
        self.progress: ProgressLine | None = None
        self._sigterm = signals.interrupt_on_sigterm()
        self._interrupt: KeyboardInterrupt | None = None
        self._has_only_rows = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Contact the target and run discovery, after pytest has printed its header."""
        self._start_run()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[Any]) -> None:
        """Run discovery before pytest-xdist starts workers; keep it from starting any if there is nothing to judge."""
        self._start_run()
        if self.run.conclusion:
            specs.clear()

    def _start_run(self) -> None:
        """Contact the target and print the header; later calls do nothing.

        Raises pytest.UsageError: the evidence cannot be written, or the suite itself is broken.
        """
        if not self.run.has_started:
            if not self.is_worker:
                self.run.create_evidence_folder()
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            try:
                with printing.show_live_line(reporter) as progress:
                    self.run.start(progress)
                if self.run.conclusion is None:
                    checks.load_every_check(of_clients=self.run.party is Party.CLIENT)
            except KeyboardInterrupt as interrupt:
                self._defer_interrupt(interrupt)
            except UserError as error:
                raise pytest.UsageError(str(error)) from error
            except JournalError as error:
                if self.run.options.evidence is not None:
                    journal.remove(self.run.options.evidence)
                raise pytest.UsageError(f"--conformance-evidence: {error.strerror}") from error
            printing.print_header(self.run, reporter)

    def _defer_interrupt(self, interrupt: KeyboardInterrupt) -> None:
        """Store an interrupt, for `pytest_collection` to raise; raised now, it would prevent reports and a verdict.

        Raises KeyboardInterrupt: the run has not started, so there is nothing to report.
        """
        if not self.run.has_started:
            raise interrupt
        self._interrupt = interrupt
        self.run.conclusion = conclude_nothing_judged(f"interrupted during the discovery of {self.run.name}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """Collect nothing if there is nothing to judge.

        Raises KeyboardInterrupt: the run was interrupted during discovery.
        """
        if self._interrupt is not None:
            raise self._interrupt
        if self.run.options.junit == "requirements":
            pytest_reports.begin_junit(self.config)
        if self.run.conclusion is None:
            if self.config.args == [str(collection.FOLDER)]:  # `-k` for users' own tests stays unchanged
                markers.make_keywords_exact(self.config, self.run.party)
            return None
        if self.config.pluginmanager.has_plugin("dsession"):
            self.config.pluginmanager.unregister(name="dsession")  # no workers were started
        session.items = []
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Resume garbage collection, which excludes the objects created so far."""
        self._has_only_rows = all(isinstance(item, collection.CheckItem) for item in session.items)
        startup.resume_garbage_collection()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass the addresses and the discovery result of the target to a worker."""
        node.workerinput["oip_conformance"] = self.run.build_worker_input()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the waiting time of a worker that has ended to the total."""
        if isinstance(self.run, ServerRun):
            self.run.waited_by_workers_s += getattr(node, "workeroutput", {}).get(WAITED, 0.0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the areas of the suite instead of its files."""
        return collection.collect_directory(path, parent)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect rows that the target file excludes, and move rows that have crashed servers to the end."""
        collection.arrange_items(config, items, self.run.never)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the result of a row to pytest's report."""
        report = yield
        if isinstance(item, collection.CheckItem):
            pytest_reports.mark_report(report)
            if call.when == "call" and item.result is not None:
                pytest_reports.attach_result(report, item.result)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Start the progress line, tell the run which rows will be judged, and judge them if there are processes."""
        if isinstance(self.run, ServerRun):
            rows = [item.case for item in session.items if isinstance(item, collection.CheckItem)]
            self.run.expect_rows(rows)
            printing.print_duration(self.run, rows, self.config.pluginmanager.get_plugin("terminalreporter"))
        self.progress = ProgressLine(self.config.pluginmanager.get_plugin("terminalreporter"), session)
        pool = self.run.pool if isinstance(self.run, ServerRun) else None
        if pool is None or session.testsfailed or self.config.option.collectonly:
            return None  # pytest's own loop
        pool.show = self.progress.show
        return collection.run_items(session, pool.has_passed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Return the category, letter and word with which pytest counts and shows a row."""
        result = _read_result(report)
        if result is None:
            return None
        category, letter, word = pytest_reports.find_pytest_status(result)
        is_shown = not (self.progress and self.progress.is_live)  # else the progress line shows it
        return (category, letter, word) if is_shown else (category, "", "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a result and explain it in pytest's report; the controller also receives the results of workers."""
        result = _read_result(report)
        if result:
            self.run.results.append(result)
            if self.progress and not hasattr(report, "was_shown"):
                self.progress.show(result)
            if report.failed and not self.is_worker:
                pytest_reports.explain_failure(report, result, self.run.build_rerun_command())

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Store the reason why the run stops early: Ctrl-C, or the reason of a plugin."""
        self.run.stopped = str(excinfo.value) or "interrupted"
        if excinfo.type is collection.UnrecordedExit:
            self.run.is_recorded, self.run.stopped = False, f"cannot write {self.run.recording}: {excinfo.value}"
            self.run.output.faults.append(self.run.stopped)
        # The exceptions with which pytest and pytest-xdist stop at a failure derive from KeyboardInterrupt.
        self.run.was_cut_short = excinfo.type not in (KeyboardInterrupt, pytest.exit.Exception)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write reports, set the exit status, and print the verdict as the last line."""
        with signals.defer_signals():
            self._conclude_run(session, int(exitstatus))
        yield
        if not self.is_worker:
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            printing.print_verdict(self.run, self.report, reporter)

    def _conclude_run(self, session: pytest.Session, exitstatus: int) -> None:
        from conformance.plugin import ending  # lazy: keeps the start of a run fast

        if self.progress:
            self.progress.end()
        if self.is_worker and isinstance(self.run, ServerRun) and self.run.has_started:
            self.config.workeroutput[WAITED] = self.run.waited_s  # type: ignore[attr-defined]
        if not self.is_worker:
            self.run.stopped = self.run.stopped or str(session.shouldfail or session.shouldstop or "")
            session.exitstatus, self.report = ending.finish(self.run, self.config, exitstatus)
            found = self.run.conclusion
            of_packs = [result for pack in found.packs for result in pack.results] if found else []
            results = [*found.results, *of_packs] if found else []
            pytest_reports.finish_junit(
                self.config, results, self.run.build_rerun_command() if results else "", self.run.party
            )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary and the unmet requirements, unless `--no-summary` is set."""
        if not terminalreporter.no_summary:
            printing.print_summary(self.run, self.report, terminalreporter)

    def pytest_unconfigure(self) -> None:
        """Restore the SIGTERM handler and close the run."""
        if self._has_only_rows:
            startup.exclude_results_from_garbage_collection()
        signals.restore_handler(self._sigterm)
        self.run.close()


def _create_run(config: pytest.Config) -> BaseRun:
    """Create the run of a client or a server, depending on the options.

    Raises pytest.UsageError: an option cannot be used.
    """
    from_controller = getattr(config, "workerinput", {}).get("oip_conformance")
    try:
        if has_client(config.option, config.getini):
            from conformance.plugin.client_run import ClientRun  # lazy: other runs do not need its peers

            return ClientRun(config, from_controller)
        return ServerRun(config, from_controller)
    except UserError as error:
        raise pytest.UsageError(str(error)) from error


def _read_result(report: Any) -> CheckResult | None:
    data = getattr(report, "conformance", None)
    return CheckResult.from_dict(data) if data else None
