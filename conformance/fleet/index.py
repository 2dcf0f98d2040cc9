"""The results of a fleet run (`schemas/fleet_index.schema.json`), from which both pages are rendered.

The index is built only from the files in the folder, so that an interrupted run has an index as well. This module
escapes no texts; the pages do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from conformance.fleet.run_folder import RUNS, RunFolder, RunRecord
from conformance.fleet.unit_runner import REPORT
from conformance.report.findings import find_requirement
from conformance.report.json_report import compute_suite_digest
from conformance.report.report_file import ReportError, read
from conformance.report.requirement_changes import RequirementChange, count_unmet_rows, find_changes
from conformance.report.scope import describe_limits_of
from conformance.spec.outcome import Outcome
from conformance.spec.report import Gate, Report
from conformance.spec.tally import Tally, count_requirements, is_judged, select_requirements, tally_report
from conformance.spec.verdict import EXIT_STATUS
from conformance.spec.version import __version__

Index = dict[str, Any]

SCHEMA: Final = 1
NOT_RUN: Final = "not_run"  # in place of a verdict
VERDICTS: Final = (*EXIT_STATUS, NOT_RUN)
INTERRUPTED: Final = 2


def build(
    folder: Path,
    record: RunRecord,
    earlier: Sequence[RunRecord],
    names: Sequence[str],
    *,
    profile: str,
    stopped: str = "",
) -> Index:
    """Return the index of a run.

    `earlier`: the finished runs before this run, earliest first.
    `names`: names of all targets, in the order of the fleet file.
    `stopped`: why some targets were not judged; empty if all were.
    """
    run = RunFolder(folder, record)
    reports = {name: _read_report(run.get_target_folder(name)) for name in names}
    targets = [_build_target(folder, run, name, reports[name]) for name in names]
    counts = Counter(target["verdict"] for target in targets)
    verdicts = {target["name"]: target["verdict"] for target in targets}
    return {
        "schema": SCHEMA,
        "suite": {"name": "oip-conformance", "version": __version__, "digest": compute_suite_digest()},
        "run": record.name,
        "started": record.started,
        "finished": record.finished or None,
        "stopped": stopped,
        "profile": profile,
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "status": compute_exit_status(targets),
        "targets": targets,
        "changes": _build_changes(folder, earlier[-1], verdicts, reports) if earlier else None,
        "history": [*map(_summarise_run, earlier), _summarise_run(replace(record, verdicts=verdicts))],
    }


def compute_exit_status(targets: Sequence[Mapping[str, Any]]) -> int:
    """Return the worst exit status of the targets: 1 before 6 before 0; a target that was not run counts as 6."""
    found = {target["status"] for target in targets}
    worst = (EXIT_STATUS["nonconformant"], EXIT_STATUS["incomplete"])
    return next((status for status in worst if status in found), EXIT_STATUS["conformant"])


def _read_report(folder: Path) -> Report | None:
    try:
        return read(folder / REPORT, is_whole=False)
    except ReportError:
        return None


# --- a target ---


def _build_target(folder: Path, run: RunFolder, name: str, report: Report | None) -> Index:
    done = run.find_record(name)
    if done is None:
        return {"name": name, "verdict": NOT_RUN, "status": EXIT_STATUS["incomplete"], "why": ["not run"]}
    return {
        "name": name,
        "verdict": report["verdict"] if report else "incomplete",
        "status": done.status,
        "why": [*filter(None, [done.said]), *(_list_reasons(report) if report else [])],
        **({"trouble": done.trouble} if done.trouble else {}),
        "tried": done.tried,
        "seconds": done.seconds,
        "folder": run.get_target_folder(name).relative_to(folder).as_posix(),
        **(_summarise_report(report) if report else {}),
    }


def _list_reasons(report: Report) -> list[str]:
    """Return why the verdict is what it is, and the verdicts of packs, which the exit status may show as well."""
    return [*report["why"], *(f"pack {pack['name']}: {pack['verdict']}" for pack in report.get("packs", ()))]


def _summarise_report(report: Report) -> Index:
    gate = report.get("gate")
    target = report["target"]
    return {
        "url": target["url"],
        **({"grpc": target["grpc"]} if "grpc" in target else {}),
        "product": target["name"],
        "version": target["version"],
        "musts": _list_counts(tally_report(report)),
        "interoperable": report["interoperable"],
        **({"limits": limits} if (limits := describe_limits_of(report)) else {}),
        "extensions": {name: entry["verdict"] for name, entry in report["extensions"].items()},
        "areas": _count_by_area(report),
        "unmet": list(_list_unmet(report)),
        **({"gate": _count_differences(gate)} if gate else {}),
    }


def _count_differences(gate: Gate) -> dict[str, int]:
    """Return whether a gate was passed, and the number of labels in each of its lists."""
    return {
        "passed": gate["passed"],
        "known": len(gate["known"]),
        "new": len(gate["new"]),
        "fixed": len(gate["fixed"]),
        "stale": len(gate["stale"]),
    }


def _list_counts(found: Tally) -> dict[str, int]:
    return {"met": found.met, "failed": found.failed, "stuck": found.in_doubt, "unseen": found.not_judged}


def _count_by_area(report: Report) -> dict[str, dict[str, int]]:
    """Return the counts of MUSTs by outcome for each judged area; areas without MUSTs are omitted."""
    offered = [name for name, entry in report["extensions"].items() if entry["offered"]]
    entries = select_requirements(report["requirements"], report["options"]["extensions"])
    if not any(map(is_judged, entries)):
        return {}
    areas = dict.fromkeys(entry["area"] for entry in entries)
    found = {
        area: _list_counts(count_requirements("MUST", [e for e in entries if e["area"] == area], offered))
        for area in areas
    }
    return {area: counts for area, counts in found.items() if any(counts.values())}


def _list_unmet(report: Report) -> Iterator[dict[str, Any]]:
    rows = count_unmet_rows(report)
    known = {find_requirement(check) for check in report["rows"] if check["outcome"] == Outcome.KNOWN_FAILURE}
    for entry in report["requirements"]:
        if rows[entry["id"]]:
            is_known = entry["id"] in known and entry["verdict"] == Outcome.KNOWN_FAILURE
            yield {
                "id": entry["id"],
                "level": entry["level"],
                "rows": rows[entry["id"]],
                **({"known": True} if is_known else {}),
            }


# --- other runs ---


def _summarise_run(record: RunRecord) -> Index:
    counts = Counter(record.verdicts.values())
    return {
        "run": record.name,
        "started": record.started,
        "suite": record.suite,
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "verdicts": dict(record.verdicts),
    }


def _build_changes(
    folder: Path, before: RunRecord, verdicts: Mapping[str, str], reports: Mapping[str, Report | None]
) -> Index:
    """Return the changes since the previous run; targets that were not run now are omitted."""
    run = {name: verdict for name, verdict in verdicts.items() if verdict != NOT_RUN}
    both = [name for name in run if name in before.verdicts]
    turned = [name for name in both if before.verdicts[name] != run[name]]
    found = [
        (name, change) for name in both for change in _list_changes(folder / RUNS / before.name / name, reports[name])
    ]
    return {
        "since": before.name,
        "started": before.started,
        "new": [name for name in verdicts if name not in before.verdicts],
        "gone": [name for name in before.verdicts if name not in verdicts],
        "turned": [{"target": name, "before": before.verdicts[name], "after": run[name]} for name in turned],
        "fixed": [_describe_change(name, change) for name, change in found if change.is_fixed],
        "broke": [_describe_change(name, change) for name, change in found if change.has_become_unmet],
    }


def _list_changes(before: Path, report: Report | None) -> list[RequirementChange]:
    older = _read_report(before)
    return list(find_changes(older, report)) if older and report else []


def _describe_change(name: str, change: RequirementChange) -> Index:
    before, after = change.outcomes
    rows = change.rows[1] or change.rows[0]
    return {"target": name, "id": change.id, "level": change.level, "before": before, "after": after, "rows": rows}
