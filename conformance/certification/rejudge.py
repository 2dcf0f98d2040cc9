"""Judges a recording again and compares the result with a report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from conformance.certification.manifest import Manifest
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.conclusion import Conclusion, conclude_pack
from conformance.judging.coverage import find_coverage
from conformance.judging.quick_rows import sort_for_run
from conformance.judging.run_start import resolve_models
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.judging.session import Session
from conformance.report import json_report
from conformance.roles.placement import Placement
from conformance.spec.report import Report, ReportRow, TargetDetails, TargetEntry, list_rows
from conformance.spec.result import CheckResult
from conformance.spec.verdict import conclude
from conformance.transport import config, settings
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.recording import Recording
from conformance.transport.replay import NotRecordedError, ReplayTarget
from conformance.transport.settings import SettingsError
from conformance.transport.unreachable import TargetLostError

# Members of a row that judging again cannot reproduce, or that depend on other rows.
RUN_SPECIFIC_MEMBERS = ("duration_s", "exchanges")
# Top-level members of a report that judging again must reproduce.
_RECOMPUTED = (
    *("suite", "target", "verdict", "interoperable", "why", "coverage", "extensions", "requirements"),
    "failure_patterns",
)
MAX_CLOCK_DIFFERENCE = timedelta(seconds=2)  # times of a report are whole seconds


def find_differences(recording: Recording, report: Report, made: Manifest) -> Iterator[str]:
    """Judge a recording again, and yield the differences between the report and the new result.

    Raises MissingExtraError: the recording has gRPC calls, and the extra `grpc` is not installed.
    """
    target = report["target"]
    if recording.url != target["url"]:
        yield f"the recording is of {recording.url}, the report of {target['url']}"
        return
    yield from check_times(recording.times, report)
    replayed = make_replay_target(recording)
    try:
        subjects, found, results = judge_recording(replayed, report, made)
    except (TargetLostError, SettingsError, NotRecordedError) as error:
        yield f"the recording does not belong to a run with these options: {error}"
        return
    coverage = find_coverage(
        results,
        found,
        profile="certify",
        transports=replayed.settings.transports,
        requested=report["options"]["extensions"],
    )
    named = report["options"].get("models", [])
    if list(subjects.models) != named:
        yield f"the report judges the models {named}, the recording has {list(subjects.models)}"
    of_packs = [conclude_pack(name, results) for name in subjects.packs]
    own = [result for result in results if result.extension not in subjects.packs]
    rejudged = json_report.build(
        Conclusion(conclude(own, coverage=coverage), own, coverage=coverage, packs=of_packs), found,
        url=target["url"], grpc=recording.grpc, options=report["options"], seed=report["seed"],
        started=report["started"], finished=report["finished"],
        about=_copy_unrecorded_members(target),
    )  # fmt: skip
    unused = len(recording.calls.keys() - replayed.used)
    if unused:
        yield f"the recording has {unused} exchanges that this suite does not make"
    yield from compare_reports(rejudged, report)


def _copy_unrecorded_members(target: TargetEntry) -> TargetDetails:
    found: TargetDetails = {}
    if "suffers_from_concurrency" in target:
        found["suffers_from_concurrency"] = target["suffers_from_concurrency"]
    if "waited_s" in target:
        found["waited_s"] = target["waited_s"]
    return found


def check_times(times: tuple[datetime, datetime], report: Report) -> Iterator[str]:
    """Yield each contradiction between the times of the recorded exchanges and the times of the run in the report."""
    started, finished = (datetime.fromisoformat(report[name]) for name in ("started", "finished"))
    if started > finished:
        yield "the run ended before it began"
    first, last = times
    if first < started - MAX_CLOCK_DIFFERENCE or last > finished + MAX_CLOCK_DIFFERENCE:
        yield f"the recording was made between {first} and {last}, the run between {started} and {finished}"


def make_replay_target(recording: Recording) -> ReplayTarget:
    """Return a target that replays a recording.

    Raises MissingExtraError: the recording has gRPC calls, and the extra `grpc` is not installed.
    """
    if recording.grpc:
        expect_grpc("a recording of calls over gRPC")
    return ReplayTarget(settings.make_settings(recording.url, grpc=recording.grpc or None), recording.calls)


def judge_recording(
    target: ReplayTarget, report: Report, made: Manifest
) -> tuple[Subjects, DiscoveryResult, list[CheckResult]]:
    """Judge a recording with this suite, with the options of the original run.

    Returns the subjects, the discovery result, and the check results.

    Raises:
        NotRecordedError: the recording lacks a request of the discovery.
        SettingsError: the models of the manifest cannot be judged on the recording.
        TargetLost: the target was lost during discovery.
    """
    roles = made.placements
    placements = None if roles is None else {role: Placement.from_dict(entry) for role, entry in roles.items()}
    subjects = Subjects(tuple(made.models or ()), packs=tuple(pack["name"] for pack in made.packs or ()))
    session = Session(
        target, placements=placements, limits=made.limits or {}, strict=report["options"]["strict"], seed=report["seed"]
    )
    resolved = resolve_models(session, subjects)
    if resolved is None:
        raise NotRecordedError("the recording lists no models")
    is_listed, subjects = resolved != subjects, resolved
    given = config.build_user_inputs(made.models or {})
    discovery_result = session.discover(report["options"]["extensions"], subjects, given, lenient=is_listed)
    rows = list_profile_rows("certify", subjects=subjects, transports=target.settings.transports)
    # Several rows share a probe, which the recording has with the values of the first of these rows in the run.
    judged = {case.ids: session.judge(case) for case in sort_for_run(rows)}
    return subjects, discovery_result, [judged[case.ids] for case in rows]


def compare_reports(rejudged: Report, report: Report) -> Iterator[str]:
    """Yield the differences between a report and the report of its rejudged recording."""
    ours, theirs = ({(row["check"], row["row"]): row for row in list_rows(each)} for each in (rejudged, report))
    if len(theirs) != len(list_rows(report)):
        yield "the report has two entries for one row"
    yield from (f"the report lacks {check} [{row}]" for check, row in ours.keys() - theirs.keys())
    yield from (
        f"the report has {check} [{row}], which this suite does not have" for check, row in theirs.keys() - ours.keys()
    )
    differing = [line for key in ours if key in theirs for line in _compare_rows(ours[key], theirs[key])]
    yield from differing
    if not differing:  # one exchange more or less shifts the numbers of all that follow
        renumbered = (key for key in ours if key in theirs and ours[key]["exchanges"] != theirs[key]["exchanges"])
        yield from (f"{check} [{row}]: exchanges is not what the recording shows" for check, row in renumbered)
    for name in _RECOMPUTED:
        if rejudged.get(name) != report.get(name):
            yield f"the report's {name} is not what its recording shows"
    packs = ([{**pack, "rows": ()} for pack in each.get("packs", ())] for each in (rejudged, report))
    if next(packs) != next(packs):
        yield "what the report says of packs is not what its recording shows"


def _compare_rows(ours: ReportRow, theirs: ReportRow) -> Iterator[str]:
    label = f"{ours['check']} [{ours['row']}]"
    if ours["outcome"] != theirs["outcome"]:
        yield f"{label} is {ours['outcome']} by its recording, {theirs['outcome']} in the report: {ours['message']}"
        return
    for name in ours.keys() | theirs.keys():
        if name not in RUN_SPECIFIC_MEMBERS and _strip_repeat(ours.get(name)) != _strip_repeat(theirs.get(name)):
            yield f"{label}: {name} is not what the recording shows"


def _strip_repeat(value: Any) -> Any:
    """Return a member of a row; remove `repeat` from a failure, since `repeat` names files of the original run."""
    return {name: item for name, item in value.items() if name != "repeat"} if isinstance(value, dict) else value
