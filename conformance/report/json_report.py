"""Builds the JSON report for other programs; `schemas/report.schema.json` describes it.

The digest in the footer covers everything else in the report, so that a truncated or edited file is detected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging import packs
from conformance.judging.conclusion import Conclusion, PackConclusion
from conformance.report import deployed_models, robustness
from conformance.report.failure_patterns import find_patterns
from conformance.spec import data_files
from conformance.spec import result as result_types
from conformance.spec import verdict as verdicts
from conformance.spec.extensions import PROTOCOL
from conformance.spec.ledger import Party
from conformance.spec.report import (
    Failure,
    Met,
    OptionalMembers,
    Options,
    PackEntry,
    Report,
    ReportRow,
    TargetDetails,
    TargetEntry,
)
from conformance.spec.result import CheckResult
from conformance.spec.tally import count_by_concern
from conformance.spec.text import escape_text
from conformance.spec.version import __version__

SCHEMA_VERSION = 3
MAX_NAME_CHARS = 200  # characters of a name reported by a server
MAX_LISTED = 200  # extensions listed by a server


@cache
def compute_suite_digest() -> str:
    """Return the SHA-256 of everything that decides a verdict: code, ledger, roles, schemas and fixtures."""
    schemas, fixtures = data_files.find_folder("schemas"), data_files.find_folder("fixtures")
    # In a wheel, schemas and fixtures are inside the package; they are hashed once, under their own names. The program
    # that made the fixtures, and what it reads, are not in the wheel.
    others = {data_files.PACKAGE_FOLDER: ("schemas", "fixtures"), fixtures: ("build.py", "sources")}
    return data_files.compute_digest((data_files.PACKAGE_FOLDER, schemas, fixtures), others)


def build(
    conclusion: Conclusion,
    discovery_result: DiscoveryResult,
    *,
    url: str,
    grpc: str,
    options: Options,
    seed: int | None,
    started: str,
    finished: str,
    party: Party = Party.SERVER,
    about: TargetDetails | None = None,
) -> Report:
    """Return the report as plain data.

    `url`: the URL of the target, without credentials.
    `grpc`: the gRPC address of the target; empty if it was not judged over gRPC.
    `seed`: the Hypothesis seed of an exploring run; otherwise the seed that chooses client names.
    `started`: a UTC time in ISO 8601, like `finished`.
    `finished`: the time of the last check.
    `party`: the judged party; only a report of a client contains it.
    `about`: further members of the report's object `target`.
    """
    results, coverage, verdict = conclusion.results, conclusion.coverage, conclusion.verdict
    requirements = verdicts.conclude_requirements(results, party, coverage.gaps)
    extensions = verdicts.conclude_extensions(
        results, discovery_result.offered, conclusion.missing, coverage, is_narrowed=conclusion.is_narrowed
    )
    tallies = {
        name: count_by_concern(requirements, name, discovery_result.offered, options["extensions"], party)
        for name in extensions
    }
    musts: dict[str, dict[str, Met]] = {
        name: {concern: {"met": own.met, "of": own.applying} for concern, own in found.items()}
        for name, found in tallies.items()
    }
    report: Report = {
        "schema": SCHEMA_VERSION,
        "suite": {"name": "oip-conformance", "version": __version__, "digest": compute_suite_digest()},
        "started": started,
        "finished": finished,
        "options": options,
        "seed": seed,
        "target": _build_target(discovery_result, url, grpc, about),
        "verdict": verdict.verdict,
        "interoperable": verdict.interoperable,
        "why": verdict.why,
        **_build_optional_members(conclusion, party),
        "extensions": {name: {**entry, "musts": musts[name]} for name, entry in extensions.items()},
        "requirements": requirements,
        "rows": build_rows(results),
        "footer": {"complete": conclusion.is_complete, "rows": len(results), "digest": ""},
    }
    report["footer"]["digest"] = compute_digest(report)
    return report


def _build_optional_members(conclusion: Conclusion, party: Party) -> OptionalMembers:
    found: OptionalMembers = {}
    if party is not Party.SERVER:
        found["party"] = str(party)
    if conclusion.gate:
        found["gate"] = conclusion.gate.to_dict()
    if conclusion.coverage.has_gap:
        found["coverage"] = conclusion.coverage.to_dict()
    if patterns := find_patterns(conclusion.results):
        found["failure_patterns"] = patterns
    number = sum(result.exchanges for result in conclusion.results)
    if conclusion.packs:
        found["packs"] = []
    for pack in conclusion.packs:
        found["packs"].append(_build_pack(pack, number))
        number += sum(result.exchanges for result in pack.results)
    if conclusion.robustness:
        rows = build_rows(conclusion.robustness, number)
        counted = robustness.from_checks(rows)
        found["robustness"] = {"held": counted.held, "of": counted.of, "rows": rows}
    return found


def _build_pack(found: PackConclusion, number: int) -> PackEntry:
    """Return the entry of a pack; its exchanges are counted from `number`."""
    pack, verdict = packs.load(found.name), found.verdict
    entries = verdicts.conclude_requirements(
        found.results, gaps=found.coverage.gaps, entries=pack.requirements.values()
    )
    return {
        **pack.identity,  # type: ignore[typeddict-item]
        "verdict": verdict.verdict,
        "interoperable": verdict.interoperable,
        "why": verdict.why,
        "requirements": [
            {
                **entry,
                "statement": pack.requirements[entry["id"]].statement,
                "source": pack.requirements[entry["id"]].source,
            }
            for entry in entries
        ],
        "rows": build_rows(found.results, number),
    }


def _build_target(discovery_result: DiscoveryResult, url: str, grpc: str, about: TargetDetails | None) -> TargetEntry:
    """Return the target's addresses, name, version, extensions, roles and models."""
    listed = list(dict.fromkeys([*discovery_result.listed, *discovery_result.listed_grpc]))
    found: TargetEntry = {
        "url": url,
        "name": format_name(discovery_result.name),
        "version": format_name(discovery_result.version),
        "extensions_listed": [escape_text(name, MAX_NAME_CHARS) for name in listed[:MAX_LISTED]],
        "extensions_offered": sorted({*discovery_result.offered} - {PROTOCOL}),
        "roles": discovery_result.roles,
        **(about or {}),
    }
    if grpc:
        found["grpc"] = grpc
    if discovery_result.limits:
        found["limits"] = discovery_result.limits
    if discovery_result.models:
        found["models"] = deployed_models.describe_models(discovery_result)
    if discovery_result.refused_clients:
        found["refused_clients"] = discovery_result.refused_clients
    return found


def format_name(name: Any) -> str | None:
    """Escape a name or version from a server for the report; return None if it is not a string."""
    return escape_text(name, MAX_NAME_CHARS) if isinstance(name, str) else None


def build_rows(results: Iterable[CheckResult], number: int = 0) -> list[ReportRow]:
    """Return the rows of a report, each with the numbers of its exchanges, which are counted from `number`.

    Only the first failure of each check and requirement has its evidence.
    """
    rows: list[ReportRow] = []
    shown: set[tuple[str, str]] = set()
    for result in results:
        kind = (result.id, result.failure.requirement if result.failure else "")
        rows.append(_build_row(result, number, has_evidence=kind not in shown))
        shown.add(kind)
        number += result.exchanges
    return rows


def _build_row(result: CheckResult, number: int, *, has_evidence: bool) -> ReportRow:
    return {
        "check": result.id,
        "row": result.row,
        "claim": result.claim,
        "area": result.area,
        "outcome": str(result.outcome),
        "requirements": result.requirements,
        "message": result.message,
        "observation": result.observation,
        "duration_s": result.duration_s,
        "exchanges": list(range(number, number + result.exchanges)),
        "failure": _build_failure(result.failure, has_evidence=has_evidence) if result.failure else None,
        "reason": {"kind": str(result.reason.kind), "subject": result.reason.subject} if result.reason else None,
    }


def _build_failure(failure: result_types.Failure, *, has_evidence: bool) -> Failure:
    found: Failure = {
        "requirement": failure.requirement,
        "level": failure.level,
        "statement": failure.statement,
        "source": failure.source,
        "source_urls": failure.source_urls,
        "expected": failure.expected,
        "actual": failure.actual,
        "asked": failure.asked,
        "sent": failure.sent,
        "bytes": failure.bytes,
        "repeat": failure.repeat,
        "request": failure.request,
        "answer": failure.answer,
    }
    if failure.ends_server:
        found["ends_server"] = True
    if failure.wrong_values:
        found["wrong_values"] = True
    if failure.evidence and has_evidence:
        found["evidence"] = failure.evidence
    return found


def compute_digest(report: Mapping[str, object]) -> str:
    """Return the SHA-256 of a report without its footer, as canonical JSON."""
    body = {key: value for key, value in report.items() if key != "footer"}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
