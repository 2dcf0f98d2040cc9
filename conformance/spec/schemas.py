"""The JSON schemas of our own files, and what is wrong with the form of a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.spec import data_files
from conformance.spec.text import escape_text

if TYPE_CHECKING:  # slow to import, and needed for files alone
    from jsonschema import ValidationError


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return `schemas/NAME.schema.json`, which nobody changes."""
    path = data_files.find_folder("schemas") / f"{name}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def find_fault(document: Any, schema: Mapping[str, Any], *, checks_formats: bool = False) -> ValidationError | None:
    """Return what is wrong with the form of a document before all else; None where nothing is.

    Args:
        document: as JSON or TOML has it.
        schema: which it should have; with those inside that it refers to.
        checks_formats: days, URLs and the like are looked at, too.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    checker = Draft202012Validator.FORMAT_CHECKER if checks_formats else None
    fault: ValidationError | None = best_match(
        Draft202012Validator(schema, format_checker=checker).iter_errors(document)
    )
    return fault


def describe_fault(fault: ValidationError) -> str:
    """Return where and how a document does not fit, as one line."""
    return f"{escape_text(fault.json_path)}: {escape_text(fault.message)}"
