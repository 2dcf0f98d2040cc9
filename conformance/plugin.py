"""The pytest plugin: hooks alone. Without a target it does nothing.

`pytest --target-url=URL` collects the installed suite when no path is given, judges the target, and ends with the
verdict and exit status of the contract. `options` says what can be set, `collect` makes items of checks, `run` keeps
the run; a worker of pytest-xdist judges, and leaves the run's report and verdict to the controller.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from conformance import collect, options
from conformance.report.result import CheckResult
from conformance.run import RUN, Run, is_worker


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Collect the installed suite when the user names no path, before any conftest of the user's is imported."""
    known = early_config.known_args_namespace
    if not options.target_url(known.target_url, early_config.getini("oip_target_url")):
        return
    if not known.file_or_dir:
        args += ["--pyargs", "conformance.checks"]
        known.file_or_dir = ["conformance.checks"]
        known.pyargs = True


def pytest_configure(config: pytest.Config) -> None:
    """Start a run when there is a target."""
    url = options.target_url(config.getoption("target_url"), config.getini("oip_target_url"))
    if url:
        config.stash[RUN] = Run(config, url)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Reach the target and see what it offers; end here when there is nothing to judge."""
    run = session.config.stash.get(RUN, None)
    if run:
        run.start()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say who is judged, on what, and how."""
    run = config.stash.get(RUN, None)
    return run.header() if run else []


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the target is and what it offers."""
    run = node.config.stash.get(RUN, None)
    if run:
        node.workerinput["oip_conformance"] = run.for_worker()


def pytest_collect_file(file_path: Any, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the modules of the suite."""
    return collect.collect_file(file_path, parent) if RUN in parent.config.stash else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the result of a check into pytest's report."""
    report = yield
    if isinstance(item, collect.CheckItem) and call.when == "call" and item.result is not None:
        collect.fill_report(report, item.result)
        report.user_properties.append(("requirements", " ".join(item.result.requirements)))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """Count and show a check by its own outcome."""
    data = getattr(report, "conformance", None)
    return collect.STATUS[CheckResult.from_dict(data).outcome] if data else None


def pytest_runtest_logreport(report: Any) -> None:
    """Keep a result; on the controller this also gets those of the workers."""
    data = getattr(report, "conformance", None)
    if data and Run.current:
        Run.current.results.append(CheckResult.from_dict(data))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Conclude: write reports, set the exit status, and print the verdict as the last line."""
    run = session.config.stash.get(RUN, None)
    if run and not is_worker(session.config):
        session.exitstatus = run.finish(int(exitstatus))
    yield
    if run and not is_worker(session.config):
        run.print_verdict()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show the summary, then what was not met."""
    run = terminalreporter.config.stash.get(RUN, None)
    if run:
        run.print_summary(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of the target."""
    run = config.stash.get(RUN, None)
    if run:
        run.close()
