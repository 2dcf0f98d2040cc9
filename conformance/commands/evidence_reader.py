"""Reads and validates `check.json` of evidence, which is untrusted input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.discovery import deployed_model
from conformance.judging.evidence import PATTERNS_FILE
from conformance.spec import files, schemas
from conformance.spec.ledger import Party
from conformance.spec.report import Pattern
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import broken_request
from conformance.wire.finding import DecodeError

CHECK_FILE: Final = "check.json"
MAX_FILE_BYTES: Final = 64 * 1024 * 1024  # bytes


def read(file: Path) -> dict[str, Any]:
    """Read the evidence of a server's row.

    Raises UserError: the file cannot be read, or holds no evidence about a server.
    """
    about = _parse_file(file)
    if fault := schemas.find_error(about, _load_schema()):
        raise UserError(f"{file} is not evidence of this suite: {schemas.describe_error(fault)}")
    try:
        files.convert_errors(lambda: _expect_parsable(about["survey"]))
    except (files.UnreadableError, DecodeError) as error:
        raise UserError(f"{file} is not evidence of this suite: {escape_text(str(error))}") from error
    return dict(about)


def read_patterns(folder: Path) -> Sequence[Pattern]:
    """Read the failure patterns of a run from its folder of evidence; empty if it has none.

    Raises UserError: the file cannot be read, or holds no patterns.
    """
    file = folder / PATTERNS_FILE
    if not file.exists():
        return ()
    found: Sequence[Pattern] = _parse_file(file)
    if fault := schemas.find_error(found, schemas.load_schema("report")["properties"]["failure_patterns"]):
        raise UserError(f"{file} is not evidence of this suite: {schemas.describe_error(fault)}")
    return found


def read_client_evidence(file: Path) -> tuple[str, str]:
    """Read the check and the row from the evidence of a client.

    Raises UserError: the file cannot be read, or holds no evidence about a client.
    """
    about = _parse_file(file)
    if not is_client_evidence(about):
        raise UserError(f"{file} is not evidence about a client")
    return str(about.get("check")), str(about.get("row"))


def is_client_evidence(about: Any) -> bool:
    """Whether evidence is about a client."""
    return isinstance(about, dict) and about.get("party") == Party.CLIENT


def is_all_client_evidence(found: list[Path]) -> bool:
    """Whether all of these files are evidence about clients. Raises UserError: a file cannot be read."""
    return all(is_client_evidence(_parse_file(file)) for file in found)


def _parse_file(file: Path) -> Any:
    try:
        return files.parse_json(files.read_bytes(file, MAX_FILE_BYTES))
    except files.UnreadableError as error:
        raise UserError(f"{file} is not evidence of this suite: {error}") from error


def _load_schema() -> dict[str, Any]:
    """Return the schema of evidence with the schema of reports, which describes the failure, embedded in it."""
    schema = schemas.load_schema("evidence")
    return {**schema, "$defs": {**schema["$defs"], "report": schemas.load_schema("report")}}


def _expect_parsable(discovery_result: Mapping[str, Any]) -> None:
    """Parse the results of discovery (`survey`), to validate them.

    Raises ValueError, LookupError, TypeError: bytes, datatypes and shapes are inconsistent.
    """
    for model in discovery_result.get("models", {}).values():
        deployed_model.from_dict(model)
    for one in discovery_result.get("broken", ()):
        broken_request.from_dict(one)
