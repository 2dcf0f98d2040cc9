"""Reads report files, which may come from anybody: what is returned has the form of a report, or an error says why not.

The texts in it are still as somebody else wrote them: who shows them escapes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from conformance.report.json_report import SCHEMA_VERSION
from conformance.spec import files, packed_files, schemas
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError

# A whole run is about 1 MB; what is far larger was not written by a run.
MAX_REPORT_BYTES = 64 * 1024 * 1024
# The member that only the summary of a report has.
SUMMARY = "summary"


class ReportError(UserError):
    """A file cannot be read as a report, or a page not be written; the message is one line."""


def read(path: Path, *, is_whole: bool = True) -> dict[str, Any]:
    """Return the report in a file, which may be packed with xz.

    Args:
        path: of the file.
        is_whole: whether every row is needed; else the summary of a report is returned, too, in which most rows are
            only counted: an entry with a `count` stands for so many.

    Raises:
        ReportError: the file cannot be read, is no report, a summary where every row is needed, or of another schema
            version.
    """
    report = _parse(path)
    if not isinstance(report, dict) or "schema" not in report or "suite" not in report:
        raise ReportError(f"{path} is no report of oip-conformance")
    if report["schema"] != SCHEMA_VERSION:
        version = escape_text(json.dumps(report["schema"]), 20)
        raise ReportError(f"{path} is a report of schema version {version}, this version reads {SCHEMA_VERSION}")
    if is_whole and SUMMARY in report:
        raise ReportError(f"{path} is the summary of a report; the whole report is needed")
    fault = None if _is_of_the_form(report) else schemas.find_fault(report, _schema_of(report))
    if fault is not None:
        raise ReportError(f"{path} is no report of oip-conformance: {schemas.describe_fault(fault)}")
    return report


def _is_of_the_form(report: dict[str, Any]) -> bool:
    """Whether a report is surely of the form: a whole run takes milliseconds so, and a second with jsonschema."""
    try:
        return jsonschema_rs.validator_for(_schema_of(report)).is_valid(report)
    except ValueError:  # text that UTF-8 cannot carry
        return False


def _schema_of(report: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a report or, with that one inside, of a summary, which refers to it."""
    whole = schemas.load_schema("report")
    if SUMMARY not in report:
        return whole
    summary = schemas.load_schema("summary")
    return {**summary, "$defs": {**summary["$defs"], "report": whole}}


def _parse(path: Path) -> Any:
    try:
        return files.parse_json(packed_files.read_whole(path, MAX_REPORT_BYTES))
    except files.NotOpenedError as error:
        raise ReportError(f"cannot read {path}: {error}") from error
    except files.UnreadableError as error:
        raise ReportError(f"{path} is no report of oip-conformance: {error}") from error
