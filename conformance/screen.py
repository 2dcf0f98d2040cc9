"""What a run shows in the terminal: its header, the summary with all that was not met, and the verdict."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from conformance import options
from conformance.report import github, terminal

if TYPE_CHECKING:
    from conformance.run import Run


def header(run: Run) -> list[str]:
    """Return the lines above the run; none where there is nothing to judge."""
    return [] if run.verdict else terminal.header(run.shown_url, run.survey, run.profile, run.seed, _door(run))


def _door(run: Run) -> str:
    """Return what the header says of gRPC; empty where it says nothing."""
    if "http" in run.target.settings.doors and run.shown_grpc:
        return run.shown_grpc
    without = run.is_of_bundled_server and not run.shown_grpc
    return f"not judged: {options.INSTALL_GRPC}" if without else ""


def print_summary(run: Run, reporter: Any) -> None:
    """Show the summary and everything that was not met."""
    if not run.results:
        return
    sections = (
        ("gate", terminal.gate(run.gate)),
        ("summary", terminal.summary(run.results, run.survey, run.missing)),
        ("failures", terminal.failures(run.results, rerun(run))),
        ("advice", terminal.advice(run.results)),
        ("observations", terminal.observations(run.results)),
        ("not judged", terminal.not_judged(run.results, run.survey)),
    )
    for title, section in sections:
        lines = list(section)
        if lines:
            reporter.write_sep("=", title)
            reporter.write_line("\n".join(lines))


def print_verdict(run: Run) -> None:
    """Show the verdict, as the last line."""
    reporter: Any = run.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or run.verdict is None:
        return
    for command in github.commands(run.report, os.environ):
        reporter.write_line(command)
    line = terminal.verdict_line(run.verdict, run.shown_url, run.results, run.gate)
    color = terminal.COLORS[run.verdict.verdict if run.gate is None else run.gate.color]
    reporter.write_line(line, **{color: True, "bold": True})


def rerun(run: Run) -> str:
    """Return the command that runs the suite against this target, without what selects checks."""
    parts = ["pytest", *_addresses(run)]
    for name in run.models:
        parts += ["--model", name]
    if run.config.option.conformance_dangerous:
        parts.append("--conformance-dangerous")
    return shlex.join(parts)


def _addresses(run: Run) -> list[str]:
    """Return the options that name the target: its file, and the addresses that do not stand in there."""
    if run.is_of_bundled_server:
        return [f"--target-{'url' if run.url else 'grpc'}={options.REFERENCE}"]
    file = options.given("target_config", run.config.option.target_config, run.config.getini)
    doors = run.target.settings.doors
    parts = [f"--target-config={file}"] if file else []
    if "http" in doors and not (file and run.url == run.file.url):
        parts.append(f"--target-url={run.shown_url}")
    if "grpc" in doors and not (file and run.grpc == run.file.grpc):
        parts.append(f"--target-grpc={run.shown_grpc.removeprefix('grpc://')}")
    return parts
