"""Builds the JSON report for other programs; `schemas/report.schema.json` describes it.

The digest in the footer covers everything else in the report, so that a truncated or edited file is detected.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.baseline import GateResult
from conformance.report import deployed_models, robustness
from conformance.report.failure_patterns import find_patterns
from conformance.spec import data_files
from conformance.spec import verdict as verdicts
from conformance.spec.coverage import FULL_COVERAGE, Coverage
from conformance.spec.extensions import PROTOCOL
from conformance.spec.ledger import Party
from conformance.spec.result import CheckResult
from conformance.spec.tally import count_by_concern
from conformance.spec.text import escape_text
from conformance.spec.verdict import Verdict
from conformance.spec.version import __version__

SCHEMA_VERSION = 3
MAX_NAME_CHARS = 200  # characters of a name reported by a server
MAX_LISTED = 200  # extensions listed by a server


@cache
def compute_suite_digest() -> str:
    """Return the SHA-256 of everything that decides a verdict: code, ledger, roles, schemas and fixtures."""
    digest = hashlib.sha256()
    schemas, fixtures = data_files.find_folder("schemas"), data_files.find_folder("fixtures")
    # In a wheel, schemas and fixtures are inside the package; they are hashed once, under their own names. The program
    # that made the fixtures, and what it reads, are not in the wheel.
    others = {data_files.PACKAGE_FOLDER: ("schemas", "fixtures"), fixtures: ("build.py", "sources")}
    for folder in (data_files.PACKAGE_FOLDER, schemas, fixtures):
        for parts in sorted(_walk_files(str(folder), others.get(folder, ()))):
            with open(os.path.join(folder, *parts), "rb") as file:
                content = file.read()
            digest.update(f"{folder.name}/{'/'.join(parts)}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def _walk_files(folder: str, excluded: Collection[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the relative path of each file below a folder, except caches, hidden files and `excluded` names.

    There are about 1,300 files; pathlib would take as long as a short run of the suite.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__" or entry.name.startswith(".") or entry.name in excluded:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from ((entry.name, *below) for below in _walk_files(entry.path))
            elif entry.is_file():
                yield (entry.name,)


def build(
    results: Sequence[CheckResult],
    survey: DiscoveryResult,
    verdict: Verdict,
    *,
    url: str,
    grpc: str,
    options: Mapping[str, Any],
    seed: int | None,
    started: str,
    finished: str,
    complete: bool,
    missing: verdicts.Missing = MappingProxyType({}),
    gate: GateResult | None = None,
    coverage: Coverage = FULL_COVERAGE,
    is_narrowed: bool = False,
    hostile: Sequence[CheckResult] = (),
    party: Party = Party.SERVER,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the report as plain data.

    Args:
        results: the results of all rows that ran.
        survey: the discovery result of the target.
        verdict: the verdict on the results.
        url: the URL of the target, without credentials.
        grpc: the gRPC address of the target; empty if it was not judged over gRPC.
        options: the options that affect the verdict.
        seed: the Hypothesis seed of an exploring run; otherwise the seed that chooses client names.
        started: a UTC time in ISO 8601, like `finished`.
        finished: the time of the last check.
        complete: whether all expected rows ran.
        missing: the labels of rows that did not run, by extension.
        gate: the result of the baseline gate, or None without a baseline.
        coverage: the requirements that the run did not judge.
        is_narrowed: whether rows are missing because the user deselected them.
        hostile: robustness results, which do not affect the verdict.
        party: the judged party; only a report of a client contains it.
        about: further members of the report's object `target`.
    """
    rows = _build_rows(results)
    requirements = verdicts.conclude_requirements(results, party, coverage.gaps)
    extensions = verdicts.conclude_extensions(results, survey.offered, missing, coverage, is_narrowed=is_narrowed)
    for name, entry in extensions.items():
        found = count_by_concern(requirements, name, survey.offered, options["extensions"], party)
        entry["musts"] = {concern: {"met": own.met, "of": own.applying} for concern, own in found.items()}
    patterns = [pattern.to_dict() for pattern in find_patterns(result.to_dict() for result in results)]
    report: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        **({"party": str(party)} if party is not Party.SERVER else {}),
        "suite": {"name": "oip-conformance", "version": __version__, "digest": compute_suite_digest()},
        "started": started,
        "finished": finished,
        "options": dict(options),
        "seed": seed,
        "target": {"url": url, **({"grpc": grpc} if grpc else {}), **_describe_target(survey), **about},
        "verdict": verdict.verdict,
        "interoperable": verdict.interoperable,
        "why": verdict.why,
        **({"gate": gate.to_dict()} if gate else {}),
        **({"coverage": coverage.to_dict()} if coverage.has_gap else {}),
        "extensions": extensions,
        "requirements": requirements,
        "rows": rows,
        **({"failure_patterns": patterns} if patterns else {}),
    }
    if hostile:
        report["robustness"] = robustness.build_report_member(
            _build_rows(hostile, sum(result.exchanges for result in results))
        )
    report["footer"] = {"complete": complete, "rows": len(results), "digest": compute_digest(report)}
    return report


def _describe_target(survey: DiscoveryResult) -> dict[str, Any]:
    """Return the target's name, version, extensions, roles and models."""
    listed = list(dict.fromkeys([*survey.listed, *survey.listed_grpc]))
    return {
        "name": format_name(survey.name),
        "version": format_name(survey.version),
        "extensions_listed": [escape_text(name, MAX_NAME_CHARS) for name in listed[:MAX_LISTED]],
        "extensions_offered": sorted({*survey.offered} - {PROTOCOL}),
        "roles": survey.roles,
        **({"limits": survey.limits} if survey.limits else {}),
        **({"models": deployed_models.describe_models(survey)} if survey.models else {}),
        **({"refused_clients": survey.refused_clients} if survey.refused_clients else {}),
    }


def format_name(name: Any) -> str | None:
    """Escape a name or version from a server for the report; return None if it is not a string."""
    return escape_text(name, MAX_NAME_CHARS) if isinstance(name, str) else None


def _build_rows(results: Sequence[CheckResult], number: int = 0) -> list[dict[str, Any]]:
    """Return the rows of the report, each with the numbers of its exchanges, which are counted from `number`."""
    rows = []
    for result in results:
        entry = result.to_dict()
        del entry["extension"], entry["sent"]  # the requirement has it; only used to find patterns
        entry["exchanges"] = list(range(number, number + result.exchanges))
        number += result.exchanges
        rows.append(entry)
    return drop_repeated_exchanges(rows)


def drop_repeated_exchanges(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the evidence of only the first failure of each check and requirement; return the rows."""
    shown: set[tuple[str, str]] = set()
    for row in rows:
        failure = row["failure"]
        kind = (row["check"], failure["requirement"]) if failure else ("", "")
        if failure and (failure["evidence"] is None or kind in shown):
            del failure["evidence"]
        shown.add(kind)
    return rows


def compute_digest(report: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a report without its footer, as canonical JSON."""
    body = {key: value for key, value in report.items() if key != "footer"}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
