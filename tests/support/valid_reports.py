"""Reports of runs, held against their schema, the form of dates and addresses in them, too, and their digest."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from conformance.report.json_report import compute_digest
from conformance.spec import data_files


def expect_valid(report: Any) -> None:
    """Fail where a report does not fit its schema, or its digest is not its own."""
    _validator().validate(report)
    assert report["footer"]["digest"] == compute_digest(report)


def read_valid_report(path: Path) -> Any:
    """Return the report in a file, which fits its schema; a `Report` whose members tests name as they like."""
    report = json.loads(path.read_text(encoding="utf-8"))
    expect_valid(report)
    return report


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    schema = json.loads((data_files.find_folder("schemas") / "report.schema.json").read_text(encoding="utf-8"))
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
