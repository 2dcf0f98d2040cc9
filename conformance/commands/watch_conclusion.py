"""The end of a watch: updates the baseline, writes reports, and shows all violations."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from conformance.clients.recording.records import RecordedExchange
from conformance.clients.traffic import Traffic
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.baseline import Baseline, revert_baseline
from conformance.judging.conclusion import Conclusion, conclude_watch, summarize_clients
from conformance.judging.run_options import RunOptions
from conformance.report import formats, github, json_report, output_files, terminal, terminal_findings
from conformance.report.lines import Line
from conformance.report.output_files import OutputWriter
from conformance.report.view import View, build_view
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Party
from conformance.spec.outcome import INCOMPLETE, INTEROPERABLE, Outcome
from conformance.spec.report import Report
from conformance.spec.result import CheckResult
from conformance.spec.verdict import EXIT_STATUS, Verdict

RULER = 78


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs that clients connect to; empty for a transport that is not watched."""

    http: str = ""
    grpc: str = ""

    def find_address(self, recorded: RecordedExchange) -> str:
        """Return the address that received a request."""
        return self.grpc if recorded.received.is_over_grpc else self.http

    def build_environment(self) -> dict[str, str]:
        """Return the environment variables that pass the addresses to a command."""
        grpc = self.grpc.removeprefix("grpc://")
        return {name: value for name, value in (("OIP_TARGET_URL", self.http), ("OIP_TARGET_GRPC", grpc)) if value}


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The result of a watch.

    Attributes:
        started: the start, a UTC time in ISO 8601.
        stopped: why the watch was cut short; empty if it was not.
        unread: reason why traffic was not read -> number of times.
        is_of_recording: whether the requests come from a recording rather than a live watch.
    """

    traffic: Traffic
    addresses: Addresses
    started: str
    stopped: str = ""
    unread: Mapping[str, int] = field(default_factory=dict)
    is_of_recording: bool = False


def finish_watch(watched: WatchResult, options: RunOptions) -> tuple[str, int]:
    """Update the baseline, write reports; return the text to print and the exit status."""
    writer, gate = OutputWriter(), options.gate
    found = watched.traffic.list_results()
    baseline, results = _apply_baseline(options, found, writer, is_whole=bool(found) and not watched.stopped)
    conclusion = conclude_watch(results, baseline, watched.stopped, gate)
    discovery_result = summarize_clients(results, list(watched.traffic.clients))
    report = _build_report(watched, conclusion, discovery_result, options)
    for path in options.reports:
        writer.write_or_report(f"the report {path}", partial(formats.write, report, path))
    lines = list(_format_output(watched, build_view(report), shows_all=options.shows_all))
    if options.reports or not watched.is_of_recording:
        writer.write_or_report("the summary of the GitHub step", partial(github.summarize, report, os.environ))
        lines += github.build_commands(report, os.environ)
    lines.append(_format_verdict(watched, report, conclusion, discovery_result.offered))
    verdict, found_gate = _ignore_unsent_kinds(conclusion.verdict, gate, watched.stopped), conclusion.gate
    status = verdict.exit_status(gate) if found_gate is None else found_gate.exit_status(verdict, gate=gate)
    writer.print_faults()
    return "\n".join(lines), EXIT_STATUS[INCOMPLETE] if writer.faults else status


def _apply_baseline(
    options: RunOptions, results: Sequence[CheckResult], writer: OutputWriter, *, is_whole: bool
) -> tuple[Baseline | None, Sequence[CheckResult]]:
    """Update the baseline if requested; return the baseline, and the results with the baseline applied."""
    baseline, path = options.baseline, options.baseline_file
    if baseline is None or path is None:
        return None, results
    if options.updates_baseline:
        found = [baseline.apply(result) for result in results]
        baseline = output_files.update_baseline(path, baseline, found, writer, is_whole=is_whole)
    return baseline, [baseline.apply(revert_baseline(result)) for result in results]


def _ignore_unsent_kinds(verdict: Verdict, gate: str | None, stopped: str) -> Verdict:
    """Return the verdict for the exit status; kinds of requests that the clients did not send do not affect it."""
    is_open = verdict.interoperable is None and not stopped
    return replace(verdict, interoperable=True) if is_open and gate == INTEROPERABLE else verdict


def _build_report(
    watched: WatchResult, conclusion: Conclusion, discovery_result: DiscoveryResult, options: RunOptions
) -> Report:
    addresses = watched.addresses
    url = addresses.http or addresses.grpc
    return json_report.build(
        conclusion,
        discovery_result,
        url=url,
        grpc=addresses.grpc,
        options=options.to_report(),
        seed=None,
        started=watched.started,
        finished=format_now(),
        party=Party.CLIENT,
    )


def format_now() -> str:
    """Return the current time in the format of reports."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- output -----------------------------------------------------------------------------------------------------------


def _format_output(watched: WatchResult, view: View, *, shows_all: bool) -> Iterator[str]:
    """Yield the lines for the terminal; with a baseline, only the difference."""
    most = None if shows_all else terminal_findings.MAX_BLOCKS
    unmet, advised = (view.choose_blocks(each) for each in (Outcome.FAIL, Outcome.ADVISORY))
    yield from _format_section("clients", _list_clients(watched.traffic))
    yield from _format_section("not read", [f"{count:>6}  {why}" for why, count in watched.unread.items()])
    if view.gate:
        yield from _format_section("gate", terminal.format_gate(view.gate))
    elif view.counts:
        yield from _format_section("summary", terminal.format_summary(view))
    yield from _format_section("failures", terminal_findings.format_failures(unmet, "", max_blocks=most))
    yield from _format_section("advice", terminal_findings.format_advice(advised, max_blocks=most))
    yield from _format_section("fix first", terminal_findings.format_fix_first(unmet))


def _format_verdict(watched: WatchResult, report: Report, conclusion: Conclusion, offered: Collection[str]) -> str:
    subject = f"What {_format_clients(list(watched.traffic.clients))} sent"
    return terminal.format_verdict(report, conclusion, subject, offered)


def _format_clients(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} clients"


def _list_clients(traffic: Traffic) -> Iterator[str]:
    for sender in traffic.clients.values():
        counts = [
            f"{sender.requests[name]} over {word}" for name, word in _TRANSPORT_NAMES.items() if name in sender.requests
        ]
        too_long = f"; {sender.too_long} too long: only their heads were judged" if sender.too_long else ""
        yield f"{sender.name}: requests {', '.join(counts)}; {_format_unmet(traffic.count_unmet(sender))}{too_long}"


def _format_unmet(counts: Counter[Outcome]) -> str:
    """Return as text how many requirements a client fails, and how many more it is advised to meet."""
    said = ((counts[Outcome.FAIL], "not met"), (counts[Outcome.ADVISORY], "advised"))
    found = [f"{count} requirement{'' if count == 1 else 's'} {what}" for count, what in said if count]
    return ", ".join(found) or "all met"


_TRANSPORT_NAMES = {HTTP: "HTTP", GRPC: "gRPC"}


def _format_section(title: str, lines: Iterable[Line | str]) -> Iterator[str]:
    """Yield a title and its lines, wrapped on a terminal; nothing if there are no lines."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    shown = [line if isinstance(line, Line) else Line(line, is_whole=True) for line in lines]
    if shown:
        yield f" {title} ".center(RULER, "=")
        yield from (piece for line in shown for piece in line.wrap(width))
