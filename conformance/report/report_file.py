"""Reads untrusted report files: returns a report that matches the schema, or raises an error with the reason.

Texts in the report are not escaped; the code that shows them must escape them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

from conformance.report.json_report import SCHEMA_VERSION
from conformance.spec import files, packed_files, schemas
from conformance.spec.report import Report
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError

# A report of a whole run is about 1 MB; no run writes a much larger one.
MAX_REPORT_BYTES = 64 * 1024 * 1024
# The member that only the summary of a report contains.
SUMMARY = "summary"


class ReportError(UserError):
    """A file cannot be read as a report, or a page cannot be written; the message is one line."""


def read(path: Path, *, is_whole: bool = True) -> Report:
    """Read a report from a file, which may be compressed with xz.

    `is_whole`: whether the caller needs every row; if not, the file may also be the summary of a report. An entry
    of a summary with a `count` represents that number of rows.

    Raises ReportError: the file cannot be read, is not a report, has another schema version, or is a summary although
    every row is needed.
    """
    report = _parse_file(path)
    if not isinstance(report, dict) or "schema" not in report or "suite" not in report:
        raise ReportError(f"{path} is not a report of oip-conformance")
    if report["schema"] != SCHEMA_VERSION:
        version = escape_text(json.dumps(report["schema"]), 20)
        raise ReportError(f"{path} is a report of schema version {version}; this suite reads {SCHEMA_VERSION}")
    if is_whole and SUMMARY in report:
        raise ReportError(f"{path} is the summary of a report; give the whole report")
    fault = None if _is_valid(report) else schemas.find_error(report, _find_schema(report))
    if fault is not None:
        raise ReportError(f"{path} is not a report of oip-conformance: {schemas.describe_error(fault)}")
    return cast("Report", report)  # the schema says so


def read_folder(folder: Path) -> list[tuple[str, Report]]:
    """Read every report, or summary of one, in a folder; return each with the name of its file without suffixes.

    Raises ReportError: see `read`.
    """
    paths = sorted(folder.glob("*.json*"))
    return [(path.name.partition(".json")[0], read(path, is_whole=False)) for path in paths]


def _is_valid(report: Mapping[str, Any]) -> bool:
    """Say whether a report matches the schema; `jsonschema_rs` needs milliseconds, `jsonschema` a second."""
    try:
        return jsonschema_rs.validator_for(_find_schema(report)).is_valid(report)
    except ValueError:  # text that cannot be encoded as UTF-8
        return False


def _find_schema(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a report, or the schema of a summary with the report schema embedded in it."""
    whole = schemas.load_schema("report")
    if SUMMARY not in report:
        return whole
    summary = schemas.load_schema("summary")
    return {**summary, "$defs": {**summary["$defs"], "report": whole}}


def _parse_file(path: Path) -> Any:
    try:
        return files.parse_json(packed_files.read_file_bytes(path, MAX_REPORT_BYTES))
    except files.NotOpenedError as error:
        raise ReportError(f"cannot read {path}: {error}") from error
    except files.UnreadableError as error:
        raise ReportError(f"{path} is not a report of oip-conformance: {error}") from error
