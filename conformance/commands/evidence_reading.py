"""Reads `check.json` of evidence, which may come from anybody: what is returned has its form, or an error says why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema

from conformance.survey import deployed
from conformance.terms import data, files
from conformance.terms.ledger import Party
from conformance.terms.text import safe
from conformance.terms.user_error import UserError
from conformance.transport import broken
from conformance.wire.finding import DecodeError

ABOUT: Final = "check.json"
LARGEST: Final = 64 * 1024 * 1024  # bytes


def read(file: Path) -> dict[str, Any]:
    """Return what the evidence of a row of a server's is about.

    Raises:
        UserError: the file cannot be read, or is no such evidence.
    """
    about = _parsed(file)
    schema = json.loads((data.folder("schemas") / "evidence.schema.json").read_text(encoding="utf-8"))
    fault = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(about))
    if fault is not None:
        raise UserError(f"{file} is no evidence of this suite: {safe(fault.json_path)}: {safe(fault.message)}")
    try:
        files.understood(lambda: _expect_read(about["survey"]))
    except (files.UnreadableError, DecodeError) as error:
        raise UserError(f"{file} is no evidence of this suite: {safe(str(error))}") from error
    return dict(about)


def read_of_client(file: Path) -> tuple[str, str]:
    """Return the check and the row that the evidence of a client is about.

    Raises:
        UserError: the file cannot be read, or is no such evidence.
    """
    about = _parsed(file)
    if not is_of_client(about):
        raise UserError(f"{file} is no evidence of a client")
    return str(about.get("check")), str(about.get("row"))


def is_of_client(about: Any) -> bool:
    """Say whether evidence is that of a client."""
    return isinstance(about, dict) and about.get("party") == Party.CLIENT


def are_of_client(found: list[Path]) -> bool:
    """Say whether all of these are the evidence of a client.

    Raises:
        UserError: one cannot be read.
    """
    return all(is_of_client(_parsed(file)) for file in found)


def _parsed(file: Path) -> Any:
    try:
        return files.json_of(files.read_bytes(file, LARGEST))
    except files.UnreadableError as error:
        raise UserError(f"{file} is no evidence of this suite: {error}") from error


def _expect_read(survey: Mapping[str, Any]) -> None:
    """Read what the survey found, as a session will.

    Raises:
        ValueError, LookupError, TypeError: bytes, datatypes and shapes do not go together.
    """
    for model in survey.get("models", {}).values():
        deployed.of_dict(model)
    for one in survey.get("broken", ()):
        broken.of_dict(one)
