"""Judges the recording of a client again and compares the result with a report; `rejudge` is for servers."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.certification.rejudge import check_times, compare_reports
from conformance.clients.recording.calls import ClientRecording
from conformance.clients.recording.replaying import ReplayAdapter, ReplayPeer
from conformance.judging.client_session import ClientJudge, describe_client
from conformance.judging.conclusion import Conclusion, sort_results
from conformance.judging.coverage import find_coverage
from conformance.judging.quick_rows import sort_for_run
from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.report import json_report
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.ledger import Party
from conformance.spec.report import Report
from conformance.spec.result import CheckResult
from conformance.spec.verdict import conclude
from conformance.transport.grpc_packages import expect_grpc


def find_differences(recording: ClientRecording, report: Report) -> Iterator[str]:
    """Judge a recording again, and yield the differences between the report and the new result.

    Raises MissingExtraError: the recording has gRPC calls, and the extra `grpc` is not installed.
    """
    client, transports, target = recording.client, list_transports(recording), report["target"]
    if recording.url != target["url"]:
        yield f"the recording is of a client of {recording.url}, the report of one of {target['url']}"
        return
    yield from check_times(recording.times, report)
    adapter, results = judge_recording(recording, strict=report["options"]["strict"])
    found = describe_client(client, results)
    coverage = find_coverage(results, found, profile="certify", transports=transports, party=Party.CLIENT)
    rejudged = json_report.build(
        Conclusion(conclude(results, coverage=coverage), results, coverage=coverage), found,
        url=recording.url, grpc=recording.grpc, options=report["options"], seed=report["seed"],
        started=report["started"], finished=report["finished"], party=Party.CLIENT,
        about={"language": client.language, "transports": list(transports)},
    )  # fmt: skip
    unused = len(recording.calls.keys() - adapter.used)
    if unused:
        yield f"the recording has {unused} adapter calls that this suite does not make"
    yield from adapter.differences
    yield from compare_reports(rejudged, report)


def list_transports(recording: ClientRecording) -> tuple[str, ...]:
    """Return the transports over which the client of a recording was judged."""
    judged = (HTTP, *([GRPC] if recording.grpc else []))
    return tuple(transport for transport in judged if transport in recording.client.transports)


def judge_recording(recording: ClientRecording, *, strict: bool) -> tuple[ReplayAdapter, list[CheckResult]]:
    """Judge a recording with this suite; return the adapter that replayed it, and the results.

    Raises MissingExtraError: the recording has gRPC calls, and the extra `grpc` is not installed.
    """
    if recording.grpc:
        expect_grpc("a recording of calls over gRPC")
    peer = ReplayPeer()
    adapter = ReplayAdapter(recording, peer)
    judge = ClientJudge(adapter, recording.client, peer, strict=strict)
    results = []
    rows = list_profile_rows("certify", subjects=CLIENTS, transports=list_transports(recording))
    for case in sort_for_run(rows):  # answers of earlier rows are compared with those of later ones
        adapter.start_row(case.key)
        results.append(judge(case))
    return adapter, sort_results(results, CLIENTS)
